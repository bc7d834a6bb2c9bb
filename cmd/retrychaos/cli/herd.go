package cli

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/herd"
	"github.com/retrychaos/retrychaos/harness/herd/plots"
	"github.com/retrychaos/retrychaos/scenarios"
)

type herdFlags struct {
	known     []NamedClient
	policies  []string
	clients   []string
	sizes     []int
	loads     []float64
	duration  time.Duration
	workers   int
	service   time.Duration
	draw      string
	queues    []int
	full      string
	incidents []string
	timeout   time.Duration
	attempts  int
	seeds     int
	seed      uint64
	csv       string
	plots     string
	markdown  string
	quiet     bool

	settings []herd.Setting
	tested   []harness.Client
}

func newHerd(clients []NamedClient) *cobra.Command {
	f := &herdFlags{known: clients}
	cmd := &cobra.Command{
		Use:   "herd",
		Short: "Measure what many clients do to one server that can be overloaded",
		Long: `Measure what many clients do to one server that can be overloaded.

Sweeps clients × policies × capacity, in virtual time, with real clients: closed herds (--size:
so many clients start together) or open-loop load (--load: calls a second, as a part of the
server's rate). Incidents are what overloads the server. RECOVERS tells whether it gets well
again when they are over; "never" is a metastable failure, in which retries keep it down.

Exit status: 0 it was measured, whatever came of it, 2 wrong usage or input, 3 interrupted,
or a fault of the harness itself.`,
		Example: `  retrychaos herd --size 100,1000 --policy full,exponential
  retrychaos herd --load 0.7 --incident 'stall at=60s for=5s' --seeds 3 --csv runs.csv --plots plots
  retrychaos herd --size 1000 --queue 50,500 --policy none --client net/http
  retrychaos herd tables --out docs`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.resolve(cmd); err != nil {
				return err
			}
			return f.run(cmd)
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.policies, "policy", nil, "`NAME` of a policy of the bundled client, repeatable (default all): "+policyNames())
	fl.StringSliceVar(&f.clients, "client", nil, "`NAME` of a further client with its own policy, repeatable; see retrychaos list clients")
	fl.IntSliceVar(&f.sizes, "size", nil, "closed herd: `N` clients that start together, repeatable")
	fl.Float64SliceVar(&f.loads, "load", nil, "open-loop load, Poisson: the `PART` of the server's rate, such as 0.7, repeatable")
	fl.DurationVar(&f.duration, "for", 5*time.Minute, "with --load: the `TIME` for which calls start")
	fl.IntVar(&f.workers, "workers", 10, "`N` attempts that the server works on at once")
	fl.DurationVar(&f.service, "service", 100*time.Millisecond, "mean `TIME` that a worker is busy with one attempt")
	fl.StringVar(&f.draw, "distribution", "fixed", "`WHICH` distribution service times have: fixed, exponential or lognormal")
	fl.IntSliceVar(&f.queues, "queue", []int{500}, "`N` attempts that can wait, repeatable")
	fl.StringVar(&f.full, "full", "503", "`WHAT` meets an attempt when the queue is full: 503, 429, refuse or drop")
	fl.StringArrayVar(&f.incidents, "incident", nil, "`INCIDENT`, repeatable: stall, slow, refuse, burst or restart, with at=, for=, factor=, count=")
	fl.DurationVar(&f.timeout, "timeout", time.Second, "`TIME` after which an attempt is given up: by a policy, or by the transport of a --client")
	fl.IntVar(&f.attempts, "attempts", 4, "`N` attempts a call of policies that retry")
	fl.IntVar(&f.seeds, "seeds", 1, "`N` runs of each, with one seed each")
	fl.Uint64Var(&f.seed, "seed", 1, "first `SEED`")
	fl.StringVar(&f.csv, "csv", "", "`FILE` for the runs as CSV")
	fl.StringVar(&f.plots, "plots", "", "`FOLDER` for plots (SVG) of the first seed")
	fl.StringVar(&f.markdown, "markdown", "", "`FILE` for the table as a page of Markdown")
	fl.BoolVarP(&f.quiet, "quiet", "q", false, "no progress")
	complete(cmd, "distribution", "fixed", "exponential", "lognormal")
	complete(cmd, "full", "503", "429", "refuse", "drop")
	_ = cmd.MarkFlagDirname("plots")
	cmd.AddCommand(newHerdTables())
	return cmd
}

