package faults_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/retrychaos/retrychaos/faults"
)

var update = flag.Bool("update", false, "write README.md anew; refused in CI")

// TestPageIsTrue holds README.md against the catalogue that it is made from.
func TestPageIsTrue(t *testing.T) {
	const file = "README.md"
	want := page()
	got, err := os.ReadFile(file)
	if err == nil && string(got) == want {
		return
	}
	if !*update {
		t.Fatalf("%s is old: go test ./faults -run TestPageIsTrue -update", file)
	}
	if os.Getenv("CI") != "" {
		t.Fatalf("%s is old, and is not rewritten in CI", file)
	}
	if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Errorf("%s is rewritten: look at its difference, then run again without -update", file)
}

// page is the catalogue as Markdown.
func page() string {
	var b strings.Builder
	b.WriteString(`# The fault catalogue

<!-- Made from the catalogue; go test ./faults -run TestPageIsTrue -update writes it anew. -->

A fault is written ` + "`WORD[@phase] key=value …`" + ` in scenarios, flags and reports. Where it strikes, its phase, is relative to the commit, the instant at which the server's side effect becomes real: ` + "`before_commit`, `after_commit`, or `commit_late`" + `, after the client has given up. The same text comes from ` + "`retrychaos explain fault NAME`" + `.

| fault | what happens on the wire | a client fails at | category |
|---|---|---|---|
`)
	for _, e := range faults.Catalogue() {
		fmt.Fprintf(&b, "| [`%s`](#%s) | %s | %s | %s |\n", e.Name, e.Name, cell(e.Doc), e.Where, e.Category)
	}
	b.WriteString("\nEvery fault also takes:\n\n")
	for _, p := range faults.CommonParams() {
		fmt.Fprintf(&b, "- `%s`: %s\n", p.Name, cell(p.Doc))
	}
	for _, e := range faults.Catalogue() {
		_, text, _ := strings.Cut(e.Explain(), "\n\n")
		fmt.Fprintf(&b, "\n## %s\n\n```text\n%s```\n", e.Name, text)
	}
	return b.String()
}

func cell(s string) string { return strings.ReplaceAll(s, "|", `\|`) }
