package retry

import (
	"errors"
	"net/http"
)

// A Transport is an http.RoundTripper that repeats single requests. Use it
// where an *http.Client is given to other code; where you make the calls
// yourself, a [Client] knows more: it sees the whole call, redirects included.
//
// It is safe for concurrent use. Make one with [NewTransport].
type Transport struct {
	engine *engine
	base   http.RoundTripper
}

// NewTransport returns a transport that sends through base, which is
// http.DefaultTransport if nil. WithHTTPClient and WithTransport are errors
// here.
func NewTransport(p Policy, base http.RoundTripper, opts ...Option) (*Transport, error) {
	e, o, err := newEngine(p, opts)
	if err != nil {
		return nil, err
	}
	if o.client != nil || o.transport != nil {
		return nil, errors.New("retry: NewTransport takes its transport as an argument, not as an option")
	}
	if base == nil {
		base = http.DefaultTransport
	}
	return &Transport{engine: e, base: base}, nil
}

// Policy returns the transport's policy, with its defaults filled in.
func (t *Transport) Policy() Policy { return t.engine.policy }

// RoundTrip implements http.RoundTripper. It gives back what [Client.Do] does.
func (t *Transport) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.engine.roundTrip(req, nil, t.base, nil)
}

// CloseIdleConnections closes the idle connections of the base transport.
func (t *Transport) CloseIdleConnections() { closeIdle(t.base) }
