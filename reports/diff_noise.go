package reports

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
)

// noise is what the waits of one client in one world show of its jitter, over all scenarios of either report.
type noise struct {
	waits    map[waitKey]*[2]pool // of the client's own choice; side 0 is old, 1 is new
	excess   [2]pool              // of waits that obeyed a Retry-After, over what it asked for
	against  []paired             // attempts of scenarios against time
	busy     bool                 // the machine of either run was too busy for its own timers
	skipped  int                  // pairs whose behaviour was not compared, for that reason
	unclear  int                  // pairs whose waits nothing tells the spread of
	samples  [maxTrendWaits]*waitSamples
	ends     [2]map[int]int // scenarios whose call fails after so many attempts
	declared [2]history.Declared
}

// waitKey names alike waits: before the k-th retry, after failures of one kind, or, where cause is "", of any.
type waitKey struct {
	k     int
	cause string
}

// pool is the range of some waits.
type pool struct {
	n         int
	low, high time.Duration
}

func (p *pool) add(d time.Duration) {
	if p.n == 0 {
		p.low, p.high = d, d
	}
	p.n++
	p.low, p.high = min(p.low, d), max(p.high, d)
}

const (
	// fewSamples of a wait say nothing about its range.
	fewSamples = 8
	// rangeFactor is how much wider than its range in either report a difference must be. Of 8 draws from one
	// uniform distribution the range is less than a quarter of its width with a chance below 1e-3, and two draws
	// as far apart as that are as rare again.
	rangeFactor = 2
	// roundSecond is what a Retry-After date loses by its whole seconds.
	roundSecond = time.Second
)

// busyShare is the part of results with a late machine, one in so many, from which on the whole run is doubted: what
// is slow without a timer does not show in the lateness of one.
const busyShare = 20

func learn(pairs []pair) *noise {
	n := &noise{waits: map[waitKey]*[2]pool{}, ends: [2]map[int]int{{}, {}}}
	var late [2]int
	for _, x := range pairs {
		n.sample(x)
		for side, r := range x.sides() {
			if r.History == nil || r.History.Validate() != nil {
				continue
			}
			n.declared[side] = r.History.Declared
			if r.History.Lateness > tooLate {
				late[side]++
			}
			for _, c := range r.History.Calls {
				if m := len(c.Made()) - c.HiddenAttempts(); !c.Outcome.OK && m > 1 && len(r.History.Calls) == 1 {
					n.ends[side][m]++
				}
				for _, g := range c.Gaps() {
					switch {
					case obeyed(r.History, g):
						n.excess[side].add(g.Next.At - g.Prev.NotBefore)
					case ownWait(g):
						n.pool(g)[side].add(g.Len)
						n.poolOf(waitKey{k: g.K})[side].add(g.Len)
					}
				}
			}
		}
	}
	n.busy = busyShare*max(late[0], late[1]) > len(pairs)
	return n
}

func (x pair) sides() [2]*harness.Result { return [2]*harness.Result{x.old, x.new} }

// ownWait reports whether the client chose the wait by itself.
func ownWait(g history.Gap) bool { return len(g.Prev.RetryAfter) == 0 && !g.Free && !g.Overlap }

func obeyed(h *history.History, g history.Gap) bool {
	return g.Prev.Asked() && !g.Overlap && g.Next.At >= g.Prev.NotBefore-h.Grain
}

func (n *noise) pool(g history.Gap) *[2]pool { return n.poolOf(waitKey{g.K, cause(g.Prev)}) }

func (n *noise) poolOf(key waitKey) *[2]pool {
	p := n.waits[key]
	if p == nil {
		p = new([2]pool)
		n.waits[key] = p
	}
	return p
}

// cause is the kind of a failure, as far as a policy of waits may care.
func cause(a *history.Attempt) string {
	if a.Status >= 300 {
		return strconv.Itoa(a.Status)
	}
	return a.Category
}

// resolution is how exact an instant is in either of two runs.
func resolution(a, b *history.History) time.Duration {
	return 4*max(a.Grain, b.Grain) + 2*max(a.Lateness, b.Lateness)
}

// spread is how far waits of one kind lie apart by chance; false where nothing tells.
func (n *noise) spread(g history.Gap, a, b *history.History) (time.Duration, bool) {
	var widest time.Duration
	p := n.pool(g)
	if rest := n.waits[waitKey{k: g.K}]; rest != nil && min(p[0].n, p[1].n) < fewSamples {
		p = rest // waits after failures of other kinds are the next best
	}
	for side, h := range []*history.History{a, b} {
		seen := p[side].high - p[side].low
		declared, ok := declaredRange(h.Declared, g.K)
		if p[side].n < fewSamples && !ok {
			return 0, false
		}
		if ok {
			seen = max(seen, declared)
		}
		widest = max(widest, seen)
	}
	return widest, true
}

// declaredRange is the width of the k-th wait by the declared policy.
func declaredRange(d history.Declared, k int) (time.Duration, bool) {
	delay, longest := d.Delay(k), d.LongestDelay(k)
	if d.Jitter != history.JitterNone && delay == 0 {
		return 0, false
	}
	switch d.Jitter {
	case history.JitterNone:
		return 0, true
	case history.JitterFull:
		return longest, true
	case history.JitterEqual:
		return longest / 2, true
	case history.JitterDecorrelated:
		return longest - d.BaseDelay, true
	case history.JitterAdditive:
		return d.JitterWidth, true
	case history.JitterProportional:
		return time.Duration(float64(delay) * d.JitterRatio), true
	}
	return 0, false
}

