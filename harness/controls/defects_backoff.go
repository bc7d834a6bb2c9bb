package controls

import (
	"math/rand/v2"
	"time"
)

// backoffDefects do not back off.
func backoffDefects() []defect {
	return []defect{
		{
			name:   "hot-loop",
			breaks: "timing.backoff-grows",
			doc: "Repeats at once. timing.spread follows: clients that fail together and do not wait come back " +
				"together. timing.retry-after follows: a value that is not valid leaves a client to its own " +
				"back-off, and it has none.",
			follows: []string{"timing.spread", "timing.retry-after"},
			wrong: func(p *policy) {
				p.backoff = func(*rand.Rand, int, time.Duration) time.Duration { return 0 }
			},
		},
		{
			name:   "constant-delay",
			breaks: "timing.backoff-grows",
			doc: "Draws one wait of up to 4 s for the call and waits as long before each repeat. Only a herd can " +
				"show it: a single call may draw like that by chance.",
			shown: []string{"herd/three-waves"},
			wrong: func(p *policy) {
				p.backoff = func(r *rand.Rand, _ int, last time.Duration) time.Duration {
					if last > 0 {
						return last
					}
					return between(r, leastWait, 4*base)
				}
			},
		},
	}
}
