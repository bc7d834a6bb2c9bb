package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

// idleKeeps is how long any transport may be expected to keep an idle connection.
const idleKeeps = 10 * time.Second

// What is left when the calls are over and idle connections are closed has leaked.
//
// A discarded answer that is not drained costs the connection: net/http can reuse it only when the body was
// read to its end. That is a finding of level SHOULD, and only where nothing else explains it: the call ran
// alone, its transport carried the answer whole, the answer was a plain status or a good one, and the retry
// came within 10 s on a fresh connection all the same.
var resourcesReleased = Check{
	ID:     "resources.released",
	Holds:  "no connection, body or goroutine is left behind, and connections are reused where they can be",
	Level:  Must,
	Source: "openai/openai-go#495, gojek/heimdall#45; RFC 9112 §9.3",
	Judge:  judgeReleased,
}

// withheld counts the connections that a response kept from the pool, because it was neither read nor closed: nothing
// was sent on them any more. They are closed when the context of the call ends, if it ever does.
func withheld(h *history.History) int {
	last, open := map[int]time.Duration{}, map[int]bool{}
	for _, c := range h.Calls {
		for _, a := range c.Attempts {
			if at, used := last[a.Conn]; used && at > a.At {
				continue
			}
			t := c.TripOf(a)
			last[a.Conn], open[a.Conn] = a.At, t != nil && t.Status != 0 && !t.Closed && !t.BodyEOF
		}
	}
	n := 0
	for _, held := range open {
		if held {
			n++
		}
	}
	return n
}

func judgeReleased(h *history.History) Verdict {
	l := h.Leaks
	if !l.Known {
		if h.Declared.Outside() {
			return skipped("a process of its own cannot be looked into")
		}
		return unknown("what the client left behind was not measured")
	}
	var left []string
	if l.Conns > 0 {
		left = append(left, plural(l.Conns, "connection"))
	}
	if l.Bodies > 0 {
		text := plural(l.Bodies, "response") + " never closed"
		if n := withheld(h); n > 0 {
			text += fmt.Sprintf(" (%s kept from the pool by them)", plural(n, "connection"))
		}
		left = append(left, text)
	}
	if n := len(l.Goroutines); n > 0 {
		left = append(left, plural(n, "goroutine"))
	}
	if len(left) > 0 {
		v := fail("left behind when the calls were over: %s", strings.Join(left, ", "))
		v.Calls = unclosed(h)
		for i, g := range l.Goroutines {
			if i == maxEvidence/4 {
				v.Evidence = append(v.Evidence, fmt.Sprintf("and %s more", plural(len(l.Goroutines)-i, "goroutine")))
				break
			}
			v.Evidence = append(v.Evidence, trimStack(g))
		}
		return v
	}
	bad, reused := notReused(h)
	if len(bad) > 0 {
		v := bad.fail()
		v.Level = Should
		return v
	}
	v := pass("no connection, body or goroutine was left behind")
	if reused > 0 {
		v.Reason += fmt.Sprintf("; %d of %d retries that could reuse their connection did", reused, reused)
	}
	return v
}

// unclosed names the calls that have a trip whose body was never closed.
func unclosed(h *history.History) []string {
	var out []string
	for _, c := range h.Calls {
		for _, t := range c.Trips {
			if t.Status > 0 && t.Error == "" && !t.Closed {
				out = append(out, c.ID)
				break
			}
		}
	}
	return out
}

// trimStack keeps the head of a goroutine's stack: what it waits for and who made it.
func trimStack(s string) string {
	const keep = 9
	lines := strings.Split(strings.TrimSpace(s), "\n")
	if len(lines) > keep {
		lines = append(lines[:keep-1:keep-1], "…")
	}
	return strings.Join(lines, "\n")
}

// notReused finds retries that came on a fresh connection although the last one was fit for use, and counts
// those that did reuse it.
func notReused(h *history.History) (bad breaches, reused int) {
	beside := overlapping(h.Calls)
	for _, c := range h.Calls {
		if beside[c] {
			continue
		}
		fresh := 0
		var first *history.Attempt
		for _, g := range c.Gaps() {
			t := c.TripOf(g.Prev)
			switch {
			case t == nil || t.Error != "" || t.Status == 0 || g.Overlap || g.Prev.Hidden || g.Len > idleKeeps || !keepsConn(g.Prev):
			case g.Next.Reused:
				reused++
			default:
				fresh++
				if first == nil {
					first = g.Next
				}
			}
		}
		if fresh > 0 {
			bad.add(c, float64(fresh), "call %s: attempt %d came on a fresh connection, although the last answer left its own fit for use (was its body drained and closed?)", c.ID, first.N)
		}
	}
	return bad, reused
}

// keepsConn reports whether the answer to a left its connection open.
func keepsConn(a *history.Attempt) bool {
	if a.Closed {
		return false
	}
	switch a.Category {
	case "", "none", "status", "decoding":
	default:
		return false
	}
	switch a.Status {
	case 429, 500, 502, 503, 504:
		return true
	}
	return a.Status/100 == 2
}

// overlapping returns the calls beside which another one ran: then connections are shared out, and a fresh
// one means nothing.
func overlapping(calls []*history.Call) map[*history.Call]bool {
	byStart := slices.Clone(calls)
	slices.SortStableFunc(byStart, func(a, b *history.Call) int { return cmp.Compare(a.Started, b.Started) })
	out := make(map[*history.Call]bool)
	var longest *history.Call // of those that began before, the one that ended last
	for _, c := range byStart {
		if longest != nil && c.Started <= longest.Ended {
			out[c], out[longest] = true, true
		}
		if longest == nil || c.Ended > longest.Ended {
			longest = c
		}
	}
	return out
}
