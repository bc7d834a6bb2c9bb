package check

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/retrychaos/retrychaos/harness/history"
)

// TestScanThresholds holds the thresholds against a table computed apart: α = 1e-6 over 5 waves × 4 scales, no grain.
func TestScanThresholds(t *testing.T) {
	want := map[int][4]int{ // 0: not even all n would be evidence
		20:   {0, 15, 10, 6},
		50:   {46, 25, 15, 7},
		100:  {81, 38, 20, 9},
		200:  {145, 60, 28, 11},
		1000: {603, 199, 75, 18},
	}
	for n, row := range want {
		for i, p := range scanScales {
			c, ok := scanThreshold(n, p, 1e-6/20)
			if c != row[i] || ok != (row[i] > 0) {
				t.Errorf("n = %d, p = %v: threshold %d (%v), want %d", n, p, c, ok, row[i])
			}
		}
	}
	for _, p := range []float64{1, 1.5} {
		if _, ok := scanThreshold(1000, p, 1e-6); ok {
			t.Errorf("p = %v: nothing can be evidence where the grain covers the width", p)
		}
	}
}

// TestTails holds the incomplete beta function against gonum's own binomial.
func TestTails(t *testing.T) {
	for _, n := range []int{1, 7, 100, 1000} {
		for _, p := range []float64{0.001, 0.3, 2.0 / 3} {
			b := distuv.Binomial{N: float64(n), P: p}
			for c := 0; c <= n; c += max(1, n/13) {
				sum := 0.0
				for k := c; k <= n; k++ {
					sum += b.Prob(float64(k))
				}
				if got := upperTail(n, c, p); math.Abs(got-sum) > 1e-9 {
					t.Errorf("P(Bin(%d, %v) ≥ %d) = %v, want %v", n, p, c, got, sum)
				}
				if got := lowerTail(n, c, p); math.Abs(got-(1-sum+b.Prob(float64(c)))) > 1e-9 {
					t.Errorf("P(Bin(%d, %v) ≤ %d) = %v", n, p, c, got)
				}
			}
		}
	}
}

func TestScanMax(t *testing.T) {
	var xs []sample
	for _, x := range []time.Duration{0, 3, 5, 5, 8, 13, 14} {
		xs = append(xs, sample{x: x})
	}
	for w, want := range map[time.Duration][2]int{0: {2, 2}, 1: {2, 2}, 2: {3, 1}, 5: {4, 0}, 14: {7, 0}} {
		if n, at := scanMax(xs, w); n != want[0] || at != want[1] {
			t.Errorf("window %d: %d from %d, want %v", w, n, at, want)
		}
	}
}

// A policy is a way to wait, and what its author declares of it.
type policy struct {
	name string
	d    history.Declared
	wait func(rng *rand.Rand, k int, last time.Duration) time.Duration
}

func uniform(rng *rand.Rand, from, to time.Duration) time.Duration {
	return from + time.Duration(rng.Float64()*float64(to-from))
}

// herdBy makes n calls that wait by the policy, with noise of the network, k times.
func herdBy(rng *rand.Rand, p policy, n, k int, noise time.Duration) *history.History {
	last := make([]time.Duration, n)
	h := herdOf(n, k, func(i, k int) time.Duration {
		if k == 1 {
			last[i] = p.d.BaseDelay
		}
		last[i] = p.wait(rng, k, last[i])
		return last[i] + uniform(rng, 0, noise)
	})
	return declares(h, p.d)
}

func doubled(k int) time.Duration { return s << (k - 1) }

