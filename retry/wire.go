package retry

import (
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
	Connected bool // there was a connection for the last of them
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
	try *try

	mu     sync.Mutex
	limit  int32 // requests that may still be sent, this attempt's included
	hops   int32 // these are Wire's
	sent   int32
	inHop  int32 // requests sent in the current hop
	known  bool  // these are Wire's
	first  bool
	joined bool
	reused bool

	onConn   bool // a request was written to the current connection
	exact    bool // the current hop's transport is an *http.Transport
	answered bool // the last hop ended with a response
	resent   bool // net/http went on until no attempt was left
}

// hooks returns the hooks of w. WroteRequest is not among them: it would add
// the requests whose header broke off on its way, and a server cannot act on a
// header that it does not have.
func (w *watch) hooks() *httptrace.ClientTrace {
	return &httptrace.ClientTrace{
		GetConn:              w.getConn,
		GotConn:              w.gotConn,
		WroteHeaders:         w.wroteHeaders,
		GotFirstResponseByte: w.gotFirstResponseByte,
	}
}

func (w *watch) getConn(string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known = true
	w.joined = false
	// net/http asks for another connection within one RoundTrip only to send
	// the request again. Other transports may have reasons of their own, such
	// as a digest handshake.
	if w.exact && w.inHop >= w.limit {
		w.resent = true
		w.try.end()
	}
}

func (w *watch) gotConn(info httptrace.GotConnInfo) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.known = true
	w.joined = true
	w.reused = info.Reused
	w.first = false
	w.onConn = false
}

func (w *watch) wroteHeaders() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.onConn {
		w.onConn = true
		w.inHop++
		w.sent++
	}
}

func (w *watch) gotFirstResponseByte() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.first = true
}

func (w *watch) beginHop(exact bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hops++
	w.inHop = 0
	w.exact = exact
	w.answered = false
}

// endHop notes what http.Client is given.
func (w *watch) endHop(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answered = err == nil
}

// exhausted reports whether the attempt was ended because net/http went on
// sending by itself.
func (w *watch) exhausted() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.resent
}

// facts returns what was seen so far. fromTransport says that an error that
// ended the attempt came from the transport, and not from the http.Client
// above it, which has errors of its own: of redirects, for example.
func (w *watch) facts() (wire Wire, fromTransport bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	wire = Wire{Known: w.known, Hops: int(w.hops), Sent: int(w.sent), FirstByte: w.first, Connected: w.joined, Reused: w.reused}
	return wire, w.hops > 0 && !w.answered
}

func closeIdle(rt http.RoundTripper) {
	if c, ok := rt.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// preventReplay gives req a form that net/http does not send twice.
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
// server has done (go.dev/issue/47635). So no request keeps its GetBody; what
// net/http then has to say is found by notResent. A request with neither body
// nor such a header is left as it is.
func preventReplay(req *http.Request, exact bool) {
	hasBody := req.Body != nil && req.Body != http.NoBody
	if !hasBody && !replayedByMethod(req.Method) && !hasReplayHeader(req.Header) {
		return
	}
	switch {
	case hasBody:
		req.GetBody = nil
	case probedByNetHTTP(req.Method):
		// A body that is present but empty counts as one that cannot be
		// replayed. For these methods net/http looks whether there is
		// anything in it before it writes the header, at the cost of a
		// goroutine and a timer, unless a transfer encoding is named. With
		// either it sends what it sends for no body at all: "identity" is
		// no encoding.
		req.Body = emptyBody{}
		req.ContentLength = 0
		req.GetBody = nil
		req.TransferEncoding = identity
	case exact && hasReplayHeader(req.Header):
		// A POST without a body must say Content-Length: 0, so it cannot be
		// treated likewise. Field names have no case (RFC 9110 §5.1), but
		// net/http looks for one spelling. Only the transport itself gets to
		// see the other one.
		req.Header = req.Header.Clone()
		for _, name := range replayHeaders {
			if v, ok := req.Header[name]; ok {
				delete(req.Header, name)
				req.Header[strings.ToLower(name)] = v
			}
		}
	}
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

// identity is the word of Request.TransferEncoding for none.
var identity = []string{"identity"}

// emptyBody differs from http.NoBody in its type alone. WriteTo spares net/http
// the buffer that it would copy with.
type emptyBody struct{}

func (emptyBody) Read([]byte) (int, error)         { return 0, io.EOF }
func (emptyBody) Close() error                     { return nil }
func (emptyBody) WriteTo(io.Writer) (int64, error) { return 0, nil }
