package retry

import (
	"context"
	"net/http"
	"net/url"
)

// A Client sends requests and repeats those that failed, where that is safe.
// It is safe for concurrent use. Make one with [NewClient].
type Client struct {
	engine *engine
	http   *http.Client
}

// NewClient returns a client with the policy p. The error is a [PolicyError],
// or one of a wrong option.
func NewClient(p Policy, opts ...Option) (*Client, error) {
	e, o, err := newEngine(p, opts)
	if err != nil {
		return nil, err
	}
	hc := new(http.Client)
	if o.client != nil {
		*hc = *o.client
	}
	if o.transport != nil {
		hc.Transport = o.transport
	}
	if hc.Transport == nil {
		hc.Transport = http.DefaultTransport
	}
	hc.Transport = &guard{hc.Transport}
	return &Client{engine: e, http: hc}, nil
}

// Policy returns the client's policy, with its defaults filled in.
func (c *Client) Policy() Policy { return c.engine.policy }

// CloseIdleConnections closes the idle connections of the transport.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// Do sends req, and sends it again after failures that may be repeated.
//
// When it gives up on a status, it returns the last response as the server
// sent it, with a nil error, as http.Client does; [Explain] tells why. When it
// gives up on anything else the error is an [*Error]. The caller closes the
// response's body. Policy.AttemptTimeout goes on until then: a longer download
// wants NoTimeout. Response.Request is the attempt's request, whose context ends
// with the body, too.
//
// Redirects are followed by the http.Client within one attempt, and are not
// counted as attempts. After a redirect the whole chain is repeated, from
// req on; for that reason no failure of a later hop counts as "nothing was
// done".
//
// The request's body is sent again through GetBody; see [Policy.MaxBufferedBody]
// for bodies that have none. Do closes the body in any case.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	return c.engine.roundTrip(req, c.send, nil, c.http.Jar != nil)
}

func (c *Client) send(req *http.Request) (*http.Response, error) { return c.http.Do(req) }

// Explain returns why resp was given back although it is a failure, with the
// attempts that led to it, or nil if resp is a success or does not come from
// this package. errors.As finds a [*RetryAfterError], a [*DeadlineError] or a
// [*BodyError] in it.
func Explain(resp *http.Response) *Error {
	if resp == nil || resp.Request == nil {
		return nil
	}
	w, _ := resp.Request.Context().Value(watchKey{}).(*watch)
	if w == nil {
		return nil
	}
	return w.call.report
}

// roundTrip is the loop of Client and Transport. It sends req by send. consume,
// if not nil, is given each successful response to read and close, as a part of
// the attempt, which cancel ends. mutates says that send writes into the header of its
// request.
func (e *engine) roundTrip(
	req *http.Request,
	send func(*http.Request) (*http.Response, error),
	consume func(resp *http.Response, cancel func()) error,
	mutates bool,
) (*http.Response, error) {
	c := e.begin(req.Context())
	header := req.Header
	key, honoured := keyFor(req, e.policy)
	if key != "" {
		header = header.Clone()
		if header == nil {
			header = make(http.Header)
		}
		header.Set(e.policy.KeyHeader, key)
	}
	c.safe = optionsFrom(req.Context()).idempotent || idempotentMethod(req.Method)
	c.keyed = honoured
	c.req = req

	if c.ctx.Err() != nil {
		c.reason = "the context had ended"
		closeBody(req)
		defer c.cancel()
		return nil, c.fail()
	}
	if err := checkKey(key, e.policy); err != nil {
		c.reason = "the idempotency key cannot be sent"
		c.last = err
		closeBody(req)
		defer c.cancel()
		return nil, c.fail()
	}
	bodies, err := newBodySource(req, e.policy.MaxBufferedBody)
	if err != nil {
		c.reason = "the request body cannot be read"
		c.last = err
		defer c.cancel()
		return nil, c.fail()
	}
	c.cannotSend = bodies.replayable()

	for {
		body, err := bodies.next()
		if err != nil {
			c.reason = "GetBody failed"
			c.stop = &BodyError{Err: c.last, Cause: err}
			defer c.cancel()
			return nil, c.fail()
		}
		t := c.try(true)
		r := req.WithContext(t.ctx)
		r.Body = body
		r.Header = header
		if mutates {
			r.Header = header.Clone()
		}
		resp, err := send(r)
		if err != nil {
			resp = nil // of a refused redirect: closed already
			if context.Cause(t.ctx) == errResent {
				err = errResent // not a cancellation by the caller
			}
		}

		var status int
		var h http.Header
		if resp != nil {
			status, h = resp.StatusCode, resp.Header
		}
		consumed := false
		if err == nil && consume != nil && status/100 == 2 {
			consumed = true
			err = consume(resp, t.cancel)
		}
		again := c.settle(t, status, h, err)
		end := func() { t.cancel(); c.cancel() }
		switch {
		case again:
			if err == nil {
				discard(resp.Body, t.cancel)
			}
			t.cancel()
			if !c.sleep() {
				c.cancel()
				return nil, c.report
			}
		case err != nil:
			end()
			return nil, c.report
		case consumed:
			end()
			return resp, nil
		case c.ctx.Err() != nil && c.report != nil:
			// A failed response that came too late to be read.
			resp.Body.Close()
			end()
			return nil, c.report
		default:
			handOver(resp, end)
			return resp, nil
		}
	}
}

func closeBody(req *http.Request) {
	if req.Body != nil {
		req.Body.Close()
	}
}

// withoutQuery prints u for the log, without the parts that may be secret.
func withoutQuery(u *url.URL) string {
	if u == nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}
