package reports

import (
	"bytes"
	"flag"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
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
		"one.xml":      func(w io.Writer) error { return WriteJUnit(w, one) },
		"one.md":       func(w io.Writer) error { return WriteMarkdown(w, one, MarkdownOptions{}) },
		"three.txt":    func(w io.Writer) error { return WriteTerminal(w, three, TerminalOptions{Dir: "retrychaos-report"}) },
		"three.md":     func(w io.Writer) error { return WriteMarkdown(w, three, MarkdownOptions{}) },
		"empty.txt":    func(w io.Writer) error { return WriteTerminal(w, fixed(Run{}, nil), TerminalOptions{}) },
		"empty.md":     func(w io.Writer) error { return WriteMarkdown(w, fixed(Run{}, nil), MarkdownOptions{}) },
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
