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
	timeout         time.Duration // 0: none; from the try's start

	real  atomic.Pointer[realContext]
	mu    sync.Mutex // guards the making of real
	ended atomic.Bool
}

type realContext struct {
	context.Context
	cancel context.CancelFunc
}

func (c *attemptContext) deadline() time.Time { return c.try.start.Add(c.timeout) }

// Deadline returns the attempt's deadline, or the call's if that is earlier.
func (c *attemptContext) Deadline() (time.Time, bool) {
	parent, ok := c.Context.Deadline()
	if c.timeout <= 0 {
		return parent, ok
	}
	if own := c.deadline(); !ok || own.Before(parent) {
		return own, true
	}
	return parent, true
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
	if c.timeout > 0 && !c.ended.Load() {
		r.Context, r.cancel = context.WithDeadlineCause(c.Context, c.deadline(), &TimeoutError{"attempt", c.timeout})
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
	if !c.ended.Load() && c.Context.Err() == nil && (c.timeout <= 0 || time.Now().Before(c.deadline())) {
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
	if key == c.try.call.traceKey && c.try.trace != nil {
		return c.try.trace
	}
	if r := c.real.Load(); r != nil {
		return r.Value(key)
	}
	return c.Context.Value(key)
}

// end ends the context. It may be called more than once.
func (c *attemptContext) end() {
	// A real context that is being made either sees ended, or is seen here.
	c.ended.Store(true)
	if r := c.real.Load(); r != nil {
		r.cancel()
	}
}
