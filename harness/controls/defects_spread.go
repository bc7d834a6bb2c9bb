package controls

import (
	"math/rand/v2"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
)

// The herds in which the defects show: waves of the client's own waits, a Retry-After for all, and calls that
// start in the same nanosecond.
var (
	waves   = []string{"herd/three-waves", "herd/resets-together"}
	asked   = []string{"herd/503-with-one-date-for-all"}
	instant = []string{"herd/same-instant-503"}
)

// spreadDefects come back together. What they declare is full jitter, unless the defect is in another kind.
func spreadDefects() []defect {
	return []defect{
		{
			name:   "no-jitter",
			breaks: "timing.spread",
			doc:    "Waits exactly 1 s, 2 s, 4 s, and so does every other instance.",
			shown:  waves,
			wrong: func(p *policy) {
				p.backoff = func(_ *rand.Rand, k int, _ time.Duration) time.Duration { return delay(k) }
			},
		},
		{
			name:   "jitter-of-one-percent",
			breaks: "timing.spread",
			doc:    "Spreads its waits over a hundredth of the delay.",
			shown:  waves,
			wrong: func(p *policy) {
				p.backoff = func(r *rand.Rand, k int, _ time.Duration) time.Duration { return between(r, delay(k)*99/100, delay(k)) }
			},
		},
		{
			name:   "whole-seconds",
			breaks: "timing.spread",
			doc:    "Draws its waits well, over 4 s and then 8 s, and rounds them up to whole seconds.",
			shown:  waves,
			wrong: func(p *policy) {
				// From 4 s on, waits that are rounded up still grow as they should.
				p.declared.BaseDelay = 4 * base
				p.backoff = func(r *rand.Rand, k int, _ time.Duration) time.Duration {
					return fullJitter(r, k+2, 0).Truncate(time.Second) + time.Second
				}
			},
		},
		{
			name:   "one-shared-seed",
			breaks: "timing.spread",
			doc:    "Draws its waits well, from a generator that starts with the same seed in every instance.",
			shown:  waves,
			wrong: func(p *policy) {
				p.random = func(uint64, harness.Call) *rand.Rand { return rand.New(rand.NewPCG(42, 42)) }
			},
		},
		{
			name:   "ten-shared-seeds",
			breaks: "timing.spread",
			doc:    "Draws its waits well, from a generator with one of ten seeds: a tenth of all instances goes together.",
			shown:  waves,
			wrong: func(p *policy) {
				p.random = func(seed uint64, _ harness.Call) *rand.Rand { return rand.New(rand.NewPCG(seed%10, 42)) }
			},
		},
		{
			name:   "a-third-in-lock-step",
			breaks: "timing.spread",
			doc:    "Draws its waits well in most instances; three of ten have one seed in common.",
			shown:  waves,
			wrong: func(p *policy) {
				p.random = func(seed uint64, call harness.Call) *rand.Rand {
					if seed%10 < 3 {
						return rand.New(rand.NewPCG(42, 42))
					}
					return seeded(seed, call)
				}
			},
		},
		{
			name:   "seeds-from-the-clock",
			breaks: "timing.spread",
			doc: "Seeds its generator from the clock when the call starts. Calls that start in the same nanosecond " +
				"draw the same waits.",
			shown: instant,
			wrong: func(p *policy) {
				p.random = func(uint64, harness.Call) *rand.Rand {
					return rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
				}
			},
		},
		{
			name:   "retry-after-to-the-second",
			breaks: "timing.spread",
			doc:    "Obeys Retry-After without any jitter of its own.",
			shown:  asked,
			wrong: func(p *policy) {
				p.combine = func(asked, own time.Duration) time.Duration {
					if asked == 0 {
						return own
					}
					return asked
				}
			},
		},
		{
			name:   "greater-of-both",
			breaks: "timing.spread",
			doc: "Waits for the greater of Retry-After and its own jittered delay, which is Retry-After to the second " +
				"wherever that is the longer.",
			shown: asked,
			wrong: func(p *policy) {
				p.combine = func(asked, own time.Duration) time.Duration { return max(asked, own) }
			},
		},
		{
			name:   "jitter-before-the-cap",
			breaks: "timing.spread",
			doc:    "Draws from the whole delay and clamps the draw to its cap of 1 s afterwards: half of the second waits end on it.",
			shown:  waves,
			wrong: func(p *policy) {
				p.declared.MaxDelay = time.Second
				p.backoff = func(r *rand.Rand, k int, _ time.Duration) time.Duration { return min(fullJitter(r, k, 0), time.Second) }
			},
		},
		{
			name:   "decorrelated-onto-the-cap",
			breaks: "timing.spread",
			doc:    "Decorrelated jitter, from 1 s to three times the last wait, clamped to 2 s after the draw: half of the first waits end there.",
			shown:  waves,
			wrong: func(p *policy) {
				const limit = 2 * time.Second
				p.declared.Jitter, p.declared.MaxDelay = history.JitterDecorrelated, limit
				p.backoff = func(r *rand.Rand, _ int, last time.Duration) time.Duration {
					return min(between(r, base, 3*max(base, last)), limit)
				}
			},
		},
	}
}
