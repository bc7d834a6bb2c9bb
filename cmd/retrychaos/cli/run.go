package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/internal/nearest"
	"github.com/retrychaos/retrychaos/reports"
	"github.com/retrychaos/retrychaos/scenarios"
)

// reportDir is where reports go when nothing is said.
const reportDir = "retrychaos-report"

type runFlags struct {
	known     []NamedClient
	clients   []string
	exec      string
	drivers   []string
	histories string
	set       string
	globs     []string
	folder    string
	knownFile string
	seed      uint64
	out       string
	level     string
	world     string
	parallel  int
	color     string
	quiet     bool
	verbose   bool
	dryRun    bool
	shardText string
	shards    int
	annotate  bool
	part      *part // nil: the whole run
	scenarios []scenarios.Scenario
	tested    []testedClient
}

// testedClient is a client with the start of the command line that runs it.
type testedClient struct {
	harness.Client
	repro string
}

func newRun(clients []NamedClient) *cobra.Command {
	f := &runFlags{known: clients}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a client through the scenarios and judge it",
		Long: `Run a client through the scenarios and judge it.

Without flags: the bundled client, the whole library, real sockets on 127.0.0.1, scenarios
side by side. A client of your own is a command (--exec, one process a call; placeholders
{method} {url} {key} {body} {call} {cacert}; exit status 0 means that the call succeeded), or, in Go,
harness.Run in a test. A client of another language that stays is a driver (--driver, one process
for all calls; docs/drivers.md).

Reports go to the folder --out: report.html, for a browser, report.json, junit.xml,
report.md and report.tap. An interrupt (Ctrl-C) finishes what is under way, skips the
rest and still writes them.

Exit status: 0 no finding at the chosen level, 1 findings, 2 wrong usage or input,
3 undecided, interrupted, or a fault of the harness itself.`,
		Example: `  retrychaos run
  retrychaos run --world virtual                   # in virtual time: hours in seconds
  retrychaos run --client control/retries-post-blindly --scenario 'duplicates*'
  retrychaos run --exec 'curl -sS --fail --retry 3 --retry-all-errors -X {method} -H "Idempotency-Key: {key}" -d {body} {url}' --scenario 'duplicates*'
  retrychaos run --driver 'node my-driver.mjs' --scenario 'duplicates*'
  retrychaos run --scenarios ./my-scenarios --level must
  retrychaos run --shard 2/3 --seed 7 --out shards/2    # then: retrychaos report merge shards`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.resolve(cmd); err != nil {
				return err
			}
			return f.run(cmd)
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.clients, "client", nil, "`NAME` of a client to test, repeatable; see retrychaos list clients (default \""+defaultClient+"\")")
	fl.StringVar(&f.exec, "exec", "", "`COMMAND` to test, one process a call; it holds {url}")
	f.driverFlags(cmd)
	fl.StringSliceVar(&f.globs, "scenario", nil, "run only scenarios whose name matches the `GLOB`, repeatable; * matches any run of characters")
	fl.StringVar(&f.folder, "scenarios", "", "`FOLDER` of scenario files, or one file, instead of the library")
	fl.Uint64Var(&f.seed, "seed", 0, "`SEED` that replays a run (default: random, and printed)")
	fl.StringVar(&f.out, "out", reportDir, "`FOLDER` for the reports")
	fl.StringVar(&f.level, "level", "should", "least `LEVEL` whose findings count: must, should or may")
	fl.StringVar(&f.world, "world", "loopback", "`WORLD` to run in: loopback (real sockets, real time), virtual (in memory, virtual time) or auto (virtual for all that can enter it)")
	fl.IntVar(&f.parallel, "parallel", 0, "`N` scenarios side by side in the loopback world (default 200)")
	fl.StringVar(&f.color, "color", "auto", "`WHEN` to colour: auto, always or never; with auto, NO_COLOR and FORCE_COLOR are obeyed")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	fl.BoolVarP(&f.verbose, "verbose", "v", false, "tell every finding and every note")
	fl.StringVar(&f.shardText, "shard", "", "run only part `I/N` of all, or the one that the variables of bazel, kubernetes, gitlab or circleci say (auto: whichever are set); needs --seed")
	fl.IntVar(&f.shards, "shards", 0, "`N` shards there are, where --shard names a system whose variables do not say")
	fl.BoolVar(&f.annotate, "annotations", false, "write GitHub annotations to stdout (default: where GITHUB_ACTIONS is true)")
	fl.BoolVar(&f.dryRun, "dry-run", false, "say what would be run, and run nothing")
	complete(cmd, "level", "must", "should", "may")
	complete(cmd, "world", "loopback", "virtual", worldAuto)
	complete(cmd, "color", "auto", "always", "never")
	_ = cmd.RegisterFlagCompletionFunc("client", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var names []string
		for _, k := range clients {
			names = append(names, k.Name+"\t"+k.Doc)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	})
	fl.StringVar(&f.knownFile, "known-failing", "", "`FILE` of failures that are known and accepted, each with its reason: they do not count, and one that passes does")
	_ = cmd.MarkFlagFilename("scenarios", "yaml")
	_ = cmd.MarkFlagFilename("known-failing", "yaml")
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

