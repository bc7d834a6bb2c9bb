package check

import (
	"fmt"

	"github.com/retrychaos/retrychaos/harness/history"
)

// A definite failure tells the application that nothing happened, so that it may safely start over. That
// is wrong where an earlier attempt had been committed: the "already exists" that a client gives back came
// from its own first try.
//
// An error is about the last attempt alone: error.last-real asks for it, and a refused connection says nothing
// of an attempt before it that left open whether it happened. It is a definite failure only where no attempt did,
// or where the client itself says that nothing was sent. A status is the server's word on the operation. After
// such an attempt it is one all the same, unless the repeat was in order, by its method or by one key that the
// server honours: then the client had nothing better to hand on, and it is noted.
//
// An answer that lies of its own attempt (a 400 after the commit) is the server's doing and only noted, as
// is a 409 that says an earlier attempt is at work: that one claims nothing. Nor does a 412: after a repeat it
// can mean that the first attempt succeeded (RFC 9110 §15.5.13).
var effectsNoPhantom = Check{
	ID:     "effects.no-phantom",
	Holds:  "nothing happened for a call that was never attempted or that was reported as definitely failed",
	Level:  Must,
	Source: "RFC 9110 §9.2.2; apify/apify-client-python#990",
	Judge:  judgeNoPhantom,
}

func judgeNoPhantom(h *history.History) Verdict {
	calls := make(map[string]*history.Call, len(h.Calls))
	for _, c := range h.Calls {
		calls[c.ID] = c
	}
	var bad breaches
	var notes []string
	for _, e := range h.Effects {
		c := calls[e.Call]
		switch {
		case c == nil:
			bad = append(bad, breach{e.Call, 10, fmt.Sprintf("effect %d belongs to %q, which no application asked for", e.N, e.Call)})
		case len(c.Attempts) == 0:
			bad.add(c, 9, "effect %d belongs to call %s, of which no attempt arrived", e.N, c.ID)
		case c.Attempt(e.Attempt) == nil:
			bad.add(c, 8, "effect %d belongs to attempt %d of call %s, which never arrived", e.N, e.Attempt, c.ID)
		}
	}
	effects := h.EffectsByCall()
	definite := 0
	for _, c := range h.Calls {
		how, at := definiteFailure(c)
		if how == "" {
			continue
		}
		definite++
		for _, e := range effects[c.ID] {
			if at != nil && e.Attempt == at.N {
				notes = append(notes, fmt.Sprintf("call %s: the server answered %d although attempt %d was committed", c.ID, at.Status, at.N))
				continue
			}
			if earlier := c.Attempt(e.Attempt); at != nil && earlier != nil && ambiguous(earlier) != "" && repeatable(c) {
				notes = append(notes, fmt.Sprintf("call %s: the server answered %d to attempt %d, a repeat in order of attempt %d, which it had committed",
					c.ID, at.Status, at.N, e.Attempt))
				continue
			}
			bad.add(c, 5, "call %s was reported as definitely failed (%s), but attempt %d had committed effect %d", c.ID, how, e.Attempt, e.N)
			break
		}
	}
	var v Verdict
	switch {
	case len(bad) > 0:
		v = bad.fail()
	case len(h.Effects) == 0:
		v = pass("nothing happened at all, so nothing happened that should not have")
	default:
		v = pass("%s, each of an attempt that arrived; none for the %s reported as definitely failed",
			plural(len(h.Effects), "effect"), plural(definite, "call"))
	}
	v.Notes = capNotes(notes)
	return v
}

// definiteFailure says in which words the outcome claims that nothing happened, and which attempt's answer
// it gives back, where that is known.
func definiteFailure(c *history.Call) (string, *history.Attempt) {
	o := c.Outcome
	if o.OK || !c.Returned {
		return "", nil
	}
	last := c.Last()
	switch {
	case o.Has(history.TraitNotSent):
		return "nothing was sent", nil
	case o.Has(history.TraitRefused):
		if doubtful(c) {
			return "", nil
		}
		// An error that shows an ambiguous failure beside the refusal claims nothing.
		for _, t := range []string{history.TraitReset, history.TraitEOF, history.TraitUnexpectedEOF, history.TraitTimeout, history.TraitDeadline} {
			if o.Has(t) {
				return "", nil
			}
		}
		return "connection refused", nil
	case o.Status == 408 || o.Status == 412 || o.Status == 425 || o.Status == 429 || o.Status/100 != 4:
		return "", nil
	case last != nil && last.Status == o.Status && last.InFlight:
		return "", nil
	}
	if last != nil && last.Status != o.Status {
		last = nil
	}
	return fmt.Sprintf("status %d", o.Status), last
}

// doubtful reports whether an attempt of a call that failed left open whether it happened.
func doubtful(c *history.Call) bool {
	for _, a := range c.Attempts {
		if ambiguous(a) != "" {
			return true
		}
	}
	return false
}

// repeatable reports whether all repeats of the call were in order, whatever came of the attempts before them.
func repeatable(c *history.Call) bool {
	if c.Idempotent() {
		return true
	}
	for _, a := range c.Attempts {
		if !licensed(c, a) || a.Key != c.Attempts[0].Key {
			return false
		}
	}
	return true
}
