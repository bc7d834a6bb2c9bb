package cli

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/reports"
)

func newReport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Compare, merge, render and recheck stored reports",
		Long: `Work on the reports that runs have left: what changed between two of them, one of the
shards of a run, other formats, and the stored histories judged by today's checks.
Nothing is run. A report is a report.json, or the folder that holds it.`,
		Example: `  retrychaos report diff old new
  retrychaos report merge shards/* --out retrychaos-report
  retrychaos report render retrychaos-report --format markdown
  retrychaos report recheck old-report --out rechecked`,
		Args: onlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newReportDiff(), newReportMerge(), newReportRender(), newReportRecheck())
	return cmd
}

// look is how a report is shown at the terminal.
type look struct {
	color   string
	width   int
	verbose bool
}

func (l *look) flags(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&l.color, "color", "auto", "`WHEN` to colour: auto, always or never; with auto, NO_COLOR and FORCE_COLOR are obeyed")
	fl.IntVar(&l.width, "width", 0, "`COLUMNS` to write in (default: the terminal's, or 80)")
	fl.BoolVarP(&l.verbose, "verbose", "v", false, "leave nothing out")
	complete(cmd, "color", "auto", "always", "never")
}

func (l *look) check() error {
	err := oneOf("color", l.color, "auto", "always", "never")
	if l.width < 0 {
		err = errors.Join(err, fmt.Errorf("--width %d: it must be positive", l.width))
	}
	return err
}

func (l *look) columns(cmd *cobra.Command) int {
	if l.width > 0 {
		return l.width
	}
	return width(cmd.OutOrStdout())
}

func (l *look) colored(cmd *cobra.Command) bool {
	return reports.ColorWanted(l.color, os.Getenv, isTerminal(cmd.OutOrStdout()))
}

// levelFlag is --level where it may be left out, in favour of the report's own.
func levelFlag(text string) (check.Level, error) {
	if text == "" {
		return "", nil
	}
	return check.Level(strings.ToUpper(text)), oneOf("level", text, "must", "should", "may")
}

// exactly is for commands with so many reports as arguments.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == n {
			return nil
		}
		return helpful(cmd, fmt.Errorf("%s takes %s, and %d were given", cmd.CommandPath(), what, len(args)))
	}
}

// readReports reads all that are named; its errors are of all of them. One file that is named twice is an error.
func readReports(paths []string) ([]*reports.Report, error) {
	var list []*reports.Report
	var errs []error
	var files []os.FileInfo
	for _, path := range paths {
		r, file, err := reports.ReadFile(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		info, err := os.Stat(file)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if slices.ContainsFunc(files, func(o os.FileInfo) bool { return os.SameFile(o, info) }) {
			errs = append(errs, fmt.Errorf("%s is given twice", file))
			continue
		}
		files = append(files, info)
		list = append(list, r)
	}
	return list, errors.Join(errs...)
}

// exit turns a status into the error that ends the command with it.
func exit(code int) error {
	if code == reports.ExitOK {
		return nil
	}
	return exitError(code)
}
