package retry

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// An attemptContext is the context of one attempt. It ends with end, with the
// call's context, or at its deadline.
//
// The contexts of package context cost a dozen allocations and a timer for
// that, whether or not anyone ever waits for them. So the real one is made on
// the first call of Done; until then the answers are worked out when asked for.
// From then on Value leads to the real one, so that package context finds it
// and hangs its children on it directly.
type attemptContext struct {
	context.Context // the call's
	try             *try

	real  atomic.Pointer[realContext]
	mu    sync.Mutex // guards the making of real
	ended atomic.Bool
}

type realContext struct {
	context.Context
	cancel context.CancelFunc
	cause  TimeoutError // of it, if it ends by timeout
}

// timeout returns how long the attempt may take, if there is a limit.
func (c *attemptContext) timeout() (time.Duration, bool) {
	d := c.try.call.policy.AttemptTimeout
	return d, d != NoTimeout
}

// deadline returns the attempt's own deadline, if it has one.
func (c *attemptContext) deadline() (time.Time, bool) {
	d, ok := c.timeout()
	return c.try.start.Add(d), ok
}

// Deadline returns the attempt's deadline, or the call's if that is earlier.
func (c *attemptContext) Deadline() (time.Time, bool) {
	parent, ok := c.Context.Deadline()
	if own, limited := c.deadline(); limited && (!ok || own.Before(parent)) {
		return own, true
	}
	return parent, ok
}

func (c *attemptContext) Done() <-chan struct{} { return c.make().Done() }

// make returns the real context, making it if need be.
func (c *attemptContext) make() *realContext {
	if r := c.real.Load(); r != nil {
		return r
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if r := c.real.Load(); r != nil {
		return r
	}
	r := new(realContext)
	if d, limited := c.timeout(); limited && !c.ended.Load() {
		r.cause = TimeoutError{"attempt", d}
		r.Context, r.cancel = context.WithDeadlineCause(c.Context, c.try.start.Add(d), &r.cause)
	} else {
		r.Context, r.cancel = context.WithCancel(c.Context)
	}
	c.real.Store(r)
	if c.ended.Load() { // after Store, as end looks the other way round
		r.cancel()
	}
	return r
}

func (c *attemptContext) Err() error {
	if r := c.real.Load(); r != nil {
		return r.Err()
	}
	deadline, limited := c.deadline()
	if !c.ended.Load() && c.Context.Err() == nil && !(limited && !time.Now().Before(deadline)) {
		return nil
	}
	return c.make().Err()
}

// Value gives what this package has to find again, and the hooks for
// net/http/httptrace, without a context for each.
func (c *attemptContext) Value(key any) any {
	switch key.(type) {
	case watchKey:
		return c.try
	case tallyKey:
		return c.try.call.tally
	}
	if t := c.try; key == t.call.traceKey && key != nil && t.watched() {
		return t.hooks()
	}
	if r := c.real.Load(); r != nil {
		return r.Value(key)
	}
	return c.Context.Value(key)
}

// end ends the context. It may be called more than once.
func (c *attemptContext) end() {
	if c.ended.Load() {
		return
	}
	// A real context that is being made either sees ended, or is seen here.
	c.ended.Store(true)
	if r := c.real.Load(); r != nil {
		r.cancel()
	}
}