func complete(cmd *cobra.Command, flag string, words ...string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// resolve checks every flag before anything runs, so that a bad one leaves no partial run.
func (f *runFlags) resolve(cmd *cobra.Command) error {
	var errs []error
	errs = append(errs,
		oneOf("level", f.level, "must", "should", "may"),
		oneOf("world", f.world, "loopback", "virtual", worldAuto),
		oneOf("color", f.color, "auto", "always", "never"))
	if f.parallel < 0 || f.parallel == 0 && cmd.Flags().Changed("parallel") {
		errs = append(errs, fmt.Errorf("--parallel %d: it must be positive", f.parallel))
	}
	if cmd.Flags().Changed("seed") && f.seed == 0 {
		errs = append(errs, errors.New("--seed 0: a seed is 1 or more; leave the flag out for a random one"))
	}
	if f.out == "" {
		errs = append(errs, errors.New("--out: the folder has no name"))
	}
	errs = append(errs, f.resolveDrivers(cmd), f.resolveClients(cmd), f.resolveScenarios())
	if f.knownFile != "" {
		errs = append(errs, f.resolveKnown())
	}
	errs = append(errs, f.resolveShard(cmd.Flags().Changed("seed")))
	if f.seed == 0 {
		f.seed = harness.NewSeed()
	}
	if f.parallel == 0 {
		f.parallel = 200
	}
	return errors.Join(errs...)
}

func oneOf(flag, value string, words ...string) error {
	for _, w := range words {
		if value == w {
			return nil
		}
	}
	return fmt.Errorf("--%s %q: it is one of %s%s", flag, value, strings.Join(words, ", "), nearest.Hint(value, words))
}

func (f *runFlags) resolveClients(cmd *cobra.Command) error {
	var errs []error
	if cmd.Flags().Changed("exec") {
		c, err := harness.Exec(execName(f.exec), f.exec)
		if err != nil {
			errs = append(errs, fmt.Errorf("--exec: %w", err))
		} else if f.world == string(world.Virtual) {
			errs = append(errs, errors.New("--exec: a process cannot enter the virtual world; leave out --world virtual"))
		}
		f.tested = append(f.tested, testedClient{c, invocation() + " run --exec " + reports.ShellQuote(f.exec)})
	}
	names := f.clients
	if len(names) == 0 && len(f.tested) == 0 && f.set == "" && len(f.drivers) == 0 {
		names = []string{defaultClient}
	}
	seen := map[string]bool{}
	for _, name := range names {
		c, err := findClient(f.known, name)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("--client: %w", err))
		case seen[name]:
			errs = append(errs, fmt.Errorf("--client: %q is named twice", name))
		}
		seen[name] = true
		f.tested = append(f.tested, testedClient{c, invocation() + " run --client " + reports.ShellQuote(name)})
	}
	return errors.Join(errs...)
}

