package controls

import (
	"context"
	"errors"
	"time"

	"github.com/retrychaos/retrychaos/harness"
)

// endDefects do not stop when they should, or stop too early.
func endDefects() []defect {
	return []defect{
		{
			name:   "sleeps-past-the-deadline",
			breaks: "timing.deadline",
			doc:    "Sleeps through its wait although the deadline falls within it; a cancellation does wake it.",
			wrong: func(p *policy) {
				p.fits = func(context.Context, time.Duration) bool { return true }
				p.sleep = sleepUnlessCanceled
			},
		},
		{
			name:   "sleeps-through-cancellation",
			breaks: "timing.cancel",
			doc:    "Looks at its context only after the wait; the deadline it has reckoned with beforehand.",
			wrong: func(p *policy) {
				p.sleep = func(ctx context.Context, wait time.Duration) error {
					time.Sleep(wait)
					return ctx.Err()
				}
			},
		},
		{
			name:   "goes-on-in-the-background",
			breaks: "timing.cancel",
			doc:    "Returns at once when the application cancels, and leaves a goroutine behind that tries on.",
			wrong:  func(p *policy) { p.around = background },
		},
		{
			name:   "gives-up-early",
			breaks: "liveness.recovers",
			doc:    "Declares four attempts and makes two.",
			wrong:  func(p *policy) { p.attempts = 2 },
		},
	}
}

func sleepUnlessCanceled(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	done := ctx.Done()
	for {
		select {
		case <-timer.C:
			return ctx.Err()
		case <-done:
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return ctx.Err()
			}
			done = nil
		}
	}
}

// background runs the loop under a context that keeps the deadline and cannot be cancelled.
func background(next harness.Caller) harness.Caller {
	return harness.CallerFunc(func(ctx context.Context, call harness.Call) harness.Outcome {
		own, cancel := context.WithoutCancel(ctx), func() {}
		if deadline, ok := ctx.Deadline(); ok {
			own, cancel = context.WithDeadline(own, deadline)
		}
		done := make(chan harness.Outcome, 1)
		go func() {
			defer cancel()
			done <- next.Call(own, call)
		}()
		select {
		case o := <-done:
			return o
		case <-ctx.Done():
		}
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return <-done // it ends by itself, with the last real failure
		}
		return harness.Outcome{Err: ctx.Err()}
	})
}
