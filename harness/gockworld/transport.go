package gockworld

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/h2non/gock"

	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/server"
)

// newTransport stacks what a client of this world sends through: the guard, gock, and the way to the server.
func newTransport(o origin, to *url.URL, base http.RoundTripper, finding func(kind, text string)) http.RoundTripper {
	// This is what gock.InterceptClient does to a client. Here the client is made on it, and not changed, so
	// there is nothing to restore.
	caught := gock.NewTransport()
	caught.Transport = &route{origin: o, to: to, next: base}
	return &guard{origin: o, next: caught, base: base, finding: finding, told: map[string]bool{}}
}

// guard stands above gock. It marks the client's requests, and sees to it that one that gock does not know is
// no network error to the client, which might retry it.
type guard struct {
	origin  origin
	next    *gock.Transport
	base    http.RoundTripper
	finding func(kind, text string)

	mu      sync.Mutex
	told    map[string]bool
	refused int
}

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if !gock.Intercepting() {
		// gock lets everything through now. A request to the origin does no harm, and a client that never
		// stops must meet the server's limits and not an answer of ours.
		g.tell(history.FindingHarness, "gock was switched off while the run went on: something else in this process uses it")
		if !g.origin.holds(req.URL) {
			return g.refuse(req)
		}
	}
	resp, err := g.next.RoundTrip(mark(req))
	if errors.Is(err, gock.ErrCannotMatch) {
		return g.refuse(req)
	}
	if resp != nil {
		resp.Request = req
	}
	return resp, err
}

// refuse answers a request to somewhere else as the fake server answers one that it does not know. A client
// that asks without end is held until it gives up, as the server holds one.
func (g *guard) refuse(req *http.Request) (*http.Response, error) {
	u := *req.URL
	u.RawQuery, u.Fragment = "", ""
	text := req.Method + " " + u.Redacted() + " is not below " + g.origin.String() + ", the origin of this world"
	g.tell(history.FindingUnmatched, text)
	if req.Body != nil {
		_ = req.Body.Close() // a RoundTripper closes the body, whatever comes of it
	}
	g.mu.Lock()
	g.refused++
	endless := g.refused > server.DefaultAttemptCap
	g.mu.Unlock()
	if endless {
		<-req.Context().Done()
		return nil, req.Context().Err()
	}
	body := "retrychaos: " + text + "\n"
	return &http.Response{
		Status: "404 Not Found", StatusCode: http.StatusNotFound, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{
			"Content-Type": {"text/plain; charset=utf-8"}, "Content-Length": {strconv.Itoa(len(body))},
			server.UnmatchedHeader: {"true"},
		},
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)), Request: req,
	}, nil
}

// tell passes a finding on, once for each text.
func (g *guard) tell(kind, text string) {
	g.mu.Lock()
	first := !g.told[text] && len(g.told) < 100
	if first {
		g.told[text] = true
	}
	g.mu.Unlock()
	if first {
		g.finding(kind, text)
	}
}

// CloseIdleConnections lets http.Client.CloseIdleConnections through, which gock's transport would not.
func (g *guard) CloseIdleConnections() {
	if c, ok := g.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

// route stands below gock and takes what it lets through to the server.
type route struct {
	origin origin
	to     *url.URL
	next   http.RoundTripper
}

func (r *route) RoundTrip(req *http.Request) (*http.Response, error) {
	out := req.WithContext(req.Context())
	out.URL = r.origin.moved(req.URL, r.to)
	if out.Host == "" {
		out.Host = req.URL.Host // as it would be on the wire
	}
	return r.next.RoundTrip(out)
}
