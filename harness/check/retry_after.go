package check

import (
	"fmt"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

const (
	// hostileWait is a wait that no server means: a garbled or hostile Retry-After.
	hostileWait = 24 * time.Hour
	// worldStop is a sleep that no back-off of a client's own explains.
	worldStop = 5 * time.Minute
	// idleSleep is how long a client may sleep before its deadline without being told of it: less may be
	// the jitter of a wait that just failed to fit.
	idleSleep = time.Second
)

// The server computed the earliest allowed instant when it answered, for a date with its whole seconds, so
// all forms are judged alike. There are two schools where it asks for longer than a client will wait: wait
// the cap and come early, or give the response back. Both pass, and the notes say which.
//
// A value that is no valid one (zero, past, negative, garbage, two lines) leaves the client to its own
// back-off; so does one of more than a day. Neither may give a hot loop, nor a sleep without end.
//
// Only answers for which Retry-After has a meaning for retries bind: 429 (RFC 6585 §4), 503 and 413 (RFC
// 9110 §15.6.4, §15.5.14), and 403 (a second rate limit). On others a client that does not look is noted.
var timingRetryAfter = Check{
	ID:     "timing.retry-after",
	Holds:  "no attempt comes before the instant that Retry-After allows, and no value of it gives a hot loop or an endless sleep",
	Level:  Should,
	Source: "RFC 9110 §10.2.3",
	Judge:  judgeRetryAfter,
}

func judgeRetryAfter(h *history.History) Verdict {
	var bad breaches
	var notes []string
	lines, obeyed, gaveBack, own := 0, 0, 0, 0
	for _, c := range h.Calls {
		for _, a := range c.Attempts {
			if len(a.RetryAfter) > 0 {
				lines++
			}
		}
		for _, g := range c.Gaps() {
			switch {
			case len(g.Prev.RetryAfter) == 0 || g.Overlap:
			case !g.Asked():
				own++
			default:
				note, early := comesBack(h, g)
				if early > 0 {
					bad.add(c, float64(early), "call %s: attempt %d came %s before Retry-After (%s) allowed it",
						c.ID, g.Next.N, dur(early), g.Prev.RetryAfter[0])
				} else if note != "" {
					notes = append(notes, note)
				} else {
					obeyed++
				}
			}
		}
		last := c.Last()
		if last == nil || len(last.RetryAfter) == 0 || c.Outcome.OK {
			continue
		}
		if text, slept := sleptForRetryAfter(h, c, last); text != "" {
			bad.add(c, float64(slept), "%s", text)
		} else if last.Asked() && c.Returned && !c.Cancelled() {
			gaveBack++
			if m := h.Declared.MaxAttempts; m == 0 || len(c.Attempts) < m {
				notes = append(notes, fmt.Sprintf("call %s was asked to wait %s and gave the answer back (gives back)", c.ID, dur(last.AskedFor())))
			}
		}
	}
	bad = append(bad, hotLoops(h, func(g history.Gap) bool {
		return len(g.Prev.RetryAfter) > 0 && (!g.Prev.Asked() || g.Prev.AskedFor() > hostileWait)
	})...)
	var v Verdict
	switch {
	case len(bad) > 0:
		v = bad.fail()
	case lines == 0:
		return skipped("no attempt was answered with a Retry-After")
	default:
		v = pass("%s carried a Retry-After: obeyed %d times, left to the client's own back-off %d times, given back %d times, none came too early",
			plural(lines, "answer"), obeyed, own, gaveBack)
	}
	v.Notes = capNotes(notes)
	return v
}

// comesBack judges one retry after a valid Retry-After: by how much it was early, or what is worth noting.
func comesBack(h *history.History, g history.Gap) (note string, early time.Duration) {
	a := g.Prev
	asked := a.AskedFor()
	early = a.NotBefore - g.Next.At
	if early <= h.Grain {
		return "", 0
	}
	since := g.Next.At - min(a.Ended, g.From)
	limit := h.Declared.MaxRetryAfter
	switch {
	case asked > hostileWait:
		return fmt.Sprintf("call %s was asked to wait %s and came back after %s: no server means that", g.Call.ID, dur(asked), dur(since)), 0
	case h.Declared.CapsRetryAfter && limit > 0 && asked > limit && since >= limit-h.Grain:
		return fmt.Sprintf("call %s was asked to wait %s, waited its cap of %s and came early (waits its cap)", g.Call.ID, dur(asked), dur(limit)), 0
	}
	switch a.Status {
	case 403, 413, 429, 503:
		return "", early
	}
	return fmt.Sprintf("call %s came back %s before the Retry-After of a %d allowed it", g.Call.ID, dur(early), a.Status), 0
}

// sleptForRetryAfter judges the end of a call whose last answer carried Retry-After lines.
func sleptForRetryAfter(h *history.History, c *history.Call, last *history.Attempt) (string, time.Duration) {
	if c.Cancelled() {
		return "", 0
	}
	slept := c.Ended - c.LastActivity()
	until := "until its deadline"
	switch {
	case !c.Returned:
		slept = max(slept, h.End-c.LastActivity())
		until = "until the harness gave it up"
	case c.Deadline == 0 || c.Ended < c.Deadline-h.Grain:
		return "", 0
	}
	switch {
	case h.Declared.Outside(): // it is not told of the deadline: it cannot know that the wait is futile
		return "", 0
	case last.AskedFor() > hostileWait && slept > idleSleep:
		return fmt.Sprintf("call %s slept %s %s for a retry that could not happen: Retry-After was %q", c.ID, dur(slept), until, last.RetryAfter[0]), slept
	case !last.Asked() && slept > worldStop:
		return fmt.Sprintf("call %s slept %s %s after a Retry-After that is not valid: %q", c.ID, dur(slept), until, last.RetryAfter[0]), slept
	}
	return "", 0
}