// jittered reports whether the waits of the calls vary by more than their clocks do, and whether they may, for
// nothing tells.
func (n *noise) jittered(x pair) (varies, unclear bool) {
	res := resolution(x.old.History, x.new.History)
	for _, r := range x.sides() {
		for _, c := range r.History.Calls {
			for _, g := range c.Gaps() {
				if obeyed(r.History, g) && max(n.excess[0].high-n.excess[0].low, n.excess[1].high-n.excess[1].low) > res {
					return true, false
				}
				if !ownWait(g) {
					continue
				}
				s, ok := n.spread(g, x.old.History, x.new.History)
				if s > res {
					return true, false
				}
				unclear = unclear || !ok
			}
		}
	}
	// Few samples tell nothing, but for this: who draws does not draw the same again.
	return false, unclear && !sameWaits(x, res)
}

// sameWaits reports whether all waits that the calls of a pair have in common are the same.
func sameWaits(x pair, res time.Duration) bool {
	some := false
	for _, c := range x.new.History.Calls {
		o := x.old.History.Call(c.ID)
		if o == nil {
			return false
		}
		a, b := o.Gaps(), c.Gaps()
		for i := range min(len(a), len(b)) {
			if (a[i].Len - b[i].Len).Abs() > res {
				return false
			}
			some = true
		}
	}
	return some
}

// drawsWaits reports whether the client, over all its scenarios, draws its waits.
func (n *noise) drawsWaits(a, b *history.History) bool {
	for _, h := range []*history.History{a, b} {
		if h.Declared.Jitter != history.JitterUndeclared && h.Declared.Jitter != history.JitterNone {
			return true
		}
	}
	for _, s := range n.samples {
		if s == nil || len(s.list) < fewSamples {
			continue
		}
		x := summarise(s.list, func(x paired) float64 { return x.old })
		y := summarise(s.list, func(x paired) float64 { return x.new })
		if max(x.width(), y.width()) > s.resolution {
			return true
		}
	}
	return false
}

// reach is the longest that the client may wait before its k-th retry, as far as anything tells.
func (n *noise) reach(d history.Declared, k int) time.Duration {
	longest := d.LongestDelay(k)
	for key, p := range n.waits {
		if key.k <= k {
			longest = max(longest, p[0].high*3/2, p[1].high*3/2)
		}
	}
	return longest
}

// fewEnds at one number of attempts show no limit.
const fewEnds = 5

// limit is the most attempts that the client makes: as declared, or as it shows, where most of the scenarios that
// it retries in vain end with one number. 0: neither tells.
func (n *noise) limit(side int, d history.Declared) int {
	if d.MaxAttempts > 0 {
		return d.MaxAttempts
	}
	all, best := 0, 0
	for m, k := range n.ends[side] {
		if all += k; k > n.ends[side][best] || k == n.ends[side][best] && m > best {
			best = m
		}
	}
	if k := n.ends[side][best]; k < fewEnds || 10*k < 6*all {
		return 0
	}
	return best
}

// againstTime reports whether chance in the waits may have changed what the calls came to.
func (n *noise) againstTime(x pair) bool {
	for side, r := range x.sides() {
		h := r.History
		if len(h.Triggers) > 0 || h.Capacity != nil || h.KeyExpiry > 0 || len(h.Calls) > 1 {
			return true
		}
		for _, e := range h.Effects {
			if e.Late {
				return true
			}
		}
		if n.callAgainstTime(side, h, h.Calls[0]) {
			return true
		}
	}
	return false
}

func (n *noise) callAgainstTime(side int, h *history.History, c *history.Call) bool {
	if c.CancelAt > 0 || !c.Returned {
		return true
	}
	for _, a := range c.Attempts {
		if a.InFlight || a.Phase == "commit_late" {
			return true
		}
	}
	made := len(c.Made()) - c.HiddenAttempts()
	limit := n.limit(side, h.Declared)
	if c.Outcome.OK || made == limit {
		return false
	}
	if h.Declared.MaxAttempts == 0 && made > 1 {
		return true // its own clock may have ended it
	}
	next := c.Ended + n.reach(h.Declared, made)
	if last := c.Last(); last != nil && last.Asked() {
		next = max(next, last.NotBefore+n.reach(h.Declared, made))
	}
	return c.Deadline > 0 && next >= c.Deadline-h.Grain
}

// paired is a number of one scenario in both reports.
type paired struct{ old, new float64 }

// signedRank is the two-sided p-value of Wilcoxon's signed-rank test, by its normal approximation with the
// correction for ties; differences of at most tie are none. It is 1 where fewer than 10 differ.
func signedRank(list []paired, tie float64) float64 {
	var diffs []float64
	for _, x := range list {
		if d := x.new - x.old; math.Abs(d) > tie {
			diffs = append(diffs, d)
		}
	}
	if len(diffs) < 10 {
		return 1
	}
	slices.SortFunc(diffs, func(a, b float64) int { return cmp.Compare(math.Abs(a), math.Abs(b)) })
	var plus, ties float64
	for i := 0; i < len(diffs); {
		j := i
		for j < len(diffs) && math.Abs(diffs[j]) == math.Abs(diffs[i]) {
			j++
		}
		t := float64(j - i)
		ties += t*t*t - t
		for k := i; k < j; k++ {
			if diffs[k] > 0 {
				plus += float64(i+j+1) / 2
			}
		}
		i = j
	}
	n := float64(len(diffs))
	mean := n * (n + 1) / 4
	sigma := math.Sqrt(n*(n+1)*(2*n+1)/24 - ties/48)
	z := max(0, math.Abs(plus-mean)-0.5) / sigma
	return math.Erfc(z / math.Sqrt2)
}
