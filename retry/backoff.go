package retry

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"
)

// A Jitter says how a delay is drawn from the nominal delay d, which is
// BaseDelay × Multiplierⁿ⁻¹ before retry n, capped at MaxDelay. Jitter is what
// keeps clients that failed together from coming back together. After
// throttling ThrottledDelay stands for BaseDelay.
type Jitter int

// The jitters. U(a, b) is a uniform draw.
const (
	// FullJitter draws U(0, d), but never less than 1 ms (d/2, when d is
	// shorter than 2 ms), so that a loop cannot run hot. It spreads the
	// most for the same d, and is the default.
	FullJitter Jitter = iota

	// EqualJitter draws d/2 + U(0, d/2): at least half of the delay is kept.
	EqualJitter

	// DecorrelatedJitter draws U(BaseDelay, 3 × the previous delay), the
	// upper end capped at MaxDelay. Multiplier is not used.
	DecorrelatedJitter

	// AdditiveJitter draws d + U(0, JitterWidth). The sum may exceed
	// MaxDelay by up to JitterWidth.
	AdditiveJitter

	// NoJitter waits exactly d. For tests, or where something else spreads
	// the clients.
	NoJitter
)

var jitterNames = [...]string{"full jitter", "equal jitter", "decorrelated jitter", "additive jitter", "no jitter"}

func (j Jitter) valid() bool { return j >= 0 && int(j) < len(jitterNames) }

// String returns the name in words, such as "full jitter".
func (j Jitter) String() string {
	if !j.valid() {
		return fmt.Sprintf("Jitter(%d)", int(j))
	}
	return jitterNames[j]
}

// leastDelay is the lower end of FullJitter.
const leastDelay = time.Millisecond

// A backoff draws the delays of one call. Its zero value with a valid policy
// is ready; it is used by one goroutine.
type backoff struct {
	policy *Policy // defaults filled in
	retry  int     // retries drawn so far
	prev   time.Duration
}

// next draws the delay before the next retry, after throttling or another
// failure. The delay is not less than floor, which is what the server asked
// for, or zero.
//
// Each jitter is a fixed part and a random width above it. The floor lifts the
// fixed part and leaves the width alone: taking the greater of floor and delay
// instead would send every client that obeys back at the same instant.
func (b *backoff) next(floor time.Duration, throttled bool, random func(n int64) int64) time.Duration {
	b.retry++
	fixed, width := b.parts(throttled)
	if floor > 0 {
		fixed = max(fixed, floor)
		if b.policy.Jitter != NoJitter {
			width = max(width, b.policy.JitterWidth)
		}
	}
	delay := addSaturating(fixed, uniform(width, random))
	b.prev = min(delay, b.policy.MaxDelay)
	return delay
}

// parts splits the delay before retry b.retry into the part that is certain
// and the width of the part that is drawn.
func (b *backoff) parts(throttled bool) (fixed, width time.Duration) {
	base := b.policy.BaseDelay
	if throttled {
		base = b.policy.ThrottledDelay
	}
	d := b.nominal(base)
	switch b.policy.Jitter {
	case NoJitter:
		return d, 0
	case EqualJitter:
		return d - d/2, d / 2
	case DecorrelatedJitter:
		prev := max(b.prev, base)
		// The cap is on the range, not on the draw: a clamped draw would put
		// every third client exactly on the cap.
		upper := min(mulSaturating(prev, 3), b.policy.MaxDelay)
		return base, max(upper-base, 0)
	case AdditiveJitter:
		return d, b.policy.JitterWidth
	default: // FullJitter
		least := max(min(leastDelay, d/2), 1)
		return least, d - least
	}
}

// nominal is base × Multiplierⁿ⁻¹, capped at MaxDelay. The comparison is
// made before the conversion to an integer, where +Inf and numbers beyond 2⁶³
// are still in order: nothing wraps, at any attempt number.
func (b *backoff) nominal(base time.Duration) time.Duration {
	f := float64(base) * math.Pow(b.policy.Multiplier, float64(b.retry-1))
	if !(f < float64(b.policy.MaxDelay)) {
		return b.policy.MaxDelay
	}
	return max(time.Duration(f), 1)
}

// uniform draws from [0, width], both ends included.
func uniform(width time.Duration, random func(n int64) int64) time.Duration {
	if width <= 0 {
		return 0
	}
	if width == math.MaxInt64 {
		return time.Duration(random(math.MaxInt64))
	}
	return time.Duration(random(int64(width) + 1))
}

func addSaturating(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

func mulSaturating(a time.Duration, n int64) time.Duration {
	if a > time.Duration(math.MaxInt64/n) {
		return math.MaxInt64
	}
	return a * time.Duration(n)
}

// globalRandom draws from [0, n) with the generator that the runtime seeds
// from the operating system, once a process: never from the clock, from which
// clients that start together would draw the same numbers.
func globalRandom(n int64) int64 { return rand.Int64N(n) }

// sourceRandom draws from src, for many goroutines at once.
func sourceRandom(src rand.Source) func(int64) int64 {
	var mu sync.Mutex
	r := rand.New(src)
	return func(n int64) int64 {
		mu.Lock()
		defer mu.Unlock()
		return r.Int64N(n)
	}
}
