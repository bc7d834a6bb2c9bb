package retry

import (
	"context"
	"math"
	"net/http"
	"net/http/httptrace"
	"time"
)

// A try is an attempt in flight. Everything that an attempt needs is in here,
// so that the first attempt of a call costs one allocation, together with the
// call. The next attempt gets a new one: what is left of this may still be in
// use by goroutines of the transport.
type try struct {
	call   *call
	ctx    attemptContext
	start  time.Time
	before int // the tally at the start

	authorization string // what is sent, where tokens are refreshed

	// For HTTP only.
	base   http.RoundTripper
	client http.Client // the Client's, with the try as its transport
	watch  watch
	trace  *httptrace.ClientTrace // nil: the attempt is not watched on the wire
	req    http.Request           // what the transport gets
	body   lastBody
}

// A watchedCall has room for the hooks of its first attempt, which are as large
// as all else that a call needs beside the request.
type watchedCall struct {
	call
	trace httptrace.ClientTrace
}

// try starts an attempt, over base if it is one of HTTP.
func (c *call) try(base http.RoundTripper) *try {
	t := &c.firstTry
	if t.call != nil {
		t = new(try)
	}
	t.call = c
	t.base = base
	t.start = time.Now()
	t.before = c.tally.taken()
	t.ctx.Context = c.ctx
	t.ctx.try = t
	if d := c.policy.AttemptTimeout; d != NoTimeout {
		t.ctx.timeout = d
	}
	if base != nil && c.accounting {
		if t.trace = c.firstTrace; t.trace == nil {
			t.trace = new(httptrace.ClientTrace)
		}
		c.firstTrace = nil
		t.watch.try = t
		t.watch.limit = int32(min(c.left(), math.MaxInt32))
		t.watch.hook(t.trace)
		switch {
		case c.traceKey == nil:
			t.ctx.Context = httptrace.WithClientTrace(c.ctx, t.trace)
		case httptrace.ContextClientTrace(c.ctx) != nil:
			// This adds the hooks of the caller to ours.
			httptrace.WithClientTrace(c.ctx, t.trace)
		}
	}
	return t
}

// end ends the attempt, body and all.
func (t *try) end() { t.ctx.end() }

// release ends the attempt, and the call's own timeout with it.
func (t *try) release() {
	t.end()
	t.call.release()
}

// A try is the RoundTripper right above the transport that is being retried.
// It keeps net/http from sending requests again on its own where it cannot
// know that this is safe, and marks the hops of a redirect.
func (t *try) RoundTrip(req *http.Request) (*http.Response, error) {
	exact := leadsToHTTP(t.base)
	r := &t.req
	if t.watch.beginHop(exact) > 1 {
		r = new(http.Request) // the transport may still be using the other
	}
	// http.Client puts a context with its own Timeout on top of ours.
	ctx := req.Context()
	if own, _ := ctx.Value(watchKey{}).(*try); own != t {
		ctx = &t.ctx
	}
	*r = *req.WithContext(ctx)
	preventReplay(r, exact)
	resp, err := t.base.RoundTrip(r)
	t.watch.endHop(err)
	if resp != nil {
		resp.Request = r
	}
	return resp, err
}

// do sends req through the client hc, or as a single exchange if hc is nil.
func (t *try) do(req *http.Request, hc *http.Client) (*http.Response, error) {
	if hc == nil {
		return t.RoundTrip(req)
	}
	t.client = *hc
	t.client.Transport = t
	return t.client.Do(req)
}

type watchKey struct{}

// captureTraceKey finds out under which key net/http/httptrace looks for its
// hooks in a context, so that the attempt's context can hand them out itself.
// It returns nil if that cannot be done with this version of Go.
func captureTraceKey() any {
	var probe keyProbe
	httptrace.ContextClientTrace(&probe)
	if probe.lookups != 1 || probe.key == nil {
		return nil
	}
	hooks := new(httptrace.ClientTrace)
	probe.answer = hooks
	if httptrace.ContextClientTrace(&probe) != hooks {
		return nil
	}
	return probe.key
}

// A keyProbe is a context that remembers what it is asked for.
type keyProbe struct {
	context.Context
	lookups int
	key     any
	answer  any
}

func (p *keyProbe) Value(key any) any {
	p.lookups++
	p.key = key
	return p.answer
}
