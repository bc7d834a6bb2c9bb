package matchers

import (
	"fmt"
	"strings"

	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/internal/nearest"
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
	var ids []string
	for _, c := range check.All() {
		ids = append(ids, c.ID)
	}
	hint := nearest.Hint(id, ids)
	if hint == "" {
		hint = "; there are " + strings.Join(ids, ", ")
	}
	return fmt.Errorf("unknown rule %q%s", id, hint)
}
