package controls

import (
	"math"
	"math/rand/v2"
	"time"
)

// loadDefects keep a server down that fails because of its load.
func loadDefects() []defect {
	return []defect{
		{
			name:   "without-a-budget",
			breaks: "load.amplification",
			doc: "Waits and spreads its retries as it should, and goes on retrying while nothing succeeds: jitter alone " +
				"does not save an overloaded server.",
			shown: []string{"overload/stall", "overload/refusal"},
			wrong: func(p *policy) { p.budget = math.Inf(1) },
		},
		{
			name:   "back-in-a-moment",
			breaks: "load.amplification",
			doc: "Backs off and spreads its waits as it declares, but over 20, 40 and 80 ms: all four attempts of a " +
				"call are made and lost while an overloaded server has not got any further.",
			shown: []string{"overload/herd-at-the-door-503", "overload/slow-for-a-moment"},
			wrong: func(p *policy) {
				const first = 20 * time.Millisecond
				p.declared.BaseDelay = first
				p.backoff = func(r *rand.Rand, k int, _ time.Duration) time.Duration {
					return between(r, time.Millisecond, first<<(k-1))
				}
			},
		},
	}
}
