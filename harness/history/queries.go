package history

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Validate reports the first thing in h that no harness would write: a hole in a list, a call without an id
// or two calls with one id. Checks judge valid histories only.
func (h *History) Validate() error {
	if h == nil {
		return fmt.Errorf("no history")
	}
	seen := make(map[string]bool, len(h.Calls))
	for i, c := range h.Calls {
		switch {
		case c == nil:
			return fmt.Errorf("calls[%d] is empty", i)
		case c.ID == "":
			return fmt.Errorf("calls[%d] has no id", i)
		case seen[c.ID]:
			return fmt.Errorf("two calls have the id %q", c.ID)
		}
		seen[c.ID] = true
		for j, a := range c.Attempts {
			if a == nil {
				return fmt.Errorf("call %s: attempts[%d] is empty", c.ID, j)
			}
		}
	}
	return nil
}

// Call returns the call with that id, or nil.
func (h *History) Call(id string) *Call {
	for _, c := range h.Calls {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// Recorded returns h. It lets whatever carries a history be given to the matchers.
func (h *History) Recorded() *History { return h }

// EffectsByCall returns the effects of each call, in their order.
func (h *History) EffectsByCall() map[string][]Effect {
	out := make(map[string][]Effect)
	for _, e := range h.Effects {
		out[e.Call] = append(out[e.Call], e)
	}
	return out
}

// Instant says where t, an offset of this history, lies on the world's clock.
func (h *History) Instant(t time.Duration) time.Time { return h.Start.Add(t) }

// Idempotent reports whether the call may happen twice: by its method, or because the application says so.
func (c *Call) Idempotent() bool { return c.MayRepeat || IdempotentMethod(c.Method) }

// Writes reports whether the call is meant to have an effect.
func (c *Call) Writes() bool { return !SafeMethod(c.Method) }

// Last returns the last attempt that the call made, or nil.
func (c *Call) Last() *Attempt {
	made := c.Made()
	if len(made) == 0 {
		return nil
	}
	return made[len(made)-1]
}

// Made returns the attempts that the call made: all but those that it never met. The list is not to be
// changed.
func (c *Call) Made() []*Attempt {
	unmet := func(a *Attempt) bool { return a.Unmet }
	if !slices.ContainsFunc(c.Attempts, unmet) {
		return c.Attempts
	}
	return slices.DeleteFunc(slices.Clone(c.Attempts), unmet)
}

// Attempt returns attempt n, or nil.
func (c *Call) Attempt(n int) *Attempt {
	for _, a := range c.Attempts {
		if a.N == n {
			return a
		}
	}
	return nil
}

// HiddenAttempts counts the attempts that net/http resent inside one RoundTrip.
func (c *Call) HiddenAttempts() int {
	n := 0
	for _, a := range c.Attempts {
		if a.Hidden && !a.Unmet {
			n++
		}
	}
	return n
}

// Cancelled reports whether the application cancelled the call while it ran.
func (c *Call) Cancelled() bool {
	return c.CancelAt > 0 && (!c.Returned || c.Ended >= c.CancelAt)
}

// LastActivity returns when the last attempt or trip of the call ended: from there on the client slept. It
// is the call's start where there was none.
func (c *Call) LastActivity() time.Duration {
	t := c.Started
	for _, a := range c.Attempts {
		t = max(t, a.At, a.Ended)
	}
	for _, p := range c.Trips {
		t = max(t, p.Started, p.Ended)
		if p.Ended == 0 && p.Status == 0 && p.Error == "" { // still on its way when the call ended
			t = max(t, c.Ended)
		}
	}
	return t
}

// TripOf returns the trip that made attempt a, or nil where the two sides cannot be matched for certain:
// they are matched in order, and only if there are as many trips as attempts that are not hidden.
func (c *Call) TripOf(a *Attempt) *Trip {
	if len(c.Trips) == 0 || a.Unmet || len(c.Trips) != len(c.Made())-c.HiddenAttempts() {
		return nil
	}
	i := -1
	for _, b := range c.Attempts {
		if !b.Hidden && !b.Unmet {
			i++
		}
		if b == a {
			break
		}
	}
	if i < 0 || i >= len(c.Trips) {
		return nil
	}
	return &c.Trips[i]
}

// Redirect reports whether the attempt was answered with a redirect: what follows is no retry.
func (a *Attempt) Redirect() bool {
	switch a.Status {
	case 301, 302, 303, 307, 308:
		return true
	}
	return false
}

// Asked reports whether the attempt's answer carried a valid Retry-After for an instant in the future: zero
// and a past date are valid and ask for nothing.
func (a *Attempt) Asked() bool { return a.AskedFor() > 0 }

// AskedFor returns how long the answer asked to wait, 0 where it asked for nothing.
func (a *Attempt) AskedFor() time.Duration {
	if len(a.RetryAfter) == 0 || a.NotBefore <= 0 {
		return 0
	}
	return max(0, a.NotBefore-max(a.At, a.Ended))
}

// A Gap is the wait between a failed attempt and the next one that the client made by itself. Attempts that
// net/http resent (Hidden) are no retries of the client: they start no gap's end, but the failure that the
// client saw is theirs.
type Gap struct {
	Call *Call
	K    int // the call's k-th retry, from 1
	Prev *Attempt
	Next *Attempt
	From time.Duration // the instant at which the client could know of the failure
	Len  time.Duration // from there to the arrival of Next
	// Longest is the most that the wait can have been, given noise in when the server noticed the end.
	Longest time.Duration
	// Free says that repeating at once is right: a redirect, one fresh token after a 401, 408 and 421
	// (another connection), 417 (without Expect), a reused connection that went stale, a stream that was not processed.
	Free bool
	// Overlap says that Next arrived while Prev was at work: a hedge, and not a wait.
	Overlap bool
	// Unseen says that the client's own side ended Prev with an error before any answer: what the server had
	// sent by then, a Retry-After for one, was never read.
	Unseen bool
}

// Asked reports whether the client was told by a valid Retry-After when to come back.
func (g Gap) Asked() bool { return g.Prev.Asked() && !g.Unseen }

// Gaps returns the waits of the call in their order.
//
// The failed attempt ends, for the client, when its trip ended (headers in, or failed), or later if the
// body was what failed. Where no trip can be matched it is when the server was done with it.
func (c *Call) Gaps() []Gap {
	made := c.Made()
	if len(made) < 2 {
		return nil
	}
	out := make([]Gap, 0, len(made)-1)
	for i := 1; i < len(made); i++ {
		next := made[i]
		if next.Hidden {
			continue
		}
		prev := made[i-1]
		g := Gap{Call: c, K: len(out) + 1, Prev: prev, Next: next}
		early := min(prev.Ended, next.At)
		g.From = prev.Ended
		if t := c.TripOf(prev); t != nil && t.Ended > 0 {
			g.Unseen = t.Error != "" && t.Status == 0
			switch {
			case t.Error != "" || prev.Category == "status":
				g.From = t.Ended
			default:
				g.From = max(t.Ended, prev.Ended)
			}
			early = min(early, t.Ended)
		} else {
			early = prev.At
		}
		if g.From > next.At {
			g.Overlap = prev.Ended > next.At && early >= next.At
			g.From = min(early, next.At)
		}
		g.Len = next.At - g.From
		g.Longest = max(g.Len, next.At-early)
		g.Free = prev.free()
		out = append(out, g)
	}
	return out
}

// free reports whether a repeat of a needs no wait.
func (a *Attempt) free() bool {
	switch {
	case a.Redirect():
		return true
	case a.Status == 401 || a.Status == 408 || a.Status == 417 || a.Status == 421:
		return true
	case a.Status == 0 && a.Reused && (a.FaultName == "empty_response" || a.FaultName == "connection_reset"):
		return true
	case a.FaultName == "h2_goaway" || a.FaultName == "h2_rst_stream":
		return true
	}
	return false
}

// A Wave is the k-th retry of those calls of one group that failed k times: the herd when it comes back.
type Wave struct {
	Group string
	K     int
	Asked bool // their failed attempts carried a valid Retry-After
	Gaps  []Gap
}

// Waves returns the waves of the run, by group in order of appearance, then by k. Calls that were asked to
// wait by a Retry-After make a wave apart from those that were not.
func (h *History) Waves() []Wave {
	type id struct {
		group string
		k     int
		asked bool
	}
	at := make(map[id]int)
	rank := make(map[string]int)
	var out []Wave
	for _, c := range h.Calls {
		if _, ok := rank[c.Group]; !ok {
			rank[c.Group] = len(rank)
		}
		for _, g := range c.Gaps() {
			w := id{c.Group, g.K, g.Asked()}
			i, ok := at[w]
			if !ok {
				i = len(out)
				at[w] = i
				out = append(out, Wave{Group: w.group, K: w.k, Asked: w.asked})
			}
			out[i].Gaps = append(out[i].Gaps, g)
		}
	}
	slices.SortStableFunc(out, func(a, b Wave) int {
		if d := rank[a.Group] - rank[b.Group]; d != 0 {
			return d
		}
		return a.K - b.K
	})
	return out
}

// Delay returns the declared wait before the k-th retry, from 1, before any jitter: base × multiplier^(k−1),
// at most MaxDelay; 0 where no base is declared. It cannot overflow.
func (d Declared) Delay(k int) time.Duration {
	if d.BaseDelay <= 0 || k < 1 {
		return 0
	}
	m := d.Multiplier
	if m <= 0 {
		m = 2
	}
	limit := float64(math.MaxInt64 / 4)
	if d.MaxDelay > 0 {
		limit = float64(d.MaxDelay)
	}
	return time.Duration(min(float64(d.BaseDelay)*math.Pow(m, float64(k-1)), limit))
}

// LongestDelay returns the most that the declared policy waits before the k-th retry, jitter included; 0
// where no base is declared.
func (d Declared) LongestDelay(k int) time.Duration {
	delay := d.Delay(k)
	if delay == 0 {
		return 0
	}
	switch d.Jitter {
	case JitterAdditive:
		return delay + d.JitterWidth
	case JitterProportional:
		return delay + time.Duration(float64(delay)*d.JitterRatio/2)
	case JitterDecorrelated: // three times the last, each time
		d.Multiplier = 3
		return d.Delay(k + 1)
	}
	return delay
}

// Redirected reports whether a follows a redirect that changes the request (RFC 9110 §15.4): its method
// is no longer the call's, and its body may be gone.
func (a *Attempt) Redirected(c *Call) bool {
	return a.Method != "" && c.Method != "" && a.Method != c.Method
}
