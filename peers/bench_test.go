package peers_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/peers"
	"github.com/retrychaos/retrychaos/retry"
)

// stub answers each request well, and is as little of a transport as can be.
type stub struct{}

const reply = `{"call":"c1","ok":true,"effect":1}`

func (stub) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{
		Status: "200 OK", StatusCode: 200, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(strings.NewReader(reply)),
		ContentLength: int64(len(reply)),
	}, nil
}

// A wire does what every transport over HTTP/1 has to do for a request, and
// nothing else: it tells httptrace, writes the request and parses a recorded
// response, with no connection and no other goroutine.
type wire struct {
	out   *bufio.Writer
	in    *bufio.Reader
	bytes strings.Reader
}

// recorded is what an API behind a proxy answers.
var recorded = "HTTP/1.1 200 OK\r\n" +
	"Server: nginx\r\n" +
	"Date: Mon, 02 Mar 2026 15:04:05 GMT\r\n" +
	"Content-Type: application/json; charset=utf-8\r\n" +
	"Content-Length: " + strconv.Itoa(len(reply)) + "\r\n" +
	"Connection: keep-alive\r\n" +
	"Cache-Control: no-cache, no-store\r\n" +
	"Etag: W/\"45-8c3e1f0b7a\"\r\n" +
	"Vary: Accept-Encoding\r\n" +
	"X-Request-Id: 5f1c7c0e-8f0b-4d53-9a53-0c6f6c0f7a11\r\n" +
	"Strict-Transport-Security: max-age=63072000; includeSubDomains\r\n" +
	"\r\n" + reply

func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	if w.out == nil {
		w.out, w.in = bufio.NewWriter(io.Discard), bufio.NewReader(nil)
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

// BenchmarkHappyPath measures one GET that succeeds at once with every peer and with the bundled client,
// adapters included, against a bare http.Client in the same run: the allocations that it has more, and
// the time, as a multiple and in nanoseconds. Times are medians of turns taken in alternation, so that what else
// the machine does weighs little. On the transport "nothing" they are the client's own; on "wire" they are seen
// as a share of what an exchange has to do, with the wire left out.
func BenchmarkHappyPath(b *testing.B) {
	for _, transport := range []struct {
		name string
		new  func() http.RoundTripper
	}{
		{"nothing", func() http.RoundTripper { return stub{} }},
		{"wire", func() http.RoundTripper { return new(wire) }},
	} {
		b.Run(transport.name, func(b *testing.B) { happyPath(b, transport.new) })
	}
}

func happyPath(b *testing.B, transport func() http.RoundTripper) {
	ctx := context.Background()
	call := harness.Call{ID: "c1", Method: "GET", URL: "http://server.example/charges/c1", Header: make(http.Header)}
	caller := func(c harness.Client) func(*testing.B) {
		inst, err := c.New(harness.Env{Transport: transport(), BaseURL: "http://server.example", Seed: 1})
		if err != nil {
			b.Fatal(err)
		}
		return func(b *testing.B) {
			if o := inst.Call(ctx, call); !o.OK {
				b.Skipf("it does not work on a stub: %v", o.Err)
			}
		}
	}
	bundled := harness.DoFunc("retry", func(base http.RoundTripper) func(*http.Request) (*http.Response, error) {
		c, err := retry.NewClient(retry.Policy{}, retry.WithTransport(base))
		if err != nil {
			b.Fatal(err)
		}
		return c.Do
	})
	bare := caller(peers.NetHTTP())
	for _, client := range append([]harness.Client{bundled}, peers.All()...) {
		b.Run(client.Name, func(b *testing.B) {
			const turn = 100
			timed := func(f func(*testing.B)) float64 {
				start := time.Now()
				for range turn {
					f(b)
				}
				return float64(time.Since(start)) / turn
			}
			allocs := func(f func(*testing.B)) float64 { return testing.AllocsPerRun(500, func() { f(b) }) }
			ours := caller(client)
			var extras, ratios []float64
			for b.Loop() {
				x, y := timed(bare), timed(ours)
				extras, ratios = append(extras, y-x), append(ratios, y/x)
			}
			slices.Sort(extras)
			slices.Sort(ratios)
			b.ReportMetric(0, "ns/op") // of both together: says nothing
			b.ReportMetric(extras[len(extras)/2], "extra-ns")
			b.ReportMetric(ratios[len(ratios)/2], "x-bare")
			b.ReportMetric(allocs(ours)-allocs(bare), "more-allocs")
		})
	}
}
