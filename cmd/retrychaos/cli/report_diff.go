package cli

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/retrychaos/retrychaos/internal/nearest"
	"github.com/retrychaos/retrychaos/reports"
)

func newReportDiff() *cobra.Command {
	var (
		look     look
		format   string
		failOn   string
		level    string
		old, new []string
		annotate bool
	)
	cmd := &cobra.Command{
		Use:                   "diff OLD NEW [flags]",
		DisableFlagsInUseLine: true,
		Short:                 "What changed between two reports",
		Long: `What changed between two reports: broken, fixed, newly unknown, no longer unknown, other
behaviour by the same verdict (attempts, waits, effects, kind of error, requests resent
by net/http), added and removed; the worst first, with both timelines.

Clients are matched by their names; --old-client and --new-client match two that have
different ones. What two runs of one client differ in is no change: waits that a client
draws are compared over all its scenarios, with a statistical test. Scenarios that draw
from the seed are compared only where the seeds are equal: give both runs one --seed.

Exit status: 0 no regression; 1 a regression, which is what --fail-on says: broken (the
default), unknown (or newly unknown), changed (or any change but additions), never; 2 wrong usage or
input; 3 no regression, but something is newly unknown, or nothing was compared.`,
		Example: `  retrychaos report diff main-report retrychaos-report
  retrychaos report diff old.json new.json --old-client resty2 --new-client resty3
  retrychaos report diff old new --format markdown > comment.md
  retrychaos report diff old new --format html > diff.html
  retrychaos report diff old new --fail-on changed --level must`,
		Args: exactly(2, "two reports, the old and the new one"),
		RunE: func(cmd *cobra.Command, args []string) error {
			lvl, err := levelFlag(level)
			if err := errors.Join(look.check(), err, oneOf("format", format, "terminal", "markdown", "html", "json"),
				oneOf("fail-on", failOn, "broken", "unknown", "changed", "never")); err != nil {
				return err
			}
			list, err := readReports(args)
			if err != nil {
				return err
			}
			pairs, err := pairs(list[0], list[1], old, new)
			if err != nil {
				return err
			}
			c := reports.Compare(list[0], list[1], reports.DiffOptions{Clients: pairs, Level: lvl})
			if len(c.Clients) == 0 {
				return fmt.Errorf("the reports have no client in common: %s has %s, %s has %s; match two with --old-client and --new-client",
					args[0], named(list[0]), args[1], named(list[1]))
			}
			return showDiff(cmd, c, look, format, reports.FailOn(failOn), annotate)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&format, "format", "terminal", "`FORMAT`: terminal, markdown (that fits into the comment of a pull request), html or json")
	fl.StringVar(&failOn, "fail-on", "broken", "`WHAT` is a regression: broken, unknown, changed or never")
	fl.StringVar(&level, "level", "", "least `LEVEL` whose verdicts count: must, should or may (default: the new report's)")
	fl.StringSliceVar(&old, "old-client", nil, "`NAME` in the old report of a client that has another one in the new; repeatable")
	fl.StringSliceVar(&new, "new-client", nil, "`NAME` in the new report of the client of --old-client; repeatable")
	fl.BoolVar(&annotate, "annotations", false, "write GitHub annotations to stdout (default: where GITHUB_ACTIONS is true)")
	look.flags(cmd)
	complete(cmd, "format", "terminal", "markdown", "html", "json")
	complete(cmd, "fail-on", "broken", "unknown", "changed", "never")
	complete(cmd, "level", "must", "should", "may")
	return cmd
}

// pairs matches the clients that are named in both flags, in their order.
func pairs(a, b *reports.Report, old, new []string) ([]reports.ClientPair, error) {
	if len(old) != len(new) {
		return nil, fmt.Errorf("--old-client names %s and --new-client %s: they go in pairs", plural(len(old), "client"), plural(len(new), "client"))
	}
	var list []reports.ClientPair
	var errs []error
	seenOld, seenNew := map[string]bool{}, map[string]bool{}
	for i := range old {
		if seenOld[old[i]] || seenNew[new[i]] {
			errs = append(errs, fmt.Errorf("--old-client %s --new-client %s: one of them is in another pair already", old[i], new[i]))
		}
		seenOld[old[i]], seenNew[new[i]] = true, true
		errs = append(errs, hasClient("--old-client", a, old[i]), hasClient("--new-client", b, new[i]))
		list = append(list, reports.ClientPair{Old: old[i], New: new[i]})
	}
	return list, errors.Join(errs...)
}

func hasClient(flag string, r *reports.Report, name string) error {
	var names []string
	for _, c := range r.Clients {
		if c.Name == name {
			return nil
		}
		names = append(names, c.Name)
	}
	return fmt.Errorf("%s %q: the report has no such client%s; it has %s", flag, name, nearest.Hint(name, names), named(r))
}

// named lists a report's clients, for an error.
func named(r *reports.Report) string {
	text := ""
	for i, c := range r.Clients {
		if i > 0 {
			text += ", "
		}
		if i == 8 {
			return text + fmt.Sprintf("and %d more", len(r.Clients)-i)
		}
		text += fmt.Sprintf("%q", c.Name)
	}
	if text == "" {
		return "none"
	}
	return text
}

// showDiff writes a comparison, tells it to a CI service that is there, and ends the command.
func showDiff(cmd *cobra.Command, c *reports.Comparison, look look, format string, on reports.FailOn, annotate bool) error {
	out := cmd.OutOrStdout()
	show := func(w io.Writer) error {
		switch format {
		case "markdown":
			return reports.WriteDiffMarkdown(w, c, reports.MarkdownOptions{MaxBytes: reports.CommentMaxBytes})
		case "html":
			return reports.WriteDiffHTML(w, c, reports.HTMLOptions{})
		case "json":
			return c.WriteJSON(w)
		}
		return reports.WriteDiffTerminal(w, c, reports.DiffTerminalOptions{Color: look.colored(cmd), Width: look.columns(cmd), Verbose: look.verbose})
	}
	// Annotations would spoil a format that is read by programs.
	gh := github{annotate: annotate || format == "terminal" && onGitHub(os.Getenv)}
	err := gh.quoted(out, show)
	if err == nil {
		err = gh.annotations(out, func(w io.Writer) error { return reports.WriteDiffAnnotations(w, c) })
	}
	if err != nil {
		return failure{fmt.Errorf("writing the comparison: %w", err)}
	}
	if err := stepSummary(cmd, os.Getenv, func(w io.Writer, o reports.MarkdownOptions) error { return reports.WriteDiffMarkdown(w, c, o) }); err != nil {
		return err
	}
	return exit(c.ExitCode(on))
}
