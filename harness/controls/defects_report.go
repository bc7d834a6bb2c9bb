package controls

import (
	"context"
	"errors"

	"github.com/retrychaos/retrychaos/harness"
)

// reportDefects tell the application less than they know.
func reportDefects() []defect {
	return []defect{
		{
			name:   "masks-the-error",
			breaks: "error.last-real",
			doc:    "Says that it has failed after its last attempt, and not why.",
			wrong: func(p *policy) {
				p.report = func(_ harness.Call, f *failure, o harness.Outcome) harness.Outcome {
					if f == nil || o.Attempts < p.attempts {
						return o
					}
					return harness.Outcome{Err: errors.New("all retries failed"), Attempts: o.Attempts}
				}
			},
		},
		{
			name:   "gives-the-context-error",
			breaks: "error.last-real",
			doc:    "Says that the deadline has passed when the next wait does not fit before it, and not what had gone wrong.",
			wrong: func(p *policy) {
				p.report = func(call harness.Call, f *failure, o harness.Outcome) harness.Outcome {
					if f == nil || o.Attempts == p.attempts || !repeatable(call, f) || errors.Is(o.Err, context.Canceled) {
						return o
					}
					return harness.Outcome{Err: context.DeadlineExceeded, Attempts: o.Attempts}
				}
			},
		},
		{
			name:   "miscounts-attempts",
			breaks: "error.last-real",
			doc:    "Tells the number of its retries for the number of its attempts.",
			wrong: func(p *policy) {
				p.report = func(_ harness.Call, f *failure, o harness.Outcome) harness.Outcome {
					if f != nil && o.Attempts > 1 {
						o.Attempts--
					}
					return o
				}
			},
		},
	}
}
