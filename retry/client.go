package retry

import (
	"io"
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
	return c.engine.roundTrip(req, c.http, c.http.Transport, nil)
}

// Explain returns why resp was given back although it is a failure, with the
// attempts that led to it, or nil if resp is a success or does not come from
// this package. errors.As finds a [*RetryAfterError], a [*DeadlineError] or a
// [*BodyError] in it.
func Explain(resp *http.Response) *Error {
	if resp == nil || resp.Request == nil {
		return nil
	}
	t, _ := resp.Request.Context().Value(watchKey{}).(*try)
	if t == nil {
		return nil
	}
	return t.call.report()
}

// roundTrip is the loop of Client and Transport. It sends req over base,
// through the client hc if that is not nil. consume, if not nil, is given each
// successful response to read and close, as a part of the attempt, which cancel
// ends.
func (e *engine) roundTrip(
	req *http.Request,
	hc *http.Client,
	base http.RoundTripper,
	consume func(resp *http.Response, cancel func()) error,
) (*http.Response, error) {
	c := e.begin(req.Context())
	header := req.Header
	opt := optionsFrom(req.Context())
	key, honoured := keyFor(req, opt, &e.policy)
	if key != "" {
		header = header.Clone()
		if header == nil {
			header = make(http.Header)
		}
		header.Set(e.policy.KeyHeader, key)
	}
	c.safe = opt.idempotent
	c.keyed = honoured
	c.req = req

	if c.ctx.Err() != nil {
		closeBody(req)
		return nil, c.refuse("the context had ended", nil, nil)
	}
	if err := checkKey(key, &e.policy); err != nil {
		closeBody(req)
		return nil, c.refuse("the idempotency key cannot be sent", err, nil)
	}
	if err := c.bodies.take(req, e.policy.MaxBufferedBody); err != nil {
		return nil, c.refuse("the request body cannot be read", err, nil)
	}

	for {
		body, own, err := c.bodies.next()
		if err != nil {
			return nil, c.refuse("GetBody failed", nil, &BodyError{Err: c.record().last, Cause: err})
		}
		t, resp, err := c.send(outgoing{header, body, own && key == ""}, hc, base)
		if err != nil {
			resp = nil // of a refused redirect: closed already
			if t.watch.exhausted() {
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
			err = consume(resp, t.end)
		}
		if err == nil && c.renews(status) {
			keepBody(resp) // the refresh may need the connection
		}
		again := c.settle(t, status, h, err)
		switch {
		case again:
			if err == nil {
				discard(resp.Body, t.end)
			}
			t.end()
			if !c.sleep() {
				c.release()
				return nil, c.report()
			}
		case err != nil:
			t.release()
			return nil, c.report()
		case consumed:
			t.release()
			return resp, nil
		case c.report() != nil && c.ctx.Err() != nil:
			// A failed response that came too late to be read.
			resp.Body.Close()
			t.release()
			return nil, c.report()
		default:
			t.handOver(resp)
			return resp, nil
		}
	}
}

// An outgoing is what an attempt sends.
type outgoing struct {
	header    http.Header
	body      io.ReadCloser
	unchanged bool // both are those of the caller's request
}

// send makes an attempt.
func (c *call) send(out outgoing, hc *http.Client, base http.RoundTripper) (*try, *http.Response, error) {
	if c.hedges() {
		return c.sendHedged(out, hc, base)
	}
	t := c.try(base)
	resp, err := t.do(c.request(t, out, hc), hc)
	return t, resp, err
}

// request returns the request of the attempt t: that of the caller, if it can be
// sent as it is.
func (c *call) request(t *try, out outgoing, hc *http.Client) *http.Request {
	set := ""
	if c.tokens != nil {
		set = c.req.Header.Get("Authorization")
		if c.failures != nil && c.failures.token != "" {
			t.authorization = c.failures.token
		} else {
			t.authorization = c.tokens.authorization(set)
		}
	}
	if out.unchanged && t.authorization == set && !shows(hc) {
		return c.req
	}
	r := c.req.WithContext(&t.ctx)
	r.Body = out.body
	r.Header = out.header
	if t.authorization != set || hc != nil && hc.Jar != nil {
		// http.Client writes cookies into it.
		if r.Header = out.header.Clone(); r.Header == nil {
			r.Header = make(http.Header)
		}
	}
	if t.authorization != set {
		r.Header.Set("Authorization", t.authorization)
	}
	return r
}

// shows reports whether hc does more with a request than to send it, so that
// it has to get one of the attempt's own, with the attempt's context.
func shows(hc *http.Client) bool {
	return hc != nil && (hc.Jar != nil || hc.Timeout > 0 || hc.CheckRedirect != nil)
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
