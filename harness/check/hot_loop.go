package check

import (
	"math"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

// hotWait is a wait that is none.
const hotWait = time.Millisecond

// assumedBase is the width of the first wait of a client that declares nothing, for the question how
// likely a wait of less than hotWait is by honest chance.
const assumedBase = time.Second

// hotLoops finds calls that came back at once again and again, among the gaps that keep chooses. One retry
// without a wait can be chance or design; a loop is two or more in a row.
//
// Full jitter draws below 1 ms now and then: U(0, 1s) then U(0, 2s) does it twice with probability 5e-7. So
// for a run of L such waits in one call the probability under the declared policy is bounded by
// (4/3) q^L / 2^(L(L-1)/2), q = 1ms/base, as ranges double (by gaps·q^L where they do not), and the loops
// are reported only if as many calls show them as chance does with probability 1e-6 at most. A policy that
// cannot draw so low (no, equal, additive, decorrelated jitter) needs one.
//
// In a world with noise a wait is hot only if it was so however late the server noticed the failure.
func hotLoops(h *history.History, keep func(history.Gap) bool) breaches {
	runs := make(map[*history.Call]int)
	var calls []*history.Call
	sizes := make(map[*history.Call]int)
	most := 0
	for _, c := range h.Calls {
		run, longest, n := 0, 0, 0
		for _, g := range c.Gaps() {
			if !keep(g) || g.Free || g.Overlap {
				run = 0
				continue
			}
			n++
			if hot(h, g) {
				run++
				longest = max(longest, run)
			} else {
				run = 0
			}
		}
		if n >= 2 {
			calls = append(calls, c)
			runs[c], sizes[c] = longest, n
			most = max(most, n)
		}
	}
	var bad breaches
	q := hotChance(h.Declared)
	for length := 2; length <= 8; length++ {
		var hits []*history.Call
		able := 0
		for _, c := range calls {
			if sizes[c] >= length {
				able++
			}
			if runs[c] >= length {
				hits = append(hits, c)
			}
		}
		if len(hits) == 0 {
			break
		}
		if upperTail(able, len(hits), runChance(h.Declared, q, length, most)) > alpha {
			continue
		}
		for _, c := range hits {
			bad.add(c, float64(runs[c]), "call %s came back %d times in a row less than %s after the failure", c.ID, runs[c], dur(hotWait))
		}
		break
	}
	return bad
}

func hot(h *history.History, g history.Gap) bool {
	return g.Len < hotWait && (h.Grain <= time.Millisecond || g.Longest < hotWait+h.Grain)
}

// hotChance bounds the probability of a first wait below hotWait under the declared policy.
func hotChance(d history.Declared) float64 {
	base := d.BaseDelay
	least := time.Duration(0) // of the first wait
	width := base
	switch d.Jitter {
	case history.JitterNone, history.JitterAdditive:
		return 0
	case history.JitterDecorrelated:
		least, width = base, 2*base
	case history.JitterEqual:
		least, width = base/2, base/2
	case history.JitterProportional:
		least = base - time.Duration(float64(base)*d.JitterRatio/2)
		width = time.Duration(float64(base) * d.JitterRatio)
	}
	if base <= 0 {
		width = assumedBase
	}
	if least >= hotWait {
		return 0
	}
	if width <= 0 {
		return 1
	}
	return min(1, float64(hotWait)/float64(width))
}

func runChance(d history.Declared, q float64, length, most int) float64 {
	l := float64(length)
	p := math.Pow(q, l)
	if d.Multiplier == 0 || d.Multiplier >= 2 {
		return min(1, p*4/3/math.Pow(2, l*(l-1)/2))
	}
	return min(1, p*float64(most-length+1))
}
