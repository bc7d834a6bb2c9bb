package herd

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"
	"time"
)

// WriteTable writes rows for people.
func WriteTable(w io.Writer, rows []Row) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, "SETTING\tCLIENT\tRECOVERS\tAFTER\tATTEMPTS A CALL\tPEAK A SECOND\tSUCCEED\tWASTED WORK\tOVER AT")
	for _, r := range rows {
		fmt.Fprintf(tw, "%s\t%s\t%s\t%s\t%.2f\t%.0f\t%.1f %%\t%.0f %%\t%v\n", r.Setting, r.Client, r.Verdict(), r.took(),
			r.After, r.Peak, 100*r.Good, 100*r.Wasted, r.Done.Round(100*time.Millisecond))
	}
	return tw.Flush()
}

// WriteMarkdown writes rows as a page: what was measured, by which command, and what came of it.
func WriteMarkdown(out io.Writer, title, command string, settings []Setting, rows []Row) error {
	w := &writer{w: out}
	w.line("# %s\n", title)
	w.line("Measured by `%s`. Virtual time, real clients, each as it comes: with its own waits and budget, or none. "+
		"The application gives an attempt up after %v, where the client has no timeout of its own that is shorter: by the ResponseHeaderTimeout of its transport.\n", command, settings[0].Timeout)
	for _, s := range settings {
		w.line("- **%s**: %s", s.Name, s)
	}
	w.line("\nA server *recovers* when nine of ten calls that start succeed again, and go on to. *Keeps it down*, or costs it more than it should: `load.amplification` " +
		"fails. A server that does not recover under clients that hardly retry is not their fault.\n")
	w.line("| client | setting | recovers | after | attempts a call | most attempts a second | calls that succeed | work for clients that had left | load.amplification |")
	w.line("|---|---|---|---|---|---|---|---|---|")
	for _, r := range rows {
		verdict := "holds"
		switch {
		case r.Failed == r.Runs:
			verdict = "**fails**"
		case r.Failed > 0:
			verdict = fmt.Sprintf("**fails** in %d of %d", r.Failed, r.Runs)
		}
		w.line("| %s | %s | %s | %s | %.2f | %.0f | %.0f %% | %.0f %% | %s |", r.Client, r.Setting, r.Verdict(), r.took(), r.After, r.Peak, 100*r.Good, 100*r.Wasted, verdict)
	}
	return w.err
}

// String tells what the server is, what happens to it, and the load.
func (s Setting) String() string {
	text := fmt.Sprintf("%d workers, %v an attempt, %d can wait", s.Capacity.Workers, s.Capacity.Service, s.Capacity.Queue)
	if s.Clients > 0 {
		text += fmt.Sprintf("; %d clients start together", s.Clients)
	} else {
		text += fmt.Sprintf("; calls come at %.0f %% of what it can do, for %v", 100*s.Load, s.For)
	}
	for _, i := range s.Incidents {
		text += fmt.Sprintf("; %s from %v to %v", i.Do, i.At, i.End())
	}
	return text
}

// Verdict says in how many runs the server recovered.
func (r Row) Verdict() string {
	switch r.Recovered {
	case r.Runs:
		return "yes"
	case 0:
		return "never"
	}
	return fmt.Sprintf("in %d of %d", r.Recovered, r.Runs)
}

func (r Row) took() string {
	if r.Recovered == 0 {
		return "-"
	}
	return r.Took.Round(100 * time.Millisecond).String()
}

// WriteCSV writes the runs for machines: one line a run.
func WriteCSV(w io.Writer, runs []Run) error {
	out := csv.NewWriter(w)
	_ = out.Write([]string{"setting", "client", "seed", "clients", "load", "rate", "queue", "recovery", "recovery_s", "calls", "attempts",
		"attempts_per_call_after_trigger", "attempts_per_call_in_outage", "peak_attempts_per_call", "peak_attempts_per_s",
		"succeeded", "worked_s", "wasted_s", "overload_s", "over_at_s", "verdict"})
	seconds := func(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 3, 64) }
	number := func(f float64) string { return strconv.FormatFloat(f, 'f', 4, 64) }
	for _, r := range runs {
		l := r.Load
		good := 0
		for _, s := range l.Seconds {
			good += s.Good
		}
		_ = out.Write([]string{r.Setting.Name, r.Client, strconv.FormatUint(r.Seed, 10), strconv.Itoa(r.Setting.Clients),
			number(r.Setting.Load), number(r.Setting.Capacity.Rate()), strconv.Itoa(r.Setting.Capacity.Queue), string(l.Recovery),
			seconds(l.Took), strconv.Itoa(l.Calls), strconv.Itoa(l.Attempts), number(l.After), number(l.Outage), number(l.Peak),
			number(l.PeakRate), strconv.Itoa(good), seconds(l.Worked), seconds(l.Wasted), seconds(l.Overload), seconds(r.Took),
			string(r.Verdict.Status)})
	}
	out.Flush()
	return out.Error() // which is also that of the first Write that failed
}
