package retry_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/retry"
)

// stub answers every request with 200 and a body of two bytes, and reports nothing to httptrace.
type stub struct{}

func (stub) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		Status: "200 OK", StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"text/plain"}},
		Body:          io.NopCloser(strings.NewReader("ok")),
		ContentLength: 2,
	}, nil
}

// get is one call as programs make it: the request made, the body read and closed.
func get(tb testing.TB, do func(*http.Request) (*http.Response, error)) {
	req, err := http.NewRequestWithContext(tb.Context(), "GET", "http://server.example/charges/c17", nil)
	if err != nil {
		tb.Fatal(err)
	}
	resp, err := do(req)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		tb.Fatal(err)
	}
	resp.Body.Close()
}

// A wire does what every transport over HTTP/1 has to do for a request, and
// nothing else: it tells httptrace, writes the request, and parses a recorded
// response, whose body is read from it. There is no connection and no other
// goroutine, so that the times are those of this work alone; with system calls
// and wake-ups a real exchange takes many times as long. It serves one call
// after the other, as a connection does.
type wire struct {
	waits bool // for the context, as net/http does
	out   *bufio.Writer
	in    *bufio.Reader
	bytes strings.Reader
}

// recorded is what an API behind a proxy answers.
const recorded = "HTTP/1.1 200 OK\r\n" +
	"Server: nginx\r\n" +
	"Date: Mon, 02 Mar 2026 15:04:05 GMT\r\n" +
	"Content-Type: application/json; charset=utf-8\r\n" +
	"Content-Length: 69\r\n" +
	"Connection: keep-alive\r\n" +
	"Cache-Control: no-cache, no-store\r\n" +
	"Etag: W/\"45-8c3e1f0b7a\"\r\n" +
	"Vary: Accept-Encoding\r\n" +
	"X-Request-Id: 5f1c7c0e-8f0b-4d53-9a53-0c6f6c0f7a11\r\n" +
	"Strict-Transport-Security: max-age=63072000; includeSubDomains\r\n" +
	"\r\n" +
	`{"id":"c17","amount":1200,"currency":"eur","status":"paid","tries":1}`

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if w.out == nil {
		w.out, w.in = bufio.NewWriter(io.Discard), bufio.NewReader(nil)
	}
	if w.waits {
		ctx, cancel := context.WithCancelCause(req.Context())
		defer cancel(nil)
		if ctx.Done() == nil {
			return nil, errors.New("the context cannot end")
		}
	}
	trace := httptrace.ContextClientTrace(req.Context())
	if trace != nil && trace.GetConn != nil {
		trace.GetConn(req.URL.Host)
	}
	if trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{Reused: true})
	}
	if err := req.Write(w.out); err != nil {
		return nil, err
	}
	if err := w.out.Flush(); err != nil {
		return nil, err
	}
	w.bytes.Reset(recorded)
	w.in.Reset(&w.bytes)
	if trace != nil && trace.GotFirstResponseByte != nil {
		trace.GotFirstResponseByte()
	}
	return http.ReadResponse(w.in, req)
}

// A floor gives each request a context of its own, in one allocation, and does
// nothing else: the least that any client costs whose attempts have timeouts.
type floor struct{ base http.RoundTripper }

func (f floor) RoundTrip(req *http.Request) (*http.Response, error) {
	a := new(struct {
		req http.Request
		ctx struct {
			context.Context
			start time.Time
		}
	})
	a.ctx.Context, a.ctx.start = req.Context(), time.Now()
	a.req = *req.WithContext(&a.ctx)
	return f.base.RoundTrip(&a.req)
}

// withTimeout is do for callers who give each of their requests a context with
// the timeout that our attempts have.
func withTimeout(do func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	return func(req *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithTimeout(req.Context(), retry.DefaultAttemptTimeout)
		resp, err := do(req.WithContext(ctx))
		if err != nil {
			cancel()
			return nil, err
		}
		resp.Body = cancelling{resp.Body, cancel}
		return resp, nil
	}
}

type cancelling struct {
	io.ReadCloser
	cancel context.CancelFunc
}

