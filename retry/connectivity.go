package retry

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// WithConnectivity makes calls wait for the network instead of using up their
// attempts while it is down.
//
// When no connection can be made (no route, no answer from DNS, refused), probe
// is asked whether there is a network: it returns nil if so, or why not. It may
// look at the system's interfaces, or connect to something that is always there.
// While it returns errors, it is asked again after each back-off delay of the
// policy, and the call's attempt is made when it returns nil. Such attempts are
// listed, with Attempt.Offline, but take nothing from MaxAttempts and the budget.
// When probe returns nil at once, the server is what fails, and the failure
// counts like any other.
//
// The wait ends with the context. It also ends limit after the call first found
// the network down, with an [*OfflineError]; limit must be positive. probe's own
// context ends after AttemptTimeout. It is called on the calling goroutine, so
// calls made side by side call it side by side.
func WithConnectivity(probe func(ctx context.Context) error, limit time.Duration) Option {
	return func(o *options) { o.probe = &connectivity{probe, limit} }
}

type connectivity struct {
	probe func(context.Context) error
	limit time.Duration
}

func (c *connectivity) validate() error {
	if c != nil && (c.probe == nil || c.limit <= 0) {
		return errors.New("retry: WithConnectivity needs a probe and a positive limit")
	}
	return nil
}

// An OfflineError says that the network did not come back.
type OfflineError struct {
	Limit time.Duration // how long it was waited for
	Err   error         // what the probe said last
}

func (e *OfflineError) Error() string {
	return fmt.Sprintf("the network is down, and was waited for for %v: %v", e.Limit, e.Err)
}

// Unwrap returns the probe's last error.
func (e *OfflineError) Unwrap() error { return e.Err }

// offline asks whether the network is down after an attempt that ended now, and
// if so how long to wait until it is asked again.
func (c *call) offline(now time.Time) (wait time.Duration, down bool) {
	f := c.failures
	if c.ask() == nil || c.ctx.Err() != nil {
		return 0, false
	}
	c.spent-- // this attempt is not one of those that the policy counts
	if f.down.IsZero() {
		f.down = now
	}
	f.waits = backoff{policy: &c.policy}
	return f.waits.next(0, false, c.random), true
}

// ask asks the probe.
func (c *call) ask() error {
	ctx := c.ctx
	if d := c.policy.AttemptTimeout; d != NoTimeout {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, d, &TimeoutError{"probe", d})
		defer cancel()
	}
	return c.probe.probe(ctx)
}

// awaitNetwork waits until the probe says that there is a network, first after
// wait. It reports false when the call is over.
func (c *call) awaitNetwork(wait time.Duration) bool {
	f := c.failures
	var last error
	for {
		left := c.probe.limit - time.Since(f.down)
		if left <= 0 {
			f.stop = &OfflineError{Limit: c.probe.limit, Err: last}
			f.reason = f.stop.Error()
			c.fail()
			return false
		}
		if !c.pause(min(wait, left)) {
			return false
		}
		if last = c.ask(); last == nil {
			return c.goesOn()
		}
		wait = f.waits.next(0, false, c.random)
	}
}
