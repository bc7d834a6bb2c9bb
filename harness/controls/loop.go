package controls

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/retrychaos/retrychaos/harness"
)

// client is the loop. It keeps nothing between calls but its budget, and is safe for concurrent use.
type client struct {
	policy
	transport http.RoundTripper
	seed      uint64

	mu     sync.Mutex
	tokens float64 // of the budget
}

// spend takes a retry from the budget, where there is one.
func (c *client) spend() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.tokens < 1 {
		return false
	}
	c.tokens--
	return true
}

// earn gives back to the budget what a call that succeeds is worth.
func (c *client) earn() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tokens = min(c.budget, c.tokens+0.1)
}

// Call tries the call until it succeeds, may not be repeated, or there is no attempt or time left.
func (c *client) Call(ctx context.Context, call harness.Call) harness.Outcome {
	random := c.random(c.seed, call)
	var last *failure     // that was not the end of the caller's own context
	var lost *failure     // the last attempt that may be at work still: never answered, or answered by a gateway
	var own time.Duration // the loop's own wait, before what the server asks for
	sent := false
	for n := 1; ; n++ {
		code, f := c.attempt(ctx, call, n)
		if f == nil {
			c.earn()
			return c.report(call, nil, harness.Outcome{OK: true, Status: code, Attempts: n})
		}
		sent = sent || f.sent
		if f.kind == transport && ctx.Err() != nil {
			if last == nil {
				last = f
			}
			return c.fail(call, n, sent, last, ctx.Err())
		}
		if f.status == http.StatusConflict && lost != nil && call.Key != "" && call.KeyHonoured {
			f.rival = lost
		}
		if f.kind == transport && f.sent || f.status == http.StatusBadGateway || f.status == http.StatusGatewayTimeout {
			lost = f
		}
		last = f
		// A stream has been read: there is no body to repeat the call with.
		if n >= c.attempts || call.Stream || !c.repeat(call, f) {
			return c.fail(call, n, sent, last, nil)
		}
		own = c.backoff(random, n, own)
		wait, ok := c.wait(own, f)
		if !ok || !c.fits(ctx, wait) || !c.spend() {
			return c.fail(call, n, sent, last, nil)
		}
		if err := c.sleep(ctx, wait); err != nil {
			return c.fail(call, n, sent, last, err)
		}
	}
}

// wait is how long to wait after f; false where the server asks for more patience than there is.
func (c *client) wait(own time.Duration, f *failure) (time.Duration, bool) {
	asked, ok := c.asked(f.retryAfter, time.Now())
	if !ok {
		return own, true
	}
	if asked > c.patience {
		return 0, false
	}
	return c.combine(asked, own), true
}

func (c *client) fail(call harness.Call, attempts int, sent bool, last *failure, ended error) harness.Outcome {
	return c.report(call, last, harness.Outcome{
		Status:   last.status,
		Err:      &callError{attempts: attempts, last: last, ended: ended},
		Attempts: attempts,
		Decoding: last.kind == decoding,
		NotSent:  !sent,
	})
}

// attempt makes one request and reads its response whole.
func (c *client) attempt(ctx context.Context, call harness.Call, n int) (int, *failure) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	var connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	req, err := call.Request(ctx)
	if err != nil {
		return 0, &failure{kind: transport, err: err, hopeless: true}
	}
	// net/http resends by itself what it can rewind and takes for idempotent. Each repeat is this loop's
	// to decide and to count, so there is nothing to rewind.
	req.GetBody = nil
	if req.Body == nil {
		req.Body = nothing{}
	}
	c.prepare(req, n)
	resp, err := c.transport.RoundTrip(req)
	if err != nil {
		return 0, &failure{kind: transport, err: err, sent: connected.Load(), hopeless: hopeless(err)}
	}
	return c.receive(call, resp)
}

func (c *client) receive(call harness.Call, resp *http.Response) (int, *failure) {
	code := resp.StatusCode
	if code >= 300 {
		c.release(resp)
		return code, &failure{kind: status, status: code, sent: true, retryAfter: resp.Header.Values("Retry-After")}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	_ = resp.Body.Close()
	if err != nil {
		return code, &failure{kind: transport, err: fmt.Errorf("reading the response: %w", err), sent: true}
	}
	if call.Method == http.MethodHead {
		return code, nil
	}
	if err := c.decode(call, body); err != nil {
		return code, &failure{kind: decoding, err: err, sent: true}
	}
	return code, nil
}

// hopeless reports whether waiting cannot change the failure: the server is not who it should be, or does not
// exist.
func hopeless(err error) bool {
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var dns *net.DNSError
	return errors.As(err, &cert) || errors.As(err, &record) || errors.As(err, &dns) && dns.IsNotFound
}

// nothing is an empty body that net/http does not know to be empty, and so cannot rewind.
type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, io.EOF }
func (nothing) Close() error             { return nil }