func (c cancelling) Close() error {
	defer c.cancel()
	return c.ReadCloser.Close()
}

// BenchmarkHappyPath measures one GET that succeeds at once, and tells what it
// costs above a bare http.Client measured beside it: allocations as
// more-allocs, time as extra-ns and x-bare.
//
//   - "nothing" is a transport that does not even look at the request. It shows
//     our own nanoseconds, and x-bare compares them with those of http.Client.
//   - "wire" writes the request and parses a response. It shows what share of an
//     exchange's own work our nanoseconds are, with the wire left out.
//   - "timeout" is the wire for a client that waits for the context, against a
//     bare one with a context.WithTimeout, since our attempts have a timeout.
//
// The floor says how much of the time no transport under an http.Client can
// save that gives its requests a context of their own.
func BenchmarkHappyPath(b *testing.B) {
	for _, group := range []struct {
		name string
		new  func() http.RoundTripper
		as   func(func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error)
	}{
		{"nothing", func() http.RoundTripper { return stub{} }, nil},
		{"wire", func() http.RoundTripper { return new(wire) }, nil},
		{"timeout", func() http.RoundTripper { return &wire{waits: true} }, withTimeout},
	} {
		bare := (&http.Client{Transport: group.new()}).Do
		if group.as != nil {
			bare = group.as(bare)
		}
		for _, bb := range []struct {
			name string
			opts []retry.Option
		}{
			{"with accounting", nil},
			{"without accounting", []retry.Option{retry.WithoutAccounting()}},
		} {
			b.Run(group.name+"/"+bb.name, func(b *testing.B) {
				c, err := retry.NewClient(retry.Policy{}, append(bb.opts, retry.WithTransport(group.new()))...)
				if err != nil {
					b.Fatal(err)
				}
				compare(b, bare, c.Do)
			})
		}
		if group.as == nil {
			b.Run(group.name+"/floor", func(b *testing.B) {
				compare(b, bare, (&http.Client{Transport: floor{group.new()}}).Do)
			})
		}
	}
}

// BenchmarkOverTCP is the same over a connection to a server in this process,
// where the exchange itself is what takes the time: against a bare client, and
// against one with a timeout.
func BenchmarkOverTCP(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
	defer server.Close()
	u, err := url.Parse(server.URL)
	if err != nil {
		b.Fatal(err)
	}
	to := func(do func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
		return func(req *http.Request) (*http.Response, error) {
			req.URL = u
			return do(req)
		}
	}
	c, err := retry.NewClient(retry.Policy{}, retry.WithTransport(server.Client().Transport))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("bare", func(b *testing.B) { compare(b, to(server.Client().Do), to(c.Do)) })
	b.Run("timeout", func(b *testing.B) { compare(b, to(withTimeout(server.Client().Do)), to(c.Do)) })
}

// compare makes calls in two ways by turns and reports the second against the
// first. The figures are medians over the turns: other work on the machine
// hits few of them, or both of a pair.
func compare(b *testing.B, bare, ours func(*http.Request) (*http.Response, error)) {
	const turn = 100
	timed := func(do func(*http.Request) (*http.Response, error)) float64 {
		start := time.Now()
		for range turn {
			get(b, do)
		}
		return float64(time.Since(start)) / turn
	}
	var bares, extras, ratios []float64
	for b.Loop() {
		x, y := timed(bare), timed(ours)
		bares, extras, ratios = append(bares, x), append(extras, y-x), append(ratios, y/x)
	}
	b.ReportMetric(0, "ns/op") // of both together: says nothing
	b.ReportMetric(median(bares), "bare-ns")
	b.ReportMetric(median(extras), "extra-ns")
	b.ReportMetric(median(ratios), "x-bare")
	allocs := testing.AllocsPerRun(1000, func() { get(b, bare) })
	b.ReportMetric(testing.AllocsPerRun(1000, func() { get(b, ours) })-allocs, "more-allocs")
}

func median(of []float64) float64 {
	slices.Sort(of)
	return of[len(of)/2]
}
