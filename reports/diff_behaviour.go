package reports

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

// drawn reports whether the server need not have done the same in both runs.
func drawn(x pair) bool { return (x.old.Drawn || x.new.Drawn) && x.old.Seed != x.new.Seed }

// behaviour finds what the client did otherwise, and which call shows it best.
func (n *noise) behaviour(d *compared) {
	a, b := d.old.History, d.new.History
	if a == nil || b == nil || a.Validate() != nil || b.Validate() != nil || len(a.Calls) == 0 || len(b.Calls) == 0 {
		return
	}
	d.race = raced(a, b)
	d.late = n.busy || max(a.Lateness, b.Lateness) > tooLate
	varies, unclear := n.jittered(d.pair)
	draws := n.drawsWaits(a, b)
	d.many = draws && n.samples[0] != nil && len(n.samples[0].list) >= leastTrend
	varies = varies || draws
	d.against = (varies || unclear) && n.againstTime(d.pair)
	d.draws = d.against && varies
	if d.late {
		n.skipped++
		return // how far it got, and when, is the machine's doing as much as the client's
	}
	if d.against {
		per := func(h *history.History) float64 { return float64(attempts(h)) / float64(len(h.Calls)) }
		n.against = append(n.against, paired{per(a), per(b)})
	}
	single := len(a.Calls) == 1 && len(b.Calls) == 1
	switch {
	case single && (d.race || d.against && !sameCourse(a.Calls[0], b.Calls[0])):
		d.behaviour = n.waitDifferences(d.pair, a.Calls[0], b.Calls[0])
	case single:
		d.behaviour = n.callDifferences(d.pair, a.Calls[0], b.Calls[0])
	case d.against || d.race:
	default:
		d.behaviour, d.call = sums(a, b)
		return
	}
	if single {
		d.call = b.Calls[0].ID
	}
}

// sameCourse reports whether the server did the same in both calls, and neither was ended by time: how they differ is
// then no matter of time.
func sameCourse(a, b *history.Call) bool {
	for _, c := range []*history.Call{a, b} {
		if !c.Returned || c.Outcome.Has(history.TraitDeadline) || c.Outcome.Has(history.TraitCanceled) {
			return false
		}
	}
	return slices.EqualFunc(a.Attempts, b.Attempts, func(p, q *history.Attempt) bool {
		return p.Fault == q.Fault && p.Status == q.Status && p.Delivered == q.Delivered && p.InFlight == q.InFlight &&
			(p.Effect == 0) == (q.Effect == 0)
	})
}

// tied reports whether an attempt that one of two runs has more came in the very instant in which its call was to
// end: which of the two a client sees first is chance.
func tied(a, b *history.Call, res time.Duration) bool {
	more, n := a, len(b.Attempts)
	if len(b.Attempts) > len(a.Attempts) {
		more, n = b, len(a.Attempts)
	}
	return slices.ContainsFunc(more.Attempts[n:], func(x *history.Attempt) bool {
		return more.Deadline > 0 && (x.At-more.Deadline).Abs() <= res || more.CancelAt > 0 && (x.At-more.CancelAt).Abs() <= res
	})
}

// raced reports whether the runs differ in what was sent of an attempt, or in what its error came from, before
// they differ in anything that the client decides.
func raced(a, b *history.History) bool {
	for _, c := range b.Calls {
		o := a.Call(c.ID)
		if o == nil {
			continue
		}
		if tied(o, c, resolution(a, b)) {
			return true
		}
		for i := range min(len(o.Attempts), len(c.Attempts)) {
			p, q := o.Attempts[i], c.Attempts[i]
			if p.Fault != q.Fault || p.Method != q.Method || (p.Key == "") != (q.Key == "") {
				break
			}
			if p.Unsent != q.Unsent || p.Unmet != q.Unmet || p.BodyBroken != q.BodyBroken || p.InFlight != q.InFlight || p.Delivered != q.Delivered {
				return true
			}
			if (p.BodyBroken || p.BodyUnread) && p.Status == 0 || p.FaultName == "h2_connection_closed" {
				return true // whether writing or reading failed first decides which error the client sees
			}
		}
	}
	return false
}

