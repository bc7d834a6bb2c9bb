package retry

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
)

// Wire is what an attempt was seen to do on the wire, by net/http/httptrace.
// The zero value means that nothing is known, as with a RoundTripper that
// reports no events.
type Wire struct {
	Known     bool // the transport reports what it does
	Hops      int  // requests asked for: 1, and one more for each redirect that was followed
	Sent      int  // requests of which at least a part was handed to a connection
	Nested    int  // attempts, after the first, that a retrier below has made
	FirstByte bool // a byte of a response arrived for the last of them
	Reused    bool // the last connection had served other requests before
}

// Written reports whether a request was sent, even in part.
func (w Wire) Written() bool { return w.Known && w.Sent > 0 }

// Resent returns the number of requests that net/http sent again by itself,
// unasked, within the attempt.
func (w Wire) Resent() int {
	if !w.Known {
		return 0
	}
	return max(w.Sent-w.Hops-w.Nested, 0)
}

// errResent ends an attempt in which net/http goes on sending by itself, when
// that would exceed the attempts that the policy allows.
var errResent = errors.New("net/http resent the request until no attempt was left")

// A watch collects the Wire of one attempt. The hooks run on goroutines of the
// transport, some of them after RoundTrip has returned.
type watch struct {
	call   *call
	limit  int // requests that may still be sent, this attempt's included
	cancel context.CancelCauseFunc

	mu       sync.Mutex
	wire     Wire
	onConn   bool // a request was written to the current connection
	inHop    int  // requests sent in the current hop
	exact    bool // the current hop's transport is an *http.Transport
	answered bool // the last hop ended with a response
}

// trace returns ctx with the hooks of w.
func (w *watch) trace(ctx context.Context) context.Context {
	return httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.wire.Known = true
			// net/http asks for another connection within one RoundTrip only
			// to send the request again. Other transports may have reasons of
			// their own, such as a digest handshake.
			if w.exact && w.inHop >= w.limit {
				w.cancel(errResent)
			}
		},
		GotConn: func(info httptrace.GotConnInfo) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.wire.Known = true
			w.wire.Reused = info.Reused
			w.wire.FirstByte = false
			w.onConn = false
		},
		WroteHeaders: w.wrote,
		// Comes without WroteHeaders when the header could not be written
		// whole.
		WroteRequest: func(httptrace.WroteRequestInfo) { w.wrote() },
		GotFirstResponseByte: func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.wire.FirstByte = true
		},
	})
}

func (w *watch) wrote() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.onConn {
		w.onConn = true
		w.inHop++
		w.wire.Sent++
	}
}

func (w *watch) beginHop(exact bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wire.Hops++
	w.inHop = 0
	w.exact = exact
	w.answered = false
}

func (w *watch) endHop(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answered = err == nil
}

// facts returns what was seen so far. fromTransport says that an error that
// ended the attempt came from the transport, and not from the http.Client
// above it, which has errors of its own: of redirects, for example.
func (w *watch) facts() (wire Wire, fromTransport bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wire, w.wire.Hops > 0 && !w.answered
}

type watchKey struct{}

// A guard is the RoundTripper right above the transport that is being
// retried. It keeps net/http from sending requests again on its own where it
// cannot know that this is safe, and marks the hops of a redirect.
type guard struct{ base http.RoundTripper }

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	w, _ := req.Context().Value(watchKey{}).(*watch)
	if w == nil {
		return g.base.RoundTrip(req)
	}
	_, exact := g.base.(*http.Transport)
	w.beginHop(exact)
	resp, err := g.base.RoundTrip(withoutReplay(req, exact))
	w.endHop(err)
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

func (g *guard) CloseIdleConnections() { closeIdle(g.base) }

func closeIdle(rt http.RoundTripper) {
	if c, ok := rt.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// withoutReplay returns req in a form that net/http does not send twice.
//
// When a reused connection breaks before the response, net/http.Transport
// silently sends the request again if it is a GET, HEAD, OPTIONS or TRACE, or
// carries an Idempotency-Key or X-Idempotency-Key, and if its body is empty or
// has GetBody. The first condition is a guess about the server, and the resent
// request is one that no one counted.
//
// Over HTTP/2 it sends any request again, on the same terms for the body, after
// a refused stream and a GOAWAY, which is harmless but for GOAWAY has no end,
// and after a stream reset with PROTOCOL_ERROR, which says nothing of what the
// server has done (go.dev/issue/47635). So no request
// keeps its GetBody; what net/http then has to say is found by notResent. A
// request with neither body nor such a header is left as it is.
func withoutReplay(req *http.Request, exact bool) *http.Request {
	hasBody := req.Body != nil && req.Body != http.NoBody
	if !hasBody && !replayedByMethod(req.Method) && !hasReplayHeader(req.Header) {
		return req
	}
	switch {
	case hasBody && req.GetBody == nil:
		return req
	case hasBody:
		req = shallow(req)
		req.GetBody = nil
	case probedByNetHTTP(req.Method):
		// A body that is present but empty counts as one that cannot be
		// replayed. For these methods net/http looks whether there is
		// anything in it before it writes the header, and then sends what
		// it sends for no body at all.
		req = shallow(req)
		req.Body = emptyBody{}
		req.ContentLength = 0
		req.GetBody = nil
	case exact && hasReplayHeader(req.Header):
		// A POST without a body must say Content-Length: 0, so it cannot be
		// treated likewise. Field names have no case (RFC 9110 §5.1), but
		// net/http looks for one spelling. Only the transport itself gets to
		// see the other one.
		req = shallow(req)
		req.Header = req.Header.Clone()
		for _, name := range replayHeaders {
			if v, ok := req.Header[name]; ok {
				delete(req.Header, name)
				req.Header[strings.ToLower(name)] = v
			}
		}
	}
	return req
}

var replayHeaders = [...]string{"Idempotency-Key", "X-Idempotency-Key"}

func hasReplayHeader(h http.Header) bool {
	for _, name := range replayHeaders {
		if _, ok := h[name]; ok {
			return true
		}
	}
	return false
}

func replayedByMethod(method string) bool {
	switch method {
	case "", "GET", "HEAD", "OPTIONS", "TRACE":
		return true
	}
	return false
}

// probedByNetHTTP lists the methods for which net/http reads ahead in a body
// of unknown length.
func probedByNetHTTP(method string) bool {
	switch method {
	case "", "GET", "HEAD", "DELETE", "OPTIONS", "PROPFIND", "SEARCH":
		return true
	}
	return false
}

func shallow(req *http.Request) *http.Request { return req.WithContext(req.Context()) }

// emptyBody differs from http.NoBody in its type alone.
type emptyBody struct{}

func (emptyBody) Read([]byte) (int, error) { return 0, io.EOF }
func (emptyBody) Close() error             { return nil }