func policyNames() string {
	var names []string
	for _, p := range herd.Policies() {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// resolve checks every flag before anything runs.
func (f *herdFlags) resolve(cmd *cobra.Command) error {
	var errs []error
	if f.seeds < 1 {
		errs = append(errs, fmt.Errorf("--seeds %d: it must be positive", f.seeds))
	}
	if f.seed < 1 {
		errs = append(errs, errors.New("--seed 0: a seed is 1 or more"))
	}
	if f.timeout <= 0 {
		errs = append(errs, fmt.Errorf("--timeout %v: it must be positive", f.timeout))
	}
	if f.attempts < 1 {
		errs = append(errs, fmt.Errorf("--attempts %d: it must be positive", f.attempts))
	}
	if len(f.loads) == 0 && cmd.Flags().Changed("for") {
		errs = append(errs, errors.New("--for is for open-loop load: say --load, or leave it out"))
	}
	if (len(f.sizes) > 0) == (len(f.loads) > 0) {
		errs = append(errs, errors.New("say --size for closed herds, or --load for open-loop load, and not both"))
	}
	for _, n := range f.sizes {
		if n < 1 {
			errs = append(errs, fmt.Errorf("--size %d: a herd has one client at least", n))
		}
	}
	for _, load := range f.loads {
		if !(load > 0) || math.IsInf(load, 0) {
			errs = append(errs, fmt.Errorf("--load %v: it is a part of the server's rate above 0, such as 0.7", load))
		}
	}
	for flag, path := range map[string]string{"csv": f.csv, "markdown": f.markdown} {
		if path == "" {
			continue
		}
		// Before anything runs: it would be told at the end, when all is lost.
		if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
			errs = append(errs, fmt.Errorf("--%s %s: there is no folder %s", flag, path, filepath.Dir(path)))
		}
	}
	bad := len(errs) > 0 // the settings would say the same in other words
	if errs = append(errs, f.resolveClients()); bad {
		return errors.Join(errs...)
	}
	errs = append(errs, f.resolveSettings())
	return errors.Join(errs...)
}

func (f *herdFlags) resolveClients() error {
	var errs []error
	names := f.policies
	if len(names) == 0 && len(f.clients) == 0 {
		names = strings.Split(policyNames(), ", ")
	}
	policies, err := herd.FindPolicies(names...)
	if err != nil {
		errs = append(errs, fmt.Errorf("--policy: %w", err))
	}
	for _, p := range policies {
		f.tested = append(f.tested, p.Client(f.timeout, f.attempts))
	}
	for _, name := range f.clients {
		c, err := findClient(f.known, name)
		if err != nil {
			errs = append(errs, fmt.Errorf("--client: %w", err))
		}
		f.tested = append(f.tested, c)
	}
	return errors.Join(errs...)
}

func (f *herdFlags) resolveSettings() error {
	var incidents []scenarios.Incident
	for _, text := range f.incidents {
		i, err := herd.ParseIncident(text)
		if err != nil {
			return fmt.Errorf("--incident: %w", err)
		}
		incidents = append(incidents, i)
	}
	for _, queue := range f.queues {
		s := herd.Setting{
			Capacity: scenarios.Capacity{Workers: f.workers, Service: f.service, Distribution: scenarios.Distribution(f.draw),
				Queue: queue, Full: scenarios.Overflow(f.full)},
			Incidents: incidents, For: f.duration, Timeout: f.timeout, Attempts: f.attempts,
		}
		for _, n := range f.sizes {
			s.Clients, s.Name = n, fmt.Sprintf("n%d-q%d", n, queue)
			f.settings = append(f.settings, s)
		}
		for _, load := range f.loads {
			s.Load, s.Name = load, fmt.Sprintf("load%d-q%d", int(100*load+0.5), queue)
			f.settings = append(f.settings, s)
		}
	}
	for _, s := range f.settings {
		if _, err := s.Scenario(); err != nil {
			return err
		}
	}
	return nil
}

func (f *herdFlags) run(cmd *cobra.Command) error {
	t := bubbles()
	defer oneProcessor()()
	progress := newSteps(cmd, f.quiet)
	step := progress.unlessOver(cmd.Context())
	var rows []herd.Row
	var all, first []herd.Run
	for _, s := range f.settings {
		for i, c := range f.tested {
			// The policies of the bundled client have a timeout of their own.
			if s.HeaderTimeout = 0; i >= len(f.tested)-len(f.clients) {
				s.HeaderTimeout = f.timeout
			}
			var runs []herd.Run
			for i := range f.seeds {
				seed := f.seed + uint64(i)
				if err := step("%s, %s, seed %d", s.Name, c.Name, seed); err != nil {
					progress.close()
					return err
				}
				r, err := herd.Do(t, c, s, seed)
				if err != nil {
					return err
				}
				runs = append(runs, r)
			}
			rows, all, first = append(rows, herd.Sum(runs)), append(all, runs...), append(first, runs[0])
		}
	}
	progress.close()
	if f.csv != "" {
		if err := writeFile(f.csv, func(w *os.File) error { return herd.WriteCSV(w, all) }); err != nil {
			return err
		}
	}
	if f.plots != "" {
		if err := f.plot(first, rows); err != nil {
			return err
		}
	}
	if f.markdown != "" {
		if err := writeFile(f.markdown, func(w *os.File) error {
			return herd.WriteMarkdown(w, "What clients make of an overloaded server", filepath.Base(os.Args[0])+" "+shellquote.Join(os.Args[1:]...), f.settings, rows)
		}); err != nil {
			return err
		}
	}
	return herd.WriteTable(cmd.OutOrStdout(), rows)
}

func writeFile(path string, write func(w *os.File) error) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(file), file.Close())
}

// plot draws the runs of the first seed, setting by setting.
func (f *herdFlags) plot(first []herd.Run, rows []herd.Row) error {
	if err := os.MkdirAll(f.plots, 0o755); err != nil {
		return err
	}
	save := func(name string, svg []byte, err error) error {
		if err != nil || svg == nil {
			return err
		}
		return os.WriteFile(filepath.Join(f.plots, name+".svg"), svg, 0o644)
	}
	n := len(f.tested)
	for i := 0; i < len(first); i += n {
		runs := first[i : i+n]
		name := runs[0].Setting.Name
		svg, err := plots.Arrivals(runs)
		if err := save("arrivals-"+name, svg, err); err != nil {
			return err
		}
		svg, err = plots.Goodput(runs)
		if err := save("goodput-"+name, svg, err); err != nil {
			return err
		}
		for _, r := range runs {
			svg, err = plots.Waves(r)
			if err := save("waves-"+name+"-"+strings.ReplaceAll(r.Client, "/", "-"), svg, err); err != nil {
				return err
			}
		}
	}
	if len(f.sizes) < 2 {
		return nil
	}
	for i, queue := range f.queues {
		part := len(f.sizes) * n
		svg, err := plots.CallsAgainstN(rows[i*part:(i+1)*part], f.sizes)
		if err := save(fmt.Sprintf("attempts-q%d", queue), svg, err); err != nil {
			return err
		}
	}
	return nil
}