func attempts(h *history.History) int {
	n := 0
	for _, c := range h.Calls {
		n += len(c.Made())
	}
	return n
}

func effects(h *history.History, call string) int {
	n := 0
	for _, e := range h.Effects {
		if e.Call == call {
			n++
		}
	}
	return n
}

// callDifferences compares the one call of a scenario.
func (n *noise) callDifferences(x pair, a, b *history.Call) []string {
	var out []string
	add := func(differs bool, format string, args ...any) {
		if differs {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	ea, eb := effects(x.old.History, a.ID), effects(x.new.History, b.ID)
	repeated := ""
	if eb > 1 && eb > ea && !b.Idempotent() {
		repeated = b.Method + " repeated: "
	}
	add(ea != eb, "%seffects %d → %d", repeated, ea, eb)
	ma, mb := len(a.Made()), len(b.Made())
	add(ma != mb, "attempts %d → %d", ma, mb)
	ha, hb := a.HiddenAttempts(), b.HiddenAttempts()
	add(ha != hb, "of these resent by net/http %d → %d", ha, hb)
	add(a.Outcome.OK != b.Outcome.OK, "the call %s → %s", ends(a), ends(b))
	if a.Outcome.OK == b.Outcome.OK {
		add(a.Returned != b.Returned, "the call %s → %s", ends(a), ends(b))
		add((a.Outcome.Panic == "") != (b.Outcome.Panic == ""), "the client %s → %s", panics(a), panics(b))
		add(a.Outcome.Status != b.Outcome.Status, "status that the caller sees %s → %s", statusSeen(a), statusSeen(b))
		ta, tb := traitText(a), traitText(b)
		lost := map[string]bool{brokenConnection: true, otherError: true}
		racy := lastTransport(a) && lastTransport(b) && lost[ta] && lost[tb]
		add(ta != tb && !racy, "kind of error %s → %s", ta, tb)
	}
	ka, kb := keys(a), keys(b)
	add(ka != kb, "idempotency key: %s → %s", ka, kb)
	return append(out, n.waitDifferences(x, a, b)...)
}

// waitDifferences compares how long the first attempt was waited for, and the waits between attempts.
func (n *noise) waitDifferences(x pair, a, b *history.Call) []string {
	var out []string
	unclear := false
	res := resolution(x.old.History, x.new.History)
	if len(a.Attempts) > 0 && len(b.Attempts) > 0 {
		p, q := a.Attempts[0], b.Attempts[0]
		la, lb := p.Ended-p.At, q.Ended-q.At
		noise := res
		if x.new.World != "virtual" {
			noise = max(noise, time.Second, max(la, lb)/3*2) // a busy machine paces a slow server slower still
		}
		if p.Fault == q.Fault && p.Delivered && q.Delivered && differ(la, lb, noise) {
			out = append(out, fmt.Sprintf("time until attempt 1 was over %s → %s", span(la), span(lb)))
		}
	}
	ga, gb := a.Gaps(), b.Gaps()
	for i := range min(len(ga), len(gb)) {
		g, h := ga[i], gb[i]
		if g.Free || h.Free || g.Overlap || h.Overlap || g.Prev.Fault != h.Prev.Fault {
			continue
		}
		s, ok := n.spread(g, x.old.History, x.new.History)
		if !ok {
			unclear = (g.Len - h.Len).Abs() > res
			continue
		}
		noise := res + rangeFactor*s
		asked := ""
		if len(g.Prev.RetryAfter) > 0 {
			noise += roundSecond + rangeFactor*max(n.excess[0].high-n.excess[0].low, n.excess[1].high-n.excess[1].low)
			if g.Prev.Asked() {
				asked = fmt.Sprintf(" (Retry-After asked for %s)", span(g.Prev.AskedFor()))
			}
		}
		if differ(g.Len, h.Len, noise) {
			out = append(out, fmt.Sprintf("%s gap %s → %s%s", ordinal(i+1), gapText(g.Len, res), gapText(h.Len, res), asked))
		}
	}
	if unclear {
		n.unclear++
	}
	return out
}

// differ reports whether two durations differ by more than noise and a tenth of the longer one.
func differ(a, b, noise time.Duration) bool { return (a - b).Abs() > max(noise, max(a, b)/10) }

func gapText(d, res time.Duration) string {
	if d < res/4 {
		return "0 s"
	}
	return span(d)
}

func ordinal(n int) string {
	switch n {
	case 1:
		return "first"
	case 2:
		return "second"
	case 3:
		return "third"
	}
	return fmt.Sprintf("%dth", n)
}

func ends(c *history.Call) string {
	switch {
	case !c.Returned:
		return "never returns"
	case c.Outcome.OK:
		return "succeeds"
	case c.Outcome.Error != "":
		return "fails: " + c.Outcome.Error
	}
	return "fails, status " + statusSeen(c)
}

func panics(c *history.Call) string {
	if c.Outcome.Panic != "" {
		return "panics: " + c.Outcome.Panic
	}
	return "does not panic"
}

func statusSeen(c *history.Call) string {
	if c.Outcome.Status == 0 {
		return "none"
	}
	return fmt.Sprint(c.Outcome.Status)
}

const (
	brokenConnection = "connection broken"
	otherError       = "none of the known"
)

// lastTransport reports whether the connection of the call's last attempt broke.
func lastTransport(c *history.Call) bool {
	a := c.Last()
	return a != nil && a.Status == 0 && a.Category == "transport"
}

// traitText names the kind of a call's error. Which of three a client sees of a broken connection is a race.
func traitText(c *history.Call) string {
	var kinds []string
	for _, t := range c.Outcome.Traits {
		switch t {
		case history.TraitReset, history.TraitEOF, history.TraitUnexpectedEOF:
			t = brokenConnection
		}
		if !slices.Contains(kinds, t) {
			kinds = append(kinds, t)
		}
	}
	switch {
	case len(kinds) > 0:
		slices.Sort(kinds)
		return strings.Join(kinds, ", ")
	case c.Outcome.Error != "":
		return otherError
	}
	return "none"
}

// keys says how a call's attempts were keyed.
func keys(c *history.Call) string {
	seen := map[string]bool{}
	without := 0
	for _, a := range c.Made() {
		if a.Key == "" {
			without++
		} else {
			seen[a.Key] = true
		}
	}
	switch {
	case len(seen) == 0:
		return "none"
	case len(seen) > 1:
		return "another with each attempt"
	case without > 0:
		return "with some attempts"
	}
	return "one"
}

// sums compares scenarios of several calls by their sums, since which call meets what is chance there.
func sums(a, b *history.History) (words []string, call string) {
	type sum struct{ calls, ok, attempts, effects, hidden, kept int }
	of := func(h *history.History) sum {
		s := sum{calls: len(h.Calls), effects: len(h.Effects), attempts: attempts(h)}
		for _, c := range h.Calls {
			s.hidden += c.HiddenAttempts()
			if c.Outcome.OK {
				s.ok++
			}
			if !c.Returned {
				s.kept++
			}
		}
		return s
	}
	x, y := of(a), of(b)
	add := func(what string, p, q int) {
		if d := max(p-q, q-p); d > 2 && d > max(p, q)/10 {
			words = append(words, fmt.Sprintf("%s %d → %d, over %s", what, p, q, count(y.calls, "call")))
		}
	}
	add("effects", x.effects, y.effects)
	add("attempts", x.attempts, y.attempts)
	add("of these resent by net/http", x.hidden, y.hidden)
	add("calls that succeed", x.ok, y.ok)
	add("calls that never return", x.kept, y.kept)
	for _, c := range b.Calls {
		if o := a.Call(c.ID); o != nil && len(o.Made()) != len(c.Made()) {
			return words, c.ID
		}
	}
	return words, ""
}