var goodPolicies = []policy{
	{"full", history.Declared{Jitter: history.JitterFull, BaseDelay: s},
		func(r *rand.Rand, k int, _ time.Duration) time.Duration { return uniform(r, 0, doubled(k)) }},
	{"full, capped", history.Declared{Jitter: history.JitterFull, BaseDelay: s, MaxDelay: 2 * s},
		func(r *rand.Rand, k int, _ time.Duration) time.Duration { return uniform(r, 0, min(2*s, doubled(k))) }},
	{"equal", history.Declared{Jitter: history.JitterEqual, BaseDelay: s},
		func(r *rand.Rand, k int, _ time.Duration) time.Duration { return uniform(r, doubled(k)/2, doubled(k)) }},
	{"additive", history.Declared{Jitter: history.JitterAdditive, BaseDelay: s, JitterWidth: s / 2},
		func(r *rand.Rand, k int, _ time.Duration) time.Duration { return doubled(k) + uniform(r, 0, s/2) }},
	{"proportional", history.Declared{Jitter: history.JitterProportional, BaseDelay: s, JitterRatio: 0.4},
		func(r *rand.Rand, k int, _ time.Duration) time.Duration {
			return uniform(r, doubled(k)*8/10, doubled(k)*12/10)
		}},
	{"decorrelated", history.Declared{Jitter: history.JitterDecorrelated, BaseDelay: s},
		func(r *rand.Rand, _ int, last time.Duration) time.Duration { return uniform(r, s, 3*last) }},
	{"decorrelated, capped before the draw", history.Declared{Jitter: history.JitterDecorrelated, BaseDelay: s, MaxDelay: 4 * s},
		func(r *rand.Rand, _ int, last time.Duration) time.Duration { return uniform(r, s, min(4*s, 3*last)) }},
	{"undeclared ±20 %", history.Declared{},
		func(r *rand.Rand, k int, _ time.Duration) time.Duration {
			return uniform(r, doubled(k)*8/10, doubled(k)*12/10)
		}},
	{"undeclared plus half a second", history.Declared{},
		func(r *rand.Rand, k int, _ time.Duration) time.Duration { return doubled(k) + uniform(r, 0, s/2) }},
}

// TestSpreadFalseAlarms simulates good policies at a level that can be counted: of the runs of each no more
// may be rejected than α allows.
func TestSpreadFalseAlarms(t *testing.T) {
	const level = 0.05
	runs := 400
	if testing.Short() {
		runs = 40
	}
	allowed := int(level*float64(runs) + 3*math.Sqrt(level*float64(runs)))
	rng := rand.New(rand.NewPCG(3, 4))
	for _, p := range goodPolicies {
		rejected := 0
		for range runs {
			h := herdBy(rng, p, 30, 3, ms)
			waves, _ := spreadWaves(h)
			for _, w := range waves {
				scales, _ := scan(w.xs, w.width, h.Grain, level/float64(len(waves)*len(scanScales)))
				if slices.ContainsFunc(scales, scanned.rejects) {
					rejected++
					break
				}
			}
		}
		if rejected > allowed {
			t.Errorf("%s: %d of %d runs rejected at α = %v", p.name, rejected, runs, level)
		}
	}
}

// TestSpreadPassesGoodHerds has full-size herds pass at the real level.
func TestSpreadPassesGoodHerds(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for _, p := range goodPolicies {
		v := timingSpread.judge(herdBy(rng, p, 200, 3, ms))
		if v.Status != Pass || !strings.Contains(v.Reason, "ruled out") {
			t.Errorf("%s: %s: %s\n%s", p.name, v.Status, v.Reason, strings.Join(v.Evidence, "\n"))
		}
		assumed := strings.Contains(strings.Join(v.Notes, " "), "assumed")
		if assumed != (p.d.Jitter == history.JitterUndeclared) {
			t.Errorf("%s: assumed is %v: %v", p.name, assumed, v.Notes)
		}
		if w := v.Waits; w == nil || w.Schema != WaitsSchema || w.Calls == 0 || w.Most >= w.Limit {
			t.Errorf("%s: waits %+v", p.name, w)
		}
	}
}

