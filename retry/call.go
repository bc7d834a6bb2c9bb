package retry

import (
	"context"
	"log/slog"
	"net/http"
	"time"
)

// An engine is what the shapes of this package share. It is never changed
// after construction.
type engine struct {
	policy Policy // defaults filled in
	random func(n int64) int64
	logger *slog.Logger
	hook   func(context.Context, Attempt)

	classifier func(status int, header http.Header, err error, d Decision) Decision // or nil
	bucket     *Bucket
	tokens     *tokens       // or nil: no hook for expired tokens
	probe      *connectivity // or nil: no waiting for the network
	accounting bool          // attempts are watched on the wire
	traceKey   any           // see captureTraceKey
}

// A call is one run of the loop: it remembers the attempts, and decides after
// each whether there is another. It belongs to one goroutine.
type call struct {
	*engine
	ctx    context.Context    // the caller's, with CallTimeout and the shared tally
	cancel context.CancelFunc // of CallTimeout, or nil
	req    *http.Request      // nil outside HTTP

	safe  bool // the caller says that it may happen twice
	keyed bool // carries a key that the server honours

	tally    *tally
	ownTally tally // unless there is one in the context
	spent    int   // attempts, and what net/http resent
	bodies   bodySource
	failures *failures // nil while there is nothing to tell

	firstTry try
}

// failures is what a call has to remember only when something has gone wrong,
// or is watched.
type failures struct {
	backoff  backoff
	attempts []Attempt
	last     error // the last real failure
	stop     error // the typed reason for giving up
	reason   string
	paid     int64     // what the last retry took from the budget
	renewed  bool      // the token was renewed, which is done once
	token    string    // then: the new Authorization, or "" without one
	down     time.Time // when the network was first found to be down
	waits    backoff   // for it
	report   *Error    // set at the end, unless the call succeeded
}

// record returns the call's failures, to be filled in.
func (c *call) record() *failures {
	if c.failures == nil {
		c.failures = &failures{backoff: backoff{policy: &c.policy}}
	}
	return c.failures
}

// report returns the end of a call that failed, or nil.
func (c *call) report() *Error {
	if c.failures == nil {
		return nil
	}
	return c.failures.report
}

// begin starts a call. It has to be released once the result, the body
// included, is no longer needed.
func (e *engine) begin(ctx context.Context) *call {
	c := &call{engine: e, ctx: ctx}
	if d := e.policy.CallTimeout; d > 0 {
		c.ctx, c.cancel = context.WithTimeoutCause(ctx, d, &TimeoutError{"call", d})
	}
	c.tally, _ = ctx.Value(tallyKey{}).(*tally)
	if c.tally == nil {
		c.tally = &c.ownTally // which the contexts of the attempts hand down
	}
	c.tally.open(e.policy.MaxAttempts - 1)
	e.bucket.begin()
	return c
}

// release lets go of the call's own timeout. It may be called more than once.
func (c *call) release() {
	if c.cancel != nil {
		c.cancel()
	}
}

// left returns how many requests may still be sent.
func (c *call) left() int {
	return max(min(c.policy.MaxAttempts-c.spent, c.tally.left()+1), 1)
}

// settle judges the attempt that ended with a response's status and header, or
// with err, or with both when the response broke off. It returns true when
// there is to be another attempt, after a wait that sleep carries out.
func (c *call) settle(t *try, status int, h http.Header, err error) bool {
	if err == nil && status < 300 && c.hook == nil && c.failures == nil {
		// The happy path: no one asks for its record.
		if t.trace.Load() != nil {
			c.observe(t)
		}
		c.bucket.success(0)
		return false
	}
	f := c.record()
	now := time.Now()
	a := Attempt{Number: len(f.attempts) + 1, Start: t.start, Elapsed: now.Sub(t.start), Status: status, Err: err}
	var fromTransport bool
	a.Wire, fromTransport = c.observe(t)
	// With a status, the failure is one of reading the response.
	fromTransport = fromTransport || status != 0
	c.spent++
	a.Decision = c.decide(a, h, fromTransport)

	failure := err
	if err == nil && a.Decision.Category == CategoryStatus {
		failure = &StatusError{StatusCode: status, Header: h}
	}
	if failure != nil && (a.Decision.Category != CategoryCanceled || f.last == nil) {
		f.last = failure
	}
	switch {
	case failure == nil:
		c.bucket.success(f.paid)
	case c.renews(status):
		if a.Retrying = c.renew(t); a.Retrying {
			a.Decision.Outcome = NotProcessed
			a.Decision.Reason += ": there is a new token"
		}
	default:
		a.Wait, a.Retrying, a.Offline = c.plan(a, h, now)
	}
	f.attempts = append(f.attempts, a)
	if a.Retrying {
		c.log(a)
	}
	if c.hook != nil {
		c.hook(c.ctx, a)
	}
	if failure != nil && !a.Retrying {
		c.fail()
	}
	return a.Retrying
}

