package retry

import (
	"context"
	"errors"
	"net/http"
)

// Do runs op until it succeeds, fails in a way that must not be repeated, or p
// allows no more. It is for operations that are not one HTTP request; for
// those, [Client] and [Fetch] know more.
//
// The error of op is judged by [Classify]. An error that is not known there
// ends the call: op says otherwise by [WithOutcome], or by returning a
// [*StatusError]. An operation counts as one that must not happen twice unless
// ctx comes from [Idempotent], or a key is set by [WithKey] or
// [WithIdempotencyKey]; the latter is made once, for all attempts of op.
//
// The context that op gets ends when op returns, and after
// Policy.AttemptTimeout. The error of Do is an [*Error], or a [PolicyError]
// before the first attempt.
func Do[T any](ctx context.Context, p Policy, op func(ctx context.Context) (T, error), opts ...Option) (T, error) {
	var zero T
	e, o, err := newEngine(p, opts)
	if err != nil {
		return zero, err
	}
	if o.client != nil || o.transport != nil {
		return zero, errors.New("retry: Do takes no HTTP client or transport")
	}
	opt := optionsFrom(ctx)
	if opt.makeKey {
		ctx = WithKey(ctx, newKey())
	}
	c := e.begin(ctx)
	defer c.release()
	c.bodies.none = true
	c.safe = opt.idempotent
	c.keyed = opt.honoured
	if c.ctx.Err() != nil {
		return zero, c.refuse("the context had ended", nil, nil)
	}
	for {
		t := c.try(nil)
		value, err := op(&t.ctx)
		if err == nil {
			c.settle(t, 0, nil, nil)
			t.end()
			return value, nil
		}
		again := c.settle(t, 0, headerOf(err), err)
		t.end()
		if !again || !c.sleep() {
			return zero, c.report()
		}
	}
}

// WithOutcome returns err with a statement about its outcome, for an operation
// given to [Do]: NotProcessed and Unknown let it be repeated, the latter if
// the operation may happen twice; Final does not.
func WithOutcome(err error, outcome Outcome) error {
	if err == nil {
		return nil
	}
	return &outcomeError{err, outcome}
}

type outcomeError struct {
	err     error
	outcome Outcome
}

func (e *outcomeError) Error() string { return e.err.Error() }
func (e *outcomeError) Unwrap() error { return e.err }

// headerOf returns the header of the response that err reports, if any, for
// its Retry-After.
func headerOf(err error) http.Header {
	if status, ok := errors.AsType[*StatusError](err); ok {
		return status.Header
	}
	return nil
}
