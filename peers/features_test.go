package peers_test

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/peers"
	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/scenarios"
)

// features are the rows of the table in the README of package retry: what is claimed, the rules that say so, and
// the scenarios in which they are judged.
var features = []struct {
	claim    string
	checks   []string
	patterns []string
}{
	{"recovers from 503", []string{"liveness.recovers"}, []string{"recovery/one-503-*", "recovery/head-503"}},
	{"recovers from a lost connection", []string{"liveness.recovers"}, []string{"recovery/one-reset-*", "recovery/one-empty-response-*"}},
	{"recovers from a body that breaks off", []string{"liveness.recovers"}, []string{"recovery/truncated-*"}},
	{"never doubles a POST without a key", []string{"effects.once", "attempts.unsafe-not-repeated"}, []string{"duplicates/post-unkeyed-*", "mistakes/repeating-unsafe-operations"}},
	{"repeats a POST with an honoured key, to one effect", []string{"liveness.recovers", "effects.once"}, []string{"duplicates/post-keyed-honour-*"}},
	{"one key a call", []string{"key.stable"}, []string{"keys/*"}},
	{"same body and header fields each time", []string{"body.intact"}, []string{"bodies/*"}},
	{"no more attempts than it says, resent ones counted", []string{"attempts.bounded"}, []string{"bounded/*"}},
	{"4xx and 501 once, and what does not decode", []string{"attempts.permanent-once"}, []string{"permanent/*", "malformed-json/*"}},
	{"Retry-After in every form, hostile ones too", []string{"timing.retry-after"}, []string{"rate-limits/*"}},
	{"waits grow, and never to nothing", []string{"timing.backoff-grows"}, []string{"back-off/*", "bounded/endless-*"}},
	{"clients that fail together part", []string{"timing.spread"}, []string{"herd/three-waves", "herd/resets-together", "herd/503-with-one-date-for-all"}},
	{"stops when cancelled", []string{"timing.cancel"}, []string{"cancellation/*"}},
	{"does not sleep past the deadline", []string{"timing.deadline"}, []string{"cancellation/*"}},
	{"the last real failure reaches the caller", []string{"error.last-real"}, []string{"mistakes/masking-the-real-error", "field-reports/context-error-replaces-the-real-one", "bounded/endless-*"}},
	{"nothing is left behind", []string{"resources.released"}, []string{"resources/*"}},
}

const (
	readme     = "../retry/README.md"
	tableBegin = "<!-- table: made by `cd peers && go test -run TestFeatureTable . -update` -->\n"
	tableEnd   = "<!-- end of table -->\n"
)

// TestFeatureTable holds the table in the README of package retry against what the scenarios find now.
func TestFeatureTable(t *testing.T) {
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	clients := append([]harness.Client{harness.Bundled("retry", retry.Policy{})}, peers.All()...)
	var table bytes.Buffer
	table.WriteString(tableBegin + "| |")
	for _, c := range clients {
		table.WriteString(" " + c.Name + " |")
	}
	table.WriteString("\n|---|" + strings.Repeat(":-:|", len(clients)) + "\n")
	for _, f := range features {
		for _, id := range f.checks {
			if _, ok := check.Lookup(id); !ok {
				t.Fatalf("there is no check %s", id)
			}
		}
		list, err := scenarios.Match(library, f.patterns...)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&table, "| %s |", f.claim)
		for i, c := range clients {
			mark := verdict(t, c, list, f.checks)
			if i == 0 && mark != "✓" {
				t.Errorf("the bundled client: %s: %s", f.claim, mark)
			}
			table.WriteString(" " + mark + " |")
		}
		table.WriteString("\n")
	}
	table.WriteString(tableEnd)

	old, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(old), tableBegin)
	_, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no place for the table", readme)
	}
	if was := tableBegin + strings.TrimSuffix(strings.TrimPrefix(string(old), before+tableBegin), after); was == table.String() {
		return
	}
	if *update && os.Getenv("CI") == "" {
		if err := os.WriteFile(readme, []byte(before+table.String()+after), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Fatalf("the table in %s was rewritten: read what changed", readme)
	}
	t.Errorf("the table in %s is not what was found; go test . -update rewrites it:\n%s", readme, table.String())
}

// verdict is ✗ when a client breaks one of the rules in any of the scenarios, ✓ when each was judged and
// held, and – when one of them never applied to it.
func verdict(t *testing.T, c harness.Client, list []scenarios.Scenario, checks []string) string {
	held := make(map[string]bool)
	for _, s := range list {
		res := harness.Runner{Seed: seed}.One(t, c, s)
		for _, f := range res.Findings {
			t.Errorf("%s: %s: a finding of the harness itself: %s: %s", c.Name, s.Name, f.Kind, f.Text)
		}
		for _, v := range res.Verdicts {
			switch {
			case !slices.Contains(checks, v.Check):
			case v.Status == check.Fail:
				return "✗"
			case v.Status == check.Pass:
				held[v.Check] = true
			}
		}
	}
	if len(held) < len(checks) {
		return "–"
	}
	return "✓"
}
