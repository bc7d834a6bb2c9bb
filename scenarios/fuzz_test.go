package scenarios

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
)

// Whatever the file holds, Load says what is wrong with positions, or gives scenarios that can be written
// and read again. It never panics.
func FuzzLoad(f *testing.F) {
	files, err := fs.Glob(LibraryFS(), "*.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := fs.ReadFile(LibraryFS(), name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data[:min(len(data), 1500)])
	}
	const head = "family: fam\nscenarios:\n  - name: one-{a}\n    summary: s\n    rule: key.stable\n    source: x\n"
	for _, tail := range []string{
		"    matrix: {a: [b, c]}\n    faults: ['503 body=\"it''s\"', \"ok\", 429]\n",
		"    matrix: {a: {b: [ok], c: [hang]}}\n    faults: \"{a}\"\n    calls: [{deadline: none}]\n",
		"    matrix: {a: [b]}\n    calls:\n      - {name: x, after: y}\n      - {name: y, after: x, header: {a: [b]}}\n",
		"    expect: {attempts: 2.., effects: ..1, ok: false, status: 503, error: reset}\n",
		"    storms: [{from: 1s, to: 0, fault: '503'}]\n    draw: {p: .inf, faults: [ok]}\n",
		"    <<: *x\n", "    settle: !!binary aGk=\n", "\t- a\n", "--- |\n a\n", "    ? [a]\n    : b\n", "    labels: |\n      \u00e9\n",
	} {
		f.Add([]byte(head + tail))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := Load("f.yaml", data)
		if err != nil {
			var le *LoadError
			if !errors.As(err, &le) || len(le.Problems) == 0 || list != nil {
				t.Fatalf("%d scenarios with %v", len(list), err)
			}
			lines := strings.Count(string(data), "\n") + 1
			for _, p := range le.Problems {
				if p.Msg == "" || p.File != "f.yaml" || p.Line > lines+1 || p.Line > 0 && p.Col < 1 {
					t.Fatalf("a problem without a place: %+v in %d lines", p, lines)
				}
			}
			return
		}
		for _, s := range list[:min(len(list), 3)] {
			text, err := Format(s)
			if err != nil {
				t.Fatalf("cannot be written: %v", err)
			}
			if _, err := Load("again.yaml", text); err != nil {
				t.Fatalf("does not load again: %v\n%s", err, text)
			}
		}
	})
}
