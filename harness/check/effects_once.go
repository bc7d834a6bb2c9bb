package check

import (
	"fmt"

	"github.com/retrychaos/retrychaos/harness/history"
)

// The ledger counts effects, so a duplicate is a fact here and not a guess from the number of requests. A
// call that was given up is judged as any other: what happened, happened.
//
// An effect that came when the server had forgotten the key of the one before is noted and not counted: the
// application has given the call more time than the server keeps keys, which the client cannot know
// (draft-ietf-httpapi-idempotency-key-header-07 §2.3).
var effectsOnce = Check{
	ID:     "effects.once",
	Holds:  "a non-idempotent call has at most one effect, and a call that reported success has its effect",
	Level:  Must,
	Source: "RFC 9110 §9.2.2",
	Judge:  judgeEffectsOnce,
}

func judgeEffectsOnce(h *history.History) Verdict {
	effects := h.EffectsByCall()
	var bad breaches
	var notes []string
	writes, succeeded := 0, 0
	for _, c := range h.Calls {
		if !c.Writes() {
			continue
		}
		writes++
		n := len(effects[c.ID])
		forgotten := expired(h, c, effects[c.ID])
		for _, e := range forgotten {
			notes = append(notes, fmt.Sprintf("call %s: effect %d came when the server, which keeps a key for %s, had forgotten it: the application gave the call more time than that",
				c.ID, e.N, dur(h.KeyExpiry)))
		}
		if n-len(forgotten) > 1 && !c.Idempotent() {
			bad.add(c, 10+float64(n), "call %s (%s) had %d effects, by attempts %s", c.ID, c.Method, n, attemptsOf(effects[c.ID]))
		}
		if !c.Outcome.OK || !c.Returned {
			continue
		}
		succeeded++
		if n > 0 {
			continue
		}
		// A server that says 2xx without doing the work cannot be seen through; an answer that cannot be
		// decoded can, but not by a client that does not decode.
		last := c.Last()
		switch {
		case last != nil && last.FaultName == "status" && last.Status/100 == 2:
			notes = append(notes, fmt.Sprintf("call %s succeeded without an effect, as the server answered %d by schedule", c.ID, last.Status))
		case last != nil && last.Category == "decoding" && h.Declared.Process:
			notes = append(notes, fmt.Sprintf("call %s took an answer that cannot be decoded for success; nothing had happened", c.ID))
		default:
			bad.add(c, 5, "call %s (%s) reported success and had no effect, after %s", c.ID, c.Method, plural(len(c.Attempts), "attempt"))
		}
	}
	notes = append(notes, staleWrites(h)...)
	var v Verdict
	switch {
	case len(bad) > 0:
		v = bad.fail()
	case writes == 0:
		return skipped("no call had a method that writes")
	default:
		v = pass("%s that %s: none had an effect too many, and all %d that reported success had one",
			plural(writes, "call"), map[bool]string{true: "writes", false: "write"}[writes == 1], succeeded)
	}
	v.Notes = capNotes(notes)
	return v
}

// expired returns the effects of a call that came so long after the one before that the server had forgotten
// the key.
func expired(h *history.History, c *history.Call, effects []history.Effect) (out []history.Effect) {
	if h.KeyExpiry <= 0 || !c.KeyHonoured {
		return nil
	}
	for i := 1; i < len(effects); i++ {
		before, a := c.Attempt(effects[i-1].Attempt), c.Attempt(effects[i].Attempt)
		if before != nil && a != nil && a.Key != "" && a.Key == before.Key && a.At-before.At >= h.KeyExpiry-h.Grain {
			out = append(out, effects[i])
		}
	}
	return out
}

func attemptsOf(effects []history.Effect) string {
	s := ""
	for i, e := range effects {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprint(e.Attempt)
	}
	return s
}

// staleWrites tells of effects that came after an effect of a newer call on the same resource, when their
// own call was over before the newer one began: the old value has overwritten the new one. No client can
// prevent it without a version or a fencing token, so it is not a finding.
func staleWrites(h *history.History) []string {
	var notes []string
	calls := make(map[string]*history.Call, len(h.Calls))
	for _, c := range h.Calls {
		calls[c.ID] = c
	}
	newest := make(map[string]*history.Call) // by resource: the call of the newest effect so far
	for _, e := range h.Effects {
		c := calls[e.Call]
		if c == nil || e.Resource == "" || (e.Method != "PUT" && e.Method != "DELETE") {
			continue
		}
		n := newest[e.Resource]
		switch {
		case n == nil || n == c || c.Started > n.Started:
			newest[e.Resource] = c
		case c.Ended <= n.Started && (c.Returned || e.Late):
			notes = append(notes, fmt.Sprintf("stale write: effect %d of the older call %s overwrote that of call %s on %s at %s",
				e.N, c.ID, n.ID, e.Resource, dur(e.At)))
		}
	}
	return notes
}
