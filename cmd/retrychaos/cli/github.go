package cli

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/retrychaos/retrychaos/reports"
)

// github is what GitHub Actions is told on standard output.
type github struct{ annotate bool }

func onGitHub(env func(string) string) bool { return env("GITHUB_ACTIONS") == "true" }

// quoted writes what may hold text of a client. The runner reads commands in any line of the output, so it is told
// to stop for that long, with a word that no client can know.
func (g github) quoted(w io.Writer, show func(io.Writer) error) error {
	if !g.annotate {
		return show(w)
	}
	word := rand.Text()
	if _, err := fmt.Fprintf(w, "::stop-commands::%s\n", word); err != nil {
		return err
	}
	if err := show(w); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "::%s::\n", word)
	return err
}

func (g github) annotations(w io.Writer, write func(io.Writer) error) error {
	if !g.annotate {
		return nil
	}
	return write(w)
}

// summaryLimit is the size at which GitHub drops the summary of a step, and the least that is worth a page.
const (
	summaryLimit = 1 << 20
	summaryLeast = 8 << 10
)

// stepSummary appends a page to the file of GITHUB_STEP_SUMMARY, if there is one, as long as the whole stays under
// what GitHub takes.
func stepSummary(cmd *cobra.Command, env func(string) string, write func(io.Writer, reports.MarkdownOptions) error) error {
	path := env("GITHUB_STEP_SUMMARY")
	if path == "" {
		return nil
	}
	room := summaryLimit - 1
	if info, err := os.Stat(path); err == nil {
		room -= int(min(info.Size(), summaryLimit)) + 1
	}
	if room < summaryLeast {
		fmt.Fprintf(cmd.ErrOrStderr(), "retrychaos: the summary of this step is full: nothing was added to %s\n", path)
		return nil
	}
	var page bytes.Buffer
	page.WriteByte('\n')
	if err := write(&page, reports.MarkdownOptions{MaxBytes: min(room-1, reports.DefaultMaxBytes)}); err != nil {
		return failure{fmt.Errorf("the summary of this step: %w", err)}
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return failure{fmt.Errorf("the summary of this step: %w", err)}
	}
	_, err = f.Write(page.Bytes())
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return failure{fmt.Errorf("the summary of this step: %w", err)}
	}
	return nil
}

// tell shows a report: at the terminal, as annotations where GitHub reads the output, and in the summary of the step.
func tell(cmd *cobra.Command, r *reports.Report, o reports.TerminalOptions, annotate bool) error {
	out := cmd.OutOrStdout()
	gh := github{annotate: annotate || onGitHub(os.Getenv)}
	err := gh.quoted(out, func(w io.Writer) error { return reports.WriteTerminal(w, r, o) })
	if err == nil {
		err = gh.annotations(out, func(w io.Writer) error { return reports.WriteAnnotations(w, r) })
	}
	if err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	return stepSummary(cmd, os.Getenv, func(w io.Writer, o reports.MarkdownOptions) error { return reports.WriteMarkdown(w, r, o) })
}
