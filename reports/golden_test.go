package reports

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
)

var update = flag.Bool("update", false, "rewrite the golden files in testdata; refused in CI")

// golden compares with a file in testdata. A rewrite must be asked for, is refused where CI is set, and still
// fails the test, so that nobody takes a rewriting run for a passing one.
func golden(t *testing.T, name string, write func(io.Writer) error) {
	t.Helper()
	var got bytes.Buffer
	if err := write(&got); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join("testdata", name)
	want, err := os.ReadFile(path)
	if err == nil && bytes.Equal(want, got.Bytes()) {
		return
	}
	if !*update {
		t.Fatalf("%s differs from the golden file (-want +got); if the change is meant, look at it and run go test ./reports -update\n%s",
			path, cmp.Diff(string(want), got.String()))
	}
	if os.Getenv("CI") != "" {
		t.Fatal("golden files are not rewritten in CI")
	}
	if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Errorf("%s is rewritten: look at its difference, then run again without -update", path)
}

func TestGolden(t *testing.T) {
	one, three := oneClient(), threeClients()
	for name, write := range map[string]func(io.Writer) error{
		"one.json":     one.WriteJSON,
		"one.txt":      func(w io.Writer) error { return WriteTerminal(w, one, TerminalOptions{Dir: "retrychaos-report"}) },
		"one-long.txt": func(w io.Writer) error { return WriteTerminal(w, one, TerminalOptions{Verbose: true, Width: 120}) },
		"one-color.txt": func(w io.Writer) error {
			return WriteTerminal(w, one, TerminalOptions{Color: true, Width: 100, MaxFindings: 1})
		},
		"one.xml":   func(w io.Writer) error { return WriteJUnit(w, one) },
		"one.md":    func(w io.Writer) error { return WriteMarkdown(w, one, MarkdownOptions{}) },
		"three.txt": func(w io.Writer) error { return WriteTerminal(w, three, TerminalOptions{Dir: "retrychaos-report"}) },
		"three.md":  func(w io.Writer) error { return WriteMarkdown(w, three, MarkdownOptions{}) },
		"empty.txt": func(w io.Writer) error { return WriteTerminal(w, fixed(Run{}, nil), TerminalOptions{}) },
		"empty.md":  func(w io.Writer) error { return WriteMarkdown(w, fixed(Run{}, nil), MarkdownOptions{}) },
		"one.tap":   func(w io.Writer) error { return WriteTAP(w, one) },
		"diff.txt":  func(w io.Writer) error { return WriteDiffTerminal(w, versions(), DiffTerminalOptions{}) },
		"diff-wide.txt": func(w io.Writer) error {
			return WriteDiffTerminal(w, versions(), DiffTerminalOptions{Width: 140, Verbose: true})
		},
		"diff-color.txt": func(w io.Writer) error {
			return WriteDiffTerminal(w, versions(), DiffTerminalOptions{Width: 100, Color: true, MaxChanges: 1})
		},
		"diff.md":      func(w io.Writer) error { return WriteDiffMarkdown(w, versions(), MarkdownOptions{}) },
		"diff.json":    func(w io.Writer) error { return versions().WriteJSON(w) },
		"same.txt":     func(w io.Writer) error { return WriteDiffTerminal(w, Diff(one, one), DiffTerminalOptions{}) },
		"same.md":      func(w io.Writer) error { return WriteDiffMarkdown(w, Diff(one, one), MarkdownOptions{}) },
		"one.html.txt": func(w io.Writer) error { readHTML(t, one, HTMLOptions{}).outline(t, w); return nil },
		"passing.txt":  func(w io.Writer) error { return WriteTerminal(w, passing(), TerminalOptions{}) },
	} {
		t.Run(name, func(t *testing.T) { golden(t, name, write) })
	}
}

func passing() *Report {
	r := fixed(Run{Clients: []ClientInfo{{Name: "example"}}}, sample("example")[:3])
	r.Results[0] = failing(r.Results[0], belowLevel)
	r.Results[0].Status = "pass"
	return r
}

// versions compares two versions of a client, with some of every change.
func versions() *Comparison {
	old, new := sample("example"), sample("example")
	well := func(name string) harness.Result {
		r := duplicated("example", name)
		r.Status, r.Reason, r.Verdicts = check.Pass, "", []check.Verdict{pass("effects.once")}
		c := r.History.Calls[0]
		c.Attempts, r.History.Effects = c.Attempts[:1], r.History.Effects[:1]
		c.Ended, c.Outcome = 3*ms, history.Outcome{Error: "the connection was reset", Traits: []string{history.TraitReset}}
		return r
	}
	for i := range old {
		switch {
		case old[i].History != nil && old[i].History.Scenario != "" && i%2 == 0:
			old[i] = well(old[i].Scenario) // broken
		case i == 5 || i == 7:
			new[i] = well(new[i].Scenario) // fixed
		case old[i].Scenario == "permanent/409-once":
			new[i] = result("example", new[i].Scenario)
		case old[i].Scenario == "permanent/400-once":
			new[i].Status, new[i].Verdicts, new[i].Reason = check.Skipped, nil, "the run was interrupted before it"
		}
	}
	slower := ran("timing/outage", time.Second, 2*time.Second, 4*time.Second)
	old = append(old, ran("timing/outage", time.Second, 2*time.Second), result("example", "removed/a"))
	new = append(new, slower, result("example", "added/b"))
	a, b := result("example", "recovery/noise"), duplicated("example", "recovery/noise")
	b.Seed, b.Drawn = 43, true
	c := Diff(fixed(Run{Clients: []ClientInfo{{Name: "example", Version: "1.2.0"}, {Name: "gone"}}}, append(old, a)),
		fixed(Run{Clients: []ClientInfo{{Name: "example", Version: "1.3.0"}}}, append(new, b)))
	c.Trends = []Trend{
		{Client: c.Clients[0], World: "virtual", What: "wait before retry 1", Scenarios: 87, Old: "1s (100ms to 1.9s)", New: "500ms (40ms to 960ms)", P: 3e-12, Significant: true},
		{Client: c.Clients[0], World: "virtual", What: "wait before retry 2", Scenarios: 41, Old: "2s", New: "2s", P: 1},
	}
	return c
}
