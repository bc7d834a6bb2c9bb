package retry

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func drawPolicy(r *rapid.T) Policy {
	base := time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(r, "base"))
	if rapid.Bool().Draw(r, "usual") {
		base = time.Duration(rapid.Int64Range(1, int64(time.Minute)).Draw(r, "usual base"))
	}
	p := Policy{
		BaseDelay:   base,
		MaxDelay:    time.Duration(rapid.Int64Range(int64(base), math.MaxInt64).Draw(r, "max")),
		Multiplier:  rapid.Float64Range(1, 1e300).Draw(r, "multiplier"),
		Jitter:      Jitter(rapid.IntRange(int(FullJitter), int(NoJitter)).Draw(r, "jitter")),
		JitterWidth: time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(r, "width")),
	}
	if err := p.Validate(); err != nil {
		r.Fatal(err)
	}
	return p.withDefaults()
}

// bounds states each jitter's range over again, in floating point.
func bounds(p Policy, retry int, prev time.Duration) (least, most float64) {
	maxDelay := float64(p.MaxDelay)
	d := min(float64(p.BaseDelay)*math.Pow(p.Multiplier, float64(retry-1)), maxDelay)
	switch p.Jitter {
	case FullJitter:
		return min(1e6, d/2), d
	case EqualJitter:
		return d / 2, d
	case DecorrelatedJitter:
		return float64(p.BaseDelay), min(3*float64(max(prev, p.BaseDelay)), maxDelay)
	case AdditiveJitter:
		return d, d + float64(p.JitterWidth)
	default:
		return d, d
	}
}

func TestDelaysAreWithinBounds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := drawPolicy(r)
		random := sourceRandom(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
		b := backoff{policy: &p, retry: rapid.IntRange(0, 10_000).Draw(r, "retries before")}
		for range 40 {
			prev := b.prev
			delay := b.next(0, false, random)
			least, most := bounds(p, b.retry, prev)
			const slack = 1e-9 // of floating point
			if delay <= 0 || float64(delay) < math.Floor(least)*(1-slack) || float64(delay) > most*(1+slack)+1 {
				r.Fatalf("retry %d: %d is not in [%g, %g]", b.retry, delay, least, most)
			}
			if p.Jitter != AdditiveJitter && delay > p.MaxDelay {
				r.Fatalf("retry %d: %v is over the cap %v", b.retry, delay, p.MaxDelay)
			}
		}
	})
}

func TestNominalDelayGrowsToTheCap(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := drawPolicy(r)
		b := backoff{policy: &p}
		prev := time.Duration(0)
		for b.retry = 1; b.retry < 200; b.retry++ {
			d := b.nominal(p.BaseDelay)
			if d < prev || d > p.MaxDelay || d < 1 {
				r.Fatalf("retry %d: %v after %v, cap %v", b.retry, d, prev, p.MaxDelay)
			}
			prev = d
		}
	})
	p := Policy{BaseDelay: 1}.withDefaults()
	b := backoff{policy: &p, retry: 10_000}
	if d := b.nominal(p.BaseDelay); d != DefaultMaxDelay {
		t.Errorf("retry 10,000 from 1 ns: %v", d)
	}
}

func TestFloorIsKeptAndJittered(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := drawPolicy(r)
		floor := time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(r, "floor"))
		random := sourceRandom(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))
		b := backoff{policy: &p}
		for range 10 {
			if d := b.next(floor, false, random); d < floor {
				r.Fatalf("%v is under the floor %v", d, floor)
			}
		}
	})
	// The whole width is used, so that obedient clients part.
	p := Policy{}.withDefaults()
	low, high := time.Hour, time.Duration(0)
	for range 1000 {
		d := (&backoff{policy: &p}).next(10*time.Second, false, globalRandom)
		low, high = min(low, d), max(high, d)
	}
	if low > 10100*time.Millisecond || high < 10900*time.Millisecond || high > 11*time.Second {
		t.Errorf("1,000 clients come back from %v to %v", low, high)
	}
}

// Jitter drawn before the cap would put many delays exactly on it.
func TestDelaysDoNotPileUpOnTheCap(t *testing.T) {
	for j := FullJitter; j <= AdditiveJitter; j++ {
		p := Policy{Jitter: j, MaxDelay: 4 * time.Second}.withDefaults()
		b := backoff{policy: &p}
		seen := make(map[time.Duration]int)
		for range 1000 {
			seen[b.next(0, false, globalRandom)]++
		}
		for d, n := range seen {
			if n > 3 {
				t.Errorf("%v: %d of 1,000 delays are %v", j, n, d)
			}
		}
	}
}

func TestAdditivePreset(t *testing.T) {
	p := AdditivePreset().withDefaults()
	b := backoff{policy: &p}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		d := b.next(0, false, globalRandom)
		if want *= time.Second; d < want || d > want+500*time.Millisecond {
			t.Errorf("retry %d: %v, want %v to half a second more", i+1, d, want)
		}
	}
}
