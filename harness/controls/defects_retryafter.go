package controls

import (
	"strconv"
	"strings"
	"time"
)

// retryAfterDefects do not do what Retry-After asks for.
func retryAfterDefects() []defect {
	return []defect{
		{
			name:   "ignores-retry-after",
			breaks: "timing.retry-after",
			doc:    "Waits as it sees fit, whatever the server asks for.",
			wrong: func(p *policy) {
				p.asked = func([]string, time.Time) (time.Duration, bool) { return 0, false }
			},
		},
		{
			name:   "overflows-retry-after",
			breaks: "timing.retry-after",
			doc: "Multiplies the seconds by 1e9 without looking, so that 9223372037 becomes a time in the past and " +
				"the repeats come in a burst.",
			wrong: func(p *policy) {
				p.asked = func(lines []string, now time.Time) (time.Duration, bool) {
					if len(lines) == 1 {
						if seconds, err := strconv.ParseInt(strings.TrimSpace(lines[0]), 10, 64); err == nil && seconds >= 0 {
							return time.Duration(seconds) * time.Second, true
						}
					}
					return retryAfter(lines, now)
				}
			},
		},
		{
			name:   "hot-loop-on-zero",
			breaks: "timing.retry-after",
			doc:    "Takes Retry-After: 0 for a permission to repeat at once, each time.",
			wrong: func(p *policy) {
				p.combine = func(asked, own time.Duration) time.Duration {
					if asked == 0 {
						return 0
					}
					return asked + own
				}
			},
		},
	}
}