// TestSpreadCatchesHerds has broken jitter of each kind, in herds of 50.
func TestSpreadCatchesHerds(t *testing.T) {
	full := history.Declared{Jitter: history.JitterFull, BaseDelay: s}
	capped := history.Declared{Jitter: history.JitterFull, BaseDelay: s, MaxDelay: s}
	decorrelated := history.Declared{Jitter: history.JitterDecorrelated, BaseDelay: s, MaxDelay: 2 * s}
	draw := func(f func(r *rand.Rand, k int) time.Duration) func(*rand.Rand, int, time.Duration) time.Duration {
		return func(r *rand.Rand, k int, _ time.Duration) time.Duration { return f(r, k) }
	}
	locked := 0
	broken := []policy{
		{"none", history.Declared{Jitter: history.JitterNone}, draw(func(_ *rand.Rand, k int) time.Duration { return doubled(k) })},
		{"none, undeclared", history.Declared{}, draw(func(_ *rand.Rand, k int) time.Duration { return doubled(k) })},
		{"none, declared full", full, draw(func(_ *rand.Rand, k int) time.Duration { return doubled(k) })},
		{"at once", history.Declared{}, draw(func(*rand.Rand, int) time.Duration { return 0 })},
		{"after a moment", history.Declared{}, draw(func(*rand.Rand, int) time.Duration { return 20 * ms })},
		{"1 %", full, draw(func(r *rand.Rand, k int) time.Duration { return uniform(r, doubled(k)*99/100, doubled(k)) })},
		{"5 %", full, draw(func(r *rand.Rand, k int) time.Duration { return uniform(r, doubled(k)*95/100, doubled(k)) })},
		{"whole seconds", history.Declared{Jitter: history.JitterFull, BaseDelay: 4 * s}, draw(func(r *rand.Rand, k int) time.Duration {
			return uniform(r, s, 4*s).Truncate(s)
		})},
		{"jitter before the clamp", capped, draw(func(r *rand.Rand, k int) time.Duration { return min(s, uniform(r, 0, doubled(k+1))) })},
		{"decorrelated, clamped", decorrelated, func(r *rand.Rand, _ int, last time.Duration) time.Duration { return min(2*s, uniform(r, s, 3*last)) }},
		{"30 % in lock-step", full, draw(func(r *rand.Rand, k int) time.Duration {
			if locked++; locked%10 < 3 {
				return doubled(k) / 3
			}
			return uniform(r, 0, doubled(k))
		})},
	}
	rng := rand.New(rand.NewPCG(7, 8))
	for _, p := range broken {
		v := timingSpread.judge(herdBy(rng, p, 50, 3, ms/10))
		if v.Status != Fail || len(v.Calls) == 0 || v.Level != Should {
			t.Errorf("%s: %s: %s\n%s", p.name, v.Status, v.Reason, strings.Join(v.Evidence, "\n"))
		}
		if w := v.Waits; w == nil || w.Most < w.Limit || !strings.HasPrefix(v.Reason, fmt.Sprintf("%d of %d calls came back within %s", w.Most, w.Calls, dur(w.Window))) {
			t.Errorf("%s: waits %+v for %s", p.name, w, v.Reason)
		}
	}
}

// afterRetryAfter makes a herd that was told to wait, by seconds or by one date for all.
func afterRetryAfter(n int, date bool, wait func(i int, asked time.Duration) time.Duration) *history.History {
	var calls []*history.Call
	for i := range n {
		at := time.Duration(0)
		if date {
			at = time.Duration(i) * 7 * ms // staggered: the date is the same
		}
		asked := 3*s - at
		if !date {
			asked = 3 * s
		}
		c := call("c"+time.Duration(i).String(), try(at, "429", asks("3", asked)), try(at+wait(i, asked), "ok"))
		calls = append(calls, with(c, keyed, deadline(0)))
	}
	return run(calls...)
}

func TestSpreadAfterRetryAfter(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 10))
	exact := func(_ int, asked time.Duration) time.Duration { return asked }
	plus := func(width time.Duration) func(int, time.Duration) time.Duration {
		return func(_ int, asked time.Duration) time.Duration { return asked + uniform(rng, 0, width) }
	}
	additive := history.Declared{Jitter: history.JitterAdditive, JitterWidth: s / 2}
	full := history.Declared{Jitter: history.JitterFull, BaseDelay: 30 * s} // says nothing of a Retry-After
	for _, x := range []struct {
		name string
		h    *history.History
		want Status
	}{
		{"obeyed to the second", afterRetryAfter(200, false, exact), Fail},
		{"obeyed to the date", afterRetryAfter(200, true, exact), Fail},
		{"plus half a second", afterRetryAfter(200, false, plus(s/2)), Pass},
		{"date plus half a second", afterRetryAfter(200, true, plus(s/2)), Pass},
		{"plus as declared", declares(afterRetryAfter(200, false, plus(s/2)), additive), Pass},
		{"plus less than declared", declares(afterRetryAfter(200, false, plus(s/10)), additive), Fail},
		{"plus less than the least", afterRetryAfter(200, false, plus(s/20)), Fail},
		{"full jitter is not asked for", declares(afterRetryAfter(200, false, plus(s/2)), full), Pass},
	} {
		if v := timingSpread.judge(x.h); v.Status != x.want {
			t.Errorf("%s: %s, want %s: %s", x.name, v.Status, x.want, v.Reason)
		}
	}
}

