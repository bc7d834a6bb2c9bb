package cli

import (
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/retrychaos/retrychaos/reports"
)

func newReportRender() *cobra.Command {
	var (
		look   look
		format string
		out    string
		level  string
	)
	formats := append([]string{"terminal", "annotations", "findings", "baseline"}, reports.Formats()...)
	cmd := &cobra.Command{
		Use:                   "render REPORT [flags]",
		DisableFlagsInUseLine: true,
		Short:                 "A stored report in another format",
		Long: `A stored report in another format: one to standard output with --format, or all files
into a folder with --out. Exit status: 0, however the run ended; 2 for wrong usage or input.`,
		Example: `  retrychaos report render retrychaos-report
  retrychaos report render old.json --format junit > junit.xml
  retrychaos report render old.json --level must --out again
  retrychaos report render matrix.json --format findings > findings.md       # whom each question shows
  retrychaos report render old.json --format baseline > known-failing.yaml   # accept what fails today`,
		Args: exactly(1, "one report"),
		RunE: func(cmd *cobra.Command, args []string) error {
			lvl, err := levelFlag(level)
			errs := []error{look.check(), err, oneOf("format", format, formats...)}
			if cmd.Flags().Changed("out") && cmd.Flags().Changed("format") {
				errs = append(errs, errors.New("--format writes one format to standard output, and --out all into a folder: give one of them"))
			}
			if err := errors.Join(errs...); err != nil {
				return err
			}
			r, _, err := reports.ReadFile(args[0])
			if err != nil {
				return err
			}
			if lvl != "" {
				r.Level = lvl
			}
			if cmd.Flags().Changed("out") {
				return keep(cmd, r, out)
			}
			w := cmd.OutOrStdout()
			switch format {
			case "terminal":
				err = reports.WriteTerminal(w, r, reports.TerminalOptions{Color: look.colored(cmd), Width: look.columns(cmd), Verbose: look.verbose})
			case "annotations":
				err = reports.WriteAnnotations(w, r)
			case "findings":
				err = reports.WriteFindings(w, r)
			case "baseline":
				err = reports.WriteBaseline(w, r)
			default:
				err = reports.Write(w, r, format)
			}
			if err != nil {
				return failure{fmt.Errorf("writing the report: %w", err)}
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&format, "format", "terminal", "`FORMAT` for standard output: "+anyOf(formats))
	fl.StringVar(&out, "out", "", "`FOLDER` for all files of a report")
	fl.StringVar(&level, "level", "", "least `LEVEL` whose findings count: must, should or may (default: the report's)")
	look.flags(cmd)
	complete(cmd, "format", formats...)
	complete(cmd, "level", "must", "should", "may")
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

// anyOf writes words as "a, b or c".
func anyOf(words []string) string {
	words = slices.Clone(words)
	text := words[0]
	for i, w := range words[1:] {
		if i == len(words)-2 {
			text += " or " + w
		} else {
			text += ", " + w
		}
	}
	return text
}
