package check

import (
	"fmt"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

const (
	// growthCalls is how many calls with two waits each the sign test needs.
	growthCalls = 100
	// overflowWait is a wait that no policy means.
	overflowWait = 24 * time.Hour
	// longWait and hotWait bound a collapse: a wait of a second or more followed by none.
	longWait = time.Second
)

// Three ways to go wrong: a hot loop (see hotLoops); overflow, a wait of more than a day or a collapse to
// nothing after a long one (sethvargo/go-retry#13, qdrant/go-client#153); and waits that do not grow.
//
// Growth is judged by a sign test, because jitter makes a single pair worthless. For a policy that grows by
// m ≥ 1.5, P(second wait > first) is at least 2/3:
//   - full: U(0, 1) then U(0, m): 1 − 1/(2m), which is 2/3 at 1.5 and 3/4 at 2;
//   - equal: U(1/2, 1) then U(m/2, m): 8/9 at 1.5, 1 at 2;
//   - decorrelated: U(1, 3) then U(1, 3x): 1 − (1/2)∫(x−1)/(3x−1)dx = 2/3 + ln(4)/9 = 0.82;
//   - proportional ±50 %: 0.81 at 1.5, and no less than full jitter at any ratio up to ±100 %;
//   - additive of width J: 1 − (1 − δ/J)²/2 with δ = (m−1)·base, 2/3 or more where δ ≥ 0.19 J;
//   - none: 1.
//
// So with n calls the number of those whose second wait is longer is at least Bin(n, 2/3); ties count as
// not longer. It fails at the count c with P(Bin(n, 2/3) ≤ c) ≤ 1e-6. A declared multiplier below 1.5, or a
// cap that the second wait reaches, lowers 2/3 to 1 − 1/(2m) of the growth that is left; a constant policy
// is held to 1.5, since constant waits are what the rule forbids. With fewer calls only the two other
// faults are judged, and the verdict says so.
var timingBackoffGrows = Check{
	ID:     "timing.backoff-grows",
	Holds:  "waits grow until their cap, are never nothing twice in a row, and never overflow",
	Level:  Should,
	Source: "aws/aws-sdk-java#874, qdrant/go-client#153; RFC 9110 §9.2.2",
	Judge:  judgeBackoff,
}

func judgeBackoff(h *history.History) Verdict {
	own := func(g history.Gap) bool { return len(g.Prev.RetryAfter) == 0 && !g.Free && !g.Overlap }
	bad := hotLoops(h, own)
	bad = append(bad, overflows(h, own)...)
	gaps, pairs, longer := 0, 0, 0
	var flat *history.Call
	for _, c := range h.Calls {
		all := c.Gaps()
		for _, g := range all {
			if own(g) {
				gaps++
			}
		}
		if len(all) >= 2 && own(all[0]) && own(all[1]) {
			pairs++
			if all[1].Len > all[0].Len {
				longer++
			} else if flat == nil {
				flat = c
			}
		}
	}
	p, why := growthChance(h.Declared)
	var notes []string
	tested := ""
	switch {
	case why != "":
		notes = append(notes, "growth was not judged: "+why)
	case pairs < growthCalls:
		notes = append(notes, fmt.Sprintf("growth was not judged: that takes %d calls with two waits each, and there %s %d", growthCalls, was(pairs), pairs))
	default:
		tail := lowerTail(pairs, longer, p)
		threshold := signThreshold(pairs, p)
		tested = fmt.Sprintf("%d of %d calls waited longer the second time (%d or fewer would fail; a growing policy does that with probability %.0e at most)",
			longer, pairs, threshold, alpha)
		if tail <= alpha {
			bad.add(flat, 1, "waits do not grow: only %s", tested)
		}
	}
	var v Verdict
	switch {
	case len(bad) > 0:
		v = bad.fail()
	case gaps == 0:
		return skipped("no retry had a wait of the client's own choice")
	case tested != "":
		v = pass("%s: no hot loop, no overflow; %s", plural(gaps, "wait"), tested)
	default:
		v = pass("%s: no hot loop and no overflow", plural(gaps, "wait"))
	}
	v.Notes = notes
	return v
}

// signThreshold returns the largest count at which the sign test fails.
func signThreshold(n int, p float64) int {
	c := -1
	for c+1 <= n && lowerTail(n, c+1, p) <= alpha {
		c++
	}
	return c
}

// growthChance returns a lower bound of P(second wait > first) for the declared policy, or why there is
// none.
func growthChance(d history.Declared) (float64, string) {
	m := 1.5
	if d.Multiplier > 1 && d.Multiplier < m {
		m = d.Multiplier
	}
	if d.BaseDelay > 0 && d.MaxDelay > 0 {
		m = min(m, float64(d.MaxDelay)/float64(d.BaseDelay))
		if d.Jitter == history.JitterDecorrelated && d.MaxDelay < 3*d.BaseDelay {
			m = 1 // a clamp below three times the base makes ties, however right the policy is
		}
	}
	if m < 1.1 {
		return 0, fmt.Sprintf("the declared cap of %s leaves no room to grow from %s", dur(d.MaxDelay), dur(d.BaseDelay))
	}
	if d.Jitter == history.JitterAdditive && d.BaseDelay > 0 {
		if growth := (m - 1) * float64(d.BaseDelay); growth < 0.19*float64(d.JitterWidth) {
			return 0, fmt.Sprintf("the declared jitter of %s hides the growth from %s", dur(d.JitterWidth), dur(d.BaseDelay))
		}
		return 2.0 / 3, ""
	}
	return 1 - 1/(2*m), ""
}

// overflows finds waits of more than a day, and waits that collapse to nothing after a long one. A draw
// below 1 ms from a range of at least the last wait, 1 s or more, has probability 1e-3 at most, so as many
// are needed as chance gives with probability 1e-6, and two at least.
func overflows(h *history.History, own func(history.Gap) bool) breaches {
	var bad, collapsed breaches
	limit := max(overflowWait, h.Declared.MaxDelay)
	chances := 0
	for _, c := range h.Calls {
		var last *history.Gap
		for _, g := range c.Gaps() {
			if !own(g) {
				last = nil
				continue
			}
			if g.Len > limit {
				bad.add(c, float64(g.Len), "call %s waited %s before attempt %d: the delay has overflowed", c.ID, dur(g.Len), g.Next.N)
			}
			if last != nil && last.Len >= longWait {
				chances++
				if hot(h, g) {
					collapsed.add(c, float64(last.Len), "call %s waited %s before attempt %d and nothing before attempt %d: the delay has wrapped",
						c.ID, dur(last.Len), last.Next.N, g.Next.N)
				}
			}
			last = &g
		}
	}
	if n := len(collapsed); n >= 2 && upperTail(chances, n, float64(hotWait)/float64(longWait)) <= alpha*1.001 {
		bad = append(bad, collapsed...)
	}
	return bad
}