// observe returns what was seen of an attempt on the wire, and counts what was
// resent in it. fromTransport is that of watch.facts.
func (c *call) observe(t *try) (wire Wire, fromTransport bool) {
	if t.base == nil {
		return Wire{}, true
	}
	wire, fromTransport = t.watch.facts()
	wire.Nested = c.tally.taken() - t.before
	if n := wire.Resent(); n > 0 {
		c.tally.take(n)
		c.spent += n
	}
	return wire, fromTransport
}

// decide refines Classify by what only the call knows, and gives the classifier
// the last word on what is a failure of the exchange.
func (c *call) decide(a Attempt, h http.Header, fromTransport bool) Decision {
	if a.Err == nil && a.Status == 0 {
		return Decision{Category: CategorySuccess, Outcome: Final, Reason: "no error"}
	}
	d := c.judge(a, h, fromTransport)
	if c.classifier != nil && d.Category != CategoryCanceled && a.Err != errResent {
		d = c.classifier(a.Status, h, a.Err, d)
	}
	return d
}

func (c *call) judge(a Attempt, h http.Header, fromTransport bool) Decision {
	if a.Err == nil {
		d := classifyStatus(a.Status, h)
		switch {
		case a.Status == http.StatusServiceUnavailable && c.policy.Unprocessed503:
			d.Outcome = NotProcessed
		case a.Status == http.StatusConflict && c.keyed && (len(c.failures.attempts) > 0 || a.Wire.Resent() > 0):
			// The key belongs to an attempt that is still being worked on:
			// our own, because there was one.
			d = Decision{Category: CategoryStatus, Outcome: NotProcessed, Reason: "409: an earlier attempt is still in flight"}
		}
		return c.afterRedirect(a, d)
	}
	if c.ctx.Err() != nil {
		return Decision{Category: CategoryCanceled, Outcome: Final, Reason: "the call's context has ended"}
	}
	if a.Err == errResent {
		return Decision{Category: CategoryTransport, Outcome: Final, Reason: errResent.Error()}
	}
	if !fromTransport {
		return Decision{Category: CategoryUnknown, Outcome: Final, Reason: "http.Client refuses the request or a redirect"}
	}
	return c.afterRedirect(a, Classify(nil, a.Err, a.Wire))
}

// afterRedirect takes into account that an earlier hop of the attempt had an
// answer, so that its server did act on the request.
func (c *call) afterRedirect(a Attempt, d Decision) Decision {
	if a.Wire.Hops > 1 && d.Outcome == NotProcessed {
		d.Outcome = Unknown
		d.Reason += ", after a redirect"
	}
	return d
}

