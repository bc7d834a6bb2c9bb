package matchers

import (
	"fmt"
	"strings"

	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
)

func subject(h *history.History) string {
	if h == nil || h.Client == "" && h.Scenario == "" {
		return "the run"
	}
	return fmt.Sprintf("%s in %s (%s world, seed %d)", h.Client, h.Scenario, h.World, h.Seed)
}

// tell writes a verdict with the rule, its source, the evidence and the timeline of the first call.
func tell(h *history.History, c check.Check, v check.Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "    %s (%s): %s", c.ID, v.Level, c.Holds)
	if v.Source != "" {
		fmt.Fprintf(&b, "\n    source: %s", v.Source)
	}
	fmt.Fprintf(&b, "\n    %s: %s", v.Status, v.Reason)
	for _, e := range v.Evidence {
		b.WriteString("\n      " + strings.ReplaceAll(e, "\n", "\n      "))
	}
	for _, n := range v.Notes {
		b.WriteString("\n      note: " + n)
	}
	if len(v.Calls) == 0 {
		return b.String()
	}
	call := h.Call(v.Calls[0])
	if call == nil {
		return b.String()
	}
	fmt.Fprintf(&b, "\n    timeline of %s:", call.ID)
	for _, l := range h.Timeline(call) {
		b.WriteString("\n    " + l.String())
	}
	return b.String()
}

// unknownID names the id that was probably meant.
func unknownID(id string) error {
	best, least := "", len(id)
	for _, c := range check.All() {
		if d := distance(id, c.ID); best == "" || d < least {
			best, least = c.ID, d
		}
	}
	return fmt.Errorf("unknown rule %q; did you mean %q?", id, best)
}

// distance is Levenshtein's: the fewest insertions, deletions and replacements of bytes.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
