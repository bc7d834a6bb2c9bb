package outbox

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errShutdown ends attempts in flight when the grace is over.
var errShutdown = errors.New("outbox: shutting down")

// Run delivers calls until ctx or the Outbox is closed, and returns nil then. An
// error means that the file cannot be written: ErrClosed, ErrRunning, or one of
// the file system, after which calls are still safe and another Run goes on with
// them.
//
// Attempts in flight at the end get Options.Grace.
func (o *Outbox) Run(ctx context.Context) error { return o.run(ctx, false) }

// Drain is Run that ends, with nil, when no call waits any more: all are
// delivered or dead letters. If ctx ends before, it returns its cause.
func (o *Outbox) Drain(ctx context.Context) error { return o.run(ctx, true) }

func (o *Outbox) run(ctx context.Context, drain bool) error {
	ctx, stop := context.WithCancel(ctx)
	stopped := make(chan struct{})
	defer stop()
	o.mu.Lock()
	switch {
	case o.closed:
		o.mu.Unlock()
		return ErrClosed
	case o.stop != nil:
		o.mu.Unlock()
		return ErrRunning
	}
	o.stop, o.stopped = stop, stopped
	o.mu.Unlock()

	work, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	failed := make(chan error, 1) // the first failure to write
	var workers sync.WaitGroup
	err := o.dispatch(ctx, drain, failed, func(it *item) {
		workers.Go(func() {
			if err := o.attempt(work, it); err != nil {
				select {
				case failed <- err:
				default:
				}
			}
			o.signal()
		})
	})
	if o.opts.Grace == 0 {
		cut(errShutdown)
	}
	grace := time.AfterFunc(o.opts.Grace, func() { cut(errShutdown) })
	workers.Wait()
	grace.Stop()
	if err == nil {
		select {
		case err = <-failed:
		default:
		}
	}
	o.mu.Lock()
	o.stop, o.stopped = nil, nil
	closed := o.closed
	empty := o.queue.size == 0
	o.mu.Unlock()
	close(stopped)
	if err == nil && drain && !empty {
		if closed {
			return ErrClosed
		}
		return context.Cause(ctx)
	}
	return err
}

// dispatch starts the attempts that are due, each by start, until ctx ends.
func (o *Outbox) dispatch(ctx context.Context, drain bool, failed <-chan error, start func(*item)) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case err := <-failed: // before another attempt
			return err
		default:
		}
		o.mu.Lock()
		for o.busy < o.opts.Workers && ctx.Err() == nil {
			it := o.queue.take(time.Now(), o.opts.WorkersPerHost)
			if it == nil {
				break
			}
			o.busy++
			start(it)
		}
		next, wait := o.queue.next(o.opts.WorkersPerHost)
		wait = wait && o.busy < o.opts.Workers // else a worker's end comes first
		empty := o.queue.size == 0
		o.mu.Unlock()
		if drain && empty {
			return nil
		}
		timer.Stop()
		if wait {
			timer.Reset(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-failed:
			return err
		case <-timer.C:
		case <-o.wake:
		}
	}
}

// again puts a call back into the queue.
func (o *Outbox) again(it *item, due time.Time) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy--
	o.queue.again(it, due)
}

// gone takes a call out of the queue, for good or as a dead letter.
func (o *Outbox) gone(it *item, delivered bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.busy--
	o.queue.remove(it)
	if delivered {
		o.delivered++
	} else {
		o.dead++
	}
}