// TestSpreadOfWhatWasCutShort: of calls cancelled in their wait only those with a short one come back. They are
// crowded, and nobody's fault.
func TestSpreadOfWhatWasCutShort(t *testing.T) {
	additive := history.Declared{Jitter: history.JitterAdditive, BaseDelay: s, JitterWidth: s / 2}
	cancelled := func(everyone bool) *history.History {
		rng := rand.New(rand.NewPCG(13, 14))
		var calls []*history.Call
		for i := range 200 {
			c := call("c"+time.Duration(i).String(), try(0, "503"))
			if wait := s + uniform(rng, 0, s/2); everyone || wait < 1300*ms {
				c = call(c.ID, try(0, "503"), try(min(wait, 1250*ms), "ok"))
			} else {
				c.Outcome.OK, c.CancelAt, c.Ended = false, 1300*ms, 1300*ms
			}
			calls = append(calls, c)
		}
		return declares(run(calls...), additive)
	}
	table(t, timingSpread, []row{
		{"cancelled in the wait", cancelled(false), Skipped, "cancellation or a deadline"},
		{"all came, and crowded", cancelled(true), Fail, "came back within"},
	})
}

func TestSpreadWithoutPower(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	full := goodPolicies[0]
	noisy := herdBy(rng, full, 50, 1, 25*ms)
	noisy.Grain = 200 * ms
	stale := herdOf(50, 1, func(_, _ int) time.Duration { return 0 })
	for _, c := range stale.Calls {
		c.Attempts[0] = try(0, "empty_response", reused)
	}
	renewed := herdOf(50, 1, func(_, _ int) time.Duration { return 5 * ms })
	for _, c := range renewed.Calls {
		c.Attempts[0].Status = 401
	}
	gaps := herdBy(rng, full, 20, 1, ms)
	// Somewhat crowded: on a machine that held things back for 300 ms that shows nothing, lock-step still does.
	crowd := func(width, lateness time.Duration) *history.History {
		h := declares(herdOf(100, 1, func(i, _ int) time.Duration {
			if i < 45 {
				return s/4 + time.Duration(i)*width/45
			}
			return time.Duration(i) * s / 100
		}), full.d)
		h.Lateness = lateness
		return h
	}
	table(t, timingSpread, []row{
		{"crowded", crowd(s/8, 0), Fail, "came back within"},
		{"crowded by a busy machine", crowd(s/8, 150*ms), Unknown, "this machine was late by 150ms"},
		{"lock-step on a busy machine", crowd(0, 10*ms), Fail, "came back within"},
		{"nobody retried", run(call("c1", try(0, "400"))), Skipped, "fewer than 20"},
		{"19 calls", herdBy(rng, full, 19, 1, ms), Skipped, "fewer than 20"},
		{"20 calls have the power", gaps, Pass, "skipped"},
		{"noise as wide as the jitter", noisy, Unknown, "cannot be told from noise"},
		{"stale connections", stale, Skipped, ""},
		{"replayed with a new token", renewed, Skipped, "fewer than 20"},
	})
	// A narrow jitter that was declared so cannot be seen, and is never a pass.
	narrow := policy{"", history.Declared{Jitter: history.JitterAdditive, BaseDelay: s, JitterWidth: 4 * ms},
		func(r *rand.Rand, k int, _ time.Duration) time.Duration { return doubled(k) + uniform(r, 0, 4*ms) }}
	if v := timingSpread.judge(herdBy(rng, narrow, 200, 1, 0)); v.Status != Unknown {
		t.Errorf("narrow: %s: %s", v.Status, v.Reason)
	}
}

func TestHistogram(t *testing.T) {
	var xs []sample
	for i := range 100 {
		xs = append(xs, sample{x: time.Duration(i) * ms})
	}
	peak, lines := histogram(xs)
	if len(lines) != 10 || peak < 1 || peak > 1.2 {
		t.Errorf("peak %v, %d lines", peak, len(lines))
	}
	if peak, lines = histogram(xs[:1]); len(lines) != 1 || peak != 10 {
		t.Errorf("one instant: peak %v, %d lines", peak, len(lines))
	}
	if _, lines = histogram(nil); lines != nil {
		t.Error("nothing to draw")
	}
}
