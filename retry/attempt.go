package retry

import (
	"context"
	"math"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// A try is an attempt in flight. The first of a call is a part of it; the next
// attempt gets a new one: what is left of this may still be in use by goroutines
// of the transport. What few attempts need is behind pointers, because the size
// is most of what a call costs that goes well.
type try struct {
	call   *call
	ctx    attemptContext
	start  time.Time
	before int // the tally at the start

	authorization string // what is sent, where tokens are refreshed

	// For HTTP only.
	base  http.RoundTripper
	watch watch
	trace atomic.Pointer[httptrace.ClientTrace] // see hooks
	first *finished                             // the exchange that http.Client has to go on from
	body  wholeBody
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
	if t.watched() {
		t.watch.try = t
		t.watch.limit = int32(min(c.left(), math.MaxInt32))
		if c.traceKey == nil {
			t.ctx.Context = httptrace.WithClientTrace(c.ctx, t.hooks())
		}
	}
	return t
}

// watched reports whether the attempt is watched on the wire.
func (t *try) watched() bool { return t.base != nil && t.call.accounting }

// hooks returns the hooks of a watched attempt, which are made when a transport
// first asks for them.
func (t *try) hooks() *httptrace.ClientTrace {
	if t.trace.Load() == nil {
		hooks := t.watch.hooks()
		if t.call.traceKey != nil && httptrace.ContextClientTrace(t.call.ctx) != nil {
			// This adds the hooks of the caller to ours.
			httptrace.WithClientTrace(t.call.ctx, hooks)
		}
		t.trace.CompareAndSwap(nil, hooks)
	}
	return t.trace.Load()
}

// end ends the attempt, body and all.
func (t *try) end() { t.ctx.end() }

// release ends the attempt, and the call's own timeout with it.
func (t *try) release() {
	t.end()
	t.call.release()
}

// do sends req through the client hc, or as a single exchange if hc is nil.
func (t *try) do(req *http.Request, hc *http.Client) (*http.Response, error) {
	if hc == nil {
		return t.exchange(req, &t.ctx)
	}
	if plain(req, hc) {
		resp, err := t.exchange(req, &t.ctx)
		if err == nil && resp != nil && resp.Body != nil && resp.StatusCode/100 != 3 {
			return resp, nil
		}
		t.first = &finished{resp: resp, err: err}
	}
	client := *hc
	client.Transport = t
	return client.Do(req)
}

// plain reports whether hc would do nothing with req but to hand it to its
// transport. Such a request is spared the way through it, unless what comes of
// it is a matter for hc: a redirect, an error, a response that is not whole.
func plain(req *http.Request, hc *http.Client) bool {
	return hc.Jar == nil && hc.Timeout == 0 &&
		req.URL != nil && req.URL.User == nil && req.RequestURI == "" && req.Header != nil
}

// A try is the transport of the http.Client.
func (t *try) RoundTrip(req *http.Request) (*http.Response, error) {
	if f := t.first; f != nil {
		t.first = nil
		t.watch.endHop(f.err)
		return f.resp, f.err
	}
	// http.Client puts a context with its own Timeout on top of ours.
	ctx := req.Context()
	if own, _ := ctx.Value(watchKey{}).(*try); own != t {
		ctx = &t.ctx
	}
	resp, err := t.exchange(req, ctx)
	t.watch.endHop(err)
	return resp, err
}

// exchange gives req to the transport that is being retried, with ctx. It keeps
// net/http from sending requests again on its own where it cannot know that this
// is safe, and marks the hops of a redirect.
func (t *try) exchange(req *http.Request, ctx context.Context) (*http.Response, error) {
	exact := leadsToHTTP(t.base)
	t.watch.beginHop(exact)
	r := req.WithContext(ctx)
	preventReplay(r, exact)
	resp, err := t.base.RoundTrip(r)
	if resp != nil {
		resp.Request = r
	}
	return resp, err
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
