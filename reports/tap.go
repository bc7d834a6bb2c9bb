package reports

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
)

// FileTAP is the name of the report for readers of the Test Anything Protocol.
const FileTAP = "report.tap"

// WriteTAP writes the report by version 14 of the Test Anything Protocol: one test point a result. What a client
// did wrong is not ok, and so is what could not be judged, whose severity is "unknown"; a failure that is known and
// accepted is a TODO with its reason; what was not run is a SKIP with its reason.
func WriteTAP(w io.Writer, r *Report) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "TAP version 14\n1..%d", len(r.Results))
	if len(r.Results) == 0 {
		b.WriteString(" # SKIP nothing was run")
	}
	b.WriteString("\n")
	mixed := len(r.worlds()) > 1
	for i := range r.Results {
		res := &r.Results[i]
		name := res.Client + " " + res.Scenario
		if mixed {
			name += " (" + res.World + ")"
		}
		status := StatusAt(res, r.Level)
		accepted := slices.ContainsFunc(res.Verdicts, func(v check.Verdict) bool { return v.Known && v.Level.AtLeast(r.Level) })
		switch {
		case status == check.Pass:
			fmt.Fprintf(b, "ok %d - %s\n", i+1, tapText(name))
		case status == check.Skipped && accepted:
			fmt.Fprintf(b, "not ok %d - %s # TODO %s\n", i+1, tapText(name), tapText(res.Reason))
		case status == check.Skipped:
			reason := res.Reason
			if reason == "" {
				reason = "no check applies"
			}
			fmt.Fprintf(b, "ok %d - %s # SKIP %s\n", i+1, tapText(name), tapText(reason))
		default:
			fmt.Fprintf(b, "not ok %d - %s\n", i+1, tapText(name))
			if err := r.tapDiagnostics(b, res, status); err != nil {
				return fmt.Errorf("tap: %w", err)
			}
		}
	}
	return b.Flush()
}

// tapDiagnostics writes the YAML block of a test point. Its texts are JSON strings, which YAML reads.
func (r *Report) tapDiagnostics(w io.Writer, res *harness.Result, status check.Status) error {
	severity := "fail"
	if status == check.Unknown {
		severity = "unknown"
	}
	fmt.Fprintf(w, "  ---\n  severity: %s\n  seed: %d\n  findings:\n", severity, res.Seed)
	for _, f := range findingsOf(res, r.Level) {
		g := &group{client: res.Client, verdict: f.Verdict, harness: f.own, results: []*harness.Result{res}}
		for i, field := range [][2]string{{"check", f.Check}, {"status", string(f.Status)}, {"level", string(f.Level)},
			{"message", f.Reason}, {"rule", g.holds()}, {"source", g.source()}, {"reproduce", r.reproduce(g)}} {
			if field[1] == "" {
				continue
			}
			text, err := marshalString(plain(field[1]))
			if err != nil {
				return err
			}
			mark := "    "
			if i == 0 {
				mark = "  - "
			}
			fmt.Fprintf(w, "  %s%s: %s\n", mark, field[0], text)
		}
	}
	_, err := fmt.Fprint(w, "  ...\n")
	return err
}

func marshalString(s string) (string, error) {
	text, err := json.Marshal(s)
	return string(text), err
}

// tapText escapes hostile text for the line of a test point: a hash would begin a directive.
func tapText(s string) string {
	return strings.NewReplacer(`\`, `\\`, "#", `\#`).Replace(strings.TrimSpace(plain(s)))
}