// execName names a command in reports by its program.
func execName(line string) string {
	fields := strings.Fields(line)
	if len(fields) == 0 {
		return "exec"
	}
	return "exec:" + filepath.Base(strings.Trim(fields[0], `"'`))
}

func (f *runFlags) resolveScenarios() error {
	var list []scenarios.Scenario
	var err error
	if f.folder != "" {
		list, err = loadScenarios(f.folder)
	} else {
		list, err = scenarios.Library()
	}
	if err != nil {
		return err
	}
	if len(f.globs) > 0 {
		if list, err = scenarios.Match(list, f.globs...); err != nil {
			return fmt.Errorf("--scenario: %w", err)
		}
	}
	f.scenarios = list
	return nil
}

func (f *runFlags) run(cmd *cobra.Command) error {
	out := cmd.OutOrStdout()
	if f.dryRun {
		for _, t := range f.tasks() {
			fmt.Fprintf(out, "%s\t%s\n", t.client.Name, t.scenario.Name)
		}
		return nil
	}
	defer f.hangUp()
	if err := f.meet(); err != nil {
		return err
	}
	tasks := f.tasks()
	// Before anything runs: a long run whose reports cannot be kept is a waste.
	if err := reports.Prepare(f.out); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	if err := f.touchBazel(); err != nil {
		return err
	}
	level := check.Level(strings.ToUpper(f.level))
	progress := reports.NewProgress(cmd.ErrOrStderr(), len(tasks),
		reports.ProgressOptions{Terminal: isTerminal(cmd.ErrOrStderr()), Quiet: f.quiet, Width: width(cmd.ErrOrStderr())})
	forget := context.AfterFunc(cmd.Context(), func() {
		progress.Say("interrupted: what is under way is finished, the rest is skipped; interrupt once more to end at once")
	})
	began := time.Now()
	results := f.execute(cmd.Context(), tasks, level, progress)
	forget()
	progress.Close()

	info := reports.Run{Version: version(), Started: began, Seed: f.seed, World: f.worlds(), Level: level, Real: time.Since(began)}
	for _, c := range f.tested {
		repro := c.repro
		if f.folder != "" {
			repro += " --scenarios " + reports.ShellQuote(f.folder)
		}
		info.Clients = append(info.Clients, reports.ClientInfo{Name: c.Name, Version: c.Version, Policy: c.Policy, Declared: c.Declared, Repro: repro})
	}
	var err error
	if info.Shard, err = f.shard(info, len(tasks)); err != nil {
		return err
	}
	report := reports.New(info, results)
	paths, err := reports.WriteAll(f.out, report)
	if err != nil {
		err = fmt.Errorf("writing the reports: %w", err)
	}
	// If the files cannot be written the terminal still can.
	shown := tell(cmd, report, reports.TerminalOptions{
		Color: reports.ColorWanted(f.color, os.Getenv, isTerminal(out)), Width: width(out), Verbose: f.verbose, Dir: f.out,
	}, f.annotate)
	if err := errors.Join(err, shown); err != nil {
		return failure{err}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "reports: %s\n", strings.Join(paths, " "))
	code := report.ExitCode(level)
	if len(tasks) == 0 {
		code = reports.ExitOK // more shards than there is to run: nothing of this one is undecided
	}
	if cause := context.Cause(cmd.Context()); cause != nil && code != reports.ExitFindings {
		code = reports.ExitUndecided
	}
	if code != 0 {
		return exitError(code)
	}
	return nil
}

func isTerminal(w any) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

func width(w any) int {
	if file, ok := w.(*os.File); ok {
		if n, _, err := term.GetSize(int(file.Fd())); err == nil {
			return n
		}
	}
	return 0
}
