package reports

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/scenarios"
)

// Of each question the page says whom it shows, whom it clears, and who was not judged.
func TestFindings(t *testing.T) {
	hostile := "b<script>|`*\x1b[31m"
	r := fixed(Run{Clients: []ClientInfo{{Name: "a", Version: "v1"}, {Name: hostile}, {Name: "c"}}}, []harness.Result{
		result("a", "duplicates/post-unkeyed-reset"),
		duplicated(hostile, "duplicates/post-unkeyed-503"),
		duplicated(hostile, "duplicates/post-unkeyed-reset"),
		duplicated("c", "recovery/one-503"),
	})
	golden(t, "findings.md", func(w io.Writer) error { return WriteFindings(w, r) })

	var out bytes.Buffer
	if err := WriteFindings(&out, r); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(out.String()) {
		code := strings.HasPrefix(line, "      ") // where a command stands as it is
		if strings.Contains(line, "\x1b") || strings.Contains(line, "<script") && !code {
			t.Errorf("a client's name became markup: %s", line)
		}
	}
}

// A question that no scenario answers, or that names a check there is not, would clear every client.
func TestQuestionsCanBeAnswered(t *testing.T) {
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	for _, q := range questions {
		if _, ok := check.Lookup(q.check); !ok {
			t.Errorf("%s: there is no check %s", q.title, q.check)
		}
		for _, p := range q.patterns {
			if _, err := scenarios.Match(library, p); err != nil {
				t.Errorf("%s: %v", q.title, err)
			}
		}
	}
}
