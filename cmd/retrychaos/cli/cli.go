// Package cli is the command line of retrychaos: flags in, packages called, text out. It is a package so
// that a program with clients of its own can have the same commands.
//
// Exit status: 0 no finding at the chosen level; 1 findings; 2 wrong usage or input; 3 undecided, or a
// fault of the harness itself.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/internal/nearest"
	"github.com/retrychaos/retrychaos/reports"
)

// Exit statuses; the others come from package reports.
const exitUsage = 2

// A NamedClient is a client that run --client knows by its name.
type NamedClient struct {
	harness.Client
	Doc string // one line, for list clients
}

// Main runs the command line of the process and exits. The clients are added to the built-in ones. The first
// SIGINT or SIGTERM ends a run early, with reports of what was done; a second one ends the process.
func Main(clients ...NamedClient) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	// net/http writes to the standard logger what it thinks of a server that breaks on purpose.
	log.SetOutput(io.Discard)
	code := Execute(ctx, os.Args[1:], os.Stdout, os.Stderr, clients...)
	stop()
	os.Exit(code)
}

// exitError carries an exit status without a message of its own: the output has said it all.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// failure is an error that is no fault of the command line: the output could not be written.
type failure struct{ error }

func (f failure) Unwrap() error { return f.error }

// Execute runs a command line and returns its exit status. Results go to stdout, progress and errors to
// stderr.
func Execute(ctx context.Context, args []string, stdout, stderr io.Writer, clients ...NamedClient) int {
	root := newRoot(append(builtIn(), clients...))
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	var exit exitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return int(exit)
	}
	fmt.Fprintf(stderr, "retrychaos: %v\n", err)
	if errors.As(err, new(failure)) {
		return reports.ExitUndecided
	}
	return exitUsage
}

func newRoot(clients []NamedClient) *cobra.Command {
	root := &cobra.Command{
		Use:   "retrychaos",
		Short: "Find out whether an HTTP client's retries are safe",
		Long: `retrychaos runs an HTTP client through scenarios of failure against a server that
breaks on purpose, keeps a ledger of what really happened, and judges the client's
retries: no duplicate side effects, bounded attempts, waits that spread.

Exit status: 0 no finding at the chosen level, 1 findings, 2 wrong usage or input,
3 undecided or a fault of the harness itself.`,
		Example: `  retrychaos run
  retrychaos run --exec 'curl -sS --fail --retry 3 -X {method} -d {body} {url}' --scenario 'duplicates*'
  retrychaos list scenarios`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args:          onlyCommands,
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return helpful(cmd, err) })
	root.AddCommand(newRun(clients), newList(clients), newExplain(), newHerd(clients), newReport(), newLint(), newServe(), newVersion())
	return root
}

// helpful adds where to read on to a complaint about the command line.
func helpful(cmd *cobra.Command, err error) error {
	return fmt.Errorf("%w (see `%s --help`)", err, cmd.CommandPath())
}

// onlyCommands is for commands that do nothing without a further word.
func onlyCommands(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	return helpful(cmd, fmt.Errorf("unknown command %q%s", args[0], nearest.Hint(args[0], names)))
}

// noArgs is for commands that take flags only.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return helpful(cmd, fmt.Errorf("%s takes flags only, and %q is none", cmd.CommandPath(), args[0]))
}
