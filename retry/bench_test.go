package retry_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
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

// BenchmarkHappyPath measures one GET that succeeds at once, and tells what it
// costs above a bare http.Client measured beside it: allocations as
// more-allocs, time as x-bare. The floor says how much of the time no such
// client can save on a transport that does nothing.
func BenchmarkHappyPath(b *testing.B) {
	bare := (&http.Client{Transport: stub{}}).Do
	for _, bb := range []struct {
		name string
		opts []retry.Option
	}{
		{"with accounting", nil},
		{"without accounting", []retry.Option{retry.WithoutAccounting()}},
	} {
		b.Run(bb.name, func(b *testing.B) {
			c, err := retry.NewClient(retry.Policy{}, append(bb.opts, retry.WithTransport(stub{}))...)
			if err != nil {
				b.Fatal(err)
			}
			compare(b, bare, c.Do)
		})
	}
	b.Run("floor", func(b *testing.B) {
		compare(b, bare, (&http.Client{Transport: floor{stub{}}}).Do)
	})
}

// BenchmarkOverTCP is the same over a connection to a server in this process,
// where the exchange itself is what takes the time.
func BenchmarkOverTCP(b *testing.B) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok") }))
	defer server.Close()
	to := func(do func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
		u, err := url.Parse(server.URL)
		if err != nil {
			b.Fatal(err)
		}
		return func(req *http.Request) (*http.Response, error) {
			req.URL = u
			return do(req)
		}
	}
	c, err := retry.NewClient(retry.Policy{}, retry.WithTransport(server.Client().Transport))
	if err != nil {
		b.Fatal(err)
	}
	compare(b, to(server.Client().Do), to(c.Do))
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
	var bares, ratios []float64
	for b.Loop() {
		x, y := timed(bare), timed(ours)
		bares, ratios = append(bares, x), append(ratios, y/x)
	}
	slices.Sort(bares)
	slices.Sort(ratios)
	b.ReportMetric(0, "ns/op") // of both together: says nothing
	b.ReportMetric(bares[len(bares)/2], "bare-ns")
	b.ReportMetric(ratios[len(ratios)/2], "x-bare")
	allocs := testing.AllocsPerRun(1000, func() { get(b, bare) })
	b.ReportMetric(testing.AllocsPerRun(1000, func() { get(b, ours) })-allocs, "more-allocs")
}