// plan decides whether there is another attempt after a, and when. down says
// that it has to wait for the network.
func (c *call) plan(a Attempt, h http.Header, now time.Time) (wait time.Duration, ok, down bool) {
	f := c.failures
	cannotSend := c.bodies.replayable()
	switch {
	case c.ctx.Err() != nil:
		f.reason = "the call's context has ended"
		return 0, false, false
	case !a.Decision.Repeatable(c.safe || c.keyed || c.req != nil && idempotentMethod(c.req.Method)):
		f.reason = a.Decision.Reason
		if a.Decision.Outcome == Unknown {
			f.reason += ", and the call may not be repeated: it could happen twice"
		}
		return 0, false, false
	}
	c.bucket.failure()
	if c.probe != nil && a.Decision.Offline {
		if wait, down := c.offline(now); down {
			return wait, true, true
		}
	}
	switch {
	case c.spent >= c.policy.MaxAttempts || c.tally.left() <= 0:
		f.reason = "no attempt left"
		return 0, false, false
	case cannotSend != nil:
		f.stop = &BodyError{Err: f.last, Cause: cannotSend}
		f.reason = "the request body cannot be sent again"
		return 0, false, false
	}

	left := time.Duration(1<<63 - 1)
	if deadline, ok := c.ctx.Deadline(); ok {
		left = deadline.Sub(now)
	}
	asked, _ := ParseRetryAfter(h, now)
	if limit := min(left, c.policy.MaxRetryAfter); asked > limit {
		f.stop = &RetryAfterError{Wait: asked, Limit: limit}
		f.reason = f.stop.Error()
		return 0, false, false
	}
	if a.Wire.Known && a.Wire.Sent == 0 && a.Wire.Reused {
		// A connection that had died while idle says nothing about the
		// server, and is gone now: there is nothing to wait for.
		wait = 0
	} else {
		wait = f.backoff.next(asked, a.Decision.Throttled, c.random)
		wait = c.policy.hinted(wait, h)
	}
	if wait >= left {
		f.stop = &DeadlineError{Wait: wait, Left: left}
		f.reason = f.stop.Error()
		return 0, false, false
	}
	paid, refusal := c.bucket.take(a.Decision, c.random)
	if refusal != nil {
		f.stop = refusal
		f.reason = refusal.Error()
		return 0, false, false
	}
	if !c.tally.take(1) {
		f.reason = "no attempt left"
		return 0, false, false
	}
	f.paid = paid
	return wait, true, false
}

// sleep waits as settle has decided. It reports false when the call's context
// ended instead.
func (c *call) sleep() bool {
	f := c.failures
	last := f.attempts[len(f.attempts)-1]
	if last.Offline {
		return c.awaitNetwork(last.Wait)
	}
	return c.pause(last.Wait)
}

// pause waits for d. It reports false when the call's context ended instead.
func (c *call) pause(d time.Duration) bool {
	if d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-c.ctx.Done():
		}
	}
	return c.goesOn()
}

// goesOn reports whether the call's context still stands after a wait: it and
// the wait may have ended together, and there is no attempt after the end.
func (c *call) goesOn() bool {
	if c.ctx.Err() == nil {
		return true
	}
	c.failures.reason = "the call's context has ended while waiting"
	c.fail()
	return false
}

// refuse ends a call for a reason that is no attempt's.
func (c *call) refuse(reason string, last, stop error) *Error {
	f := c.record()
	f.reason = reason
	if last != nil {
		f.last = last
	}
	f.stop = stop
	defer c.release()
	return c.fail()
}

// fail closes the books on a call without success.
func (c *call) fail() *Error {
	f := c.record()
	f.report = &Error{Attempts: f.attempts, Reason: f.reason, Err: f.last, Stop: f.stop}
	if c.ctx.Err() != nil {
		f.report.Cause = context.Cause(c.ctx)
		if f.report.Err == nil {
			f.report.Err = c.ctx.Err()
		}
	}
	return f.report
}

func (c *call) log(a Attempt) {
	if !c.logger.Enabled(c.ctx, slog.LevelInfo) {
		return
	}
	attrs := make([]slog.Attr, 0, 8)
	if c.req != nil {
		attrs = append(attrs, slog.String("method", c.req.Method), slog.String("url", withoutQuery(c.req.URL)))
	}
	attrs = append(attrs,
		slog.Int("attempt", a.Number),
		slog.String("reason", a.Decision.Reason),
		slog.String("category", string(a.Decision.Category)),
		slog.String("outcome", string(a.Decision.Outcome)),
		slog.Duration("delay", a.Wait))
	if a.Wire.Known {
		attrs = append(attrs, slog.Int("wire", a.Wire.Sent))
	}
	c.logger.LogAttrs(c.ctx, slog.LevelInfo, "retrying", attrs...)
}
