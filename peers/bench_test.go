package peers_test

import (
	"context"
	"io"
	"net/http"
	"slices"
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

// BenchmarkHappyPath measures one GET that succeeds at once with every peer and with the bundled client,
// adapters included, against a bare http.Client in the same run: the allocations that it has more, and
// the time as a multiple. Times are medians of turns taken in alternation, so that what else the machine does
// weighs little.
func BenchmarkHappyPath(b *testing.B) {
	ctx := context.Background()
	call := harness.Call{ID: "c1", Method: "GET", URL: "http://server.example/charges/c1"}
	caller := func(c harness.Client) func(*testing.B) {
		inst, err := c.New(harness.Env{Transport: stub{}, BaseURL: "http://server.example", Seed: 1})
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
				return float64(time.Since(start))
			}
			allocs := func(f func(*testing.B)) float64 { return testing.AllocsPerRun(500, func() { f(b) }) }
			ours := caller(client)
			var ratios []float64
			for b.Loop() {
				x := timed(bare)
				ratios = append(ratios, timed(ours)/x)
			}
			slices.Sort(ratios)
			b.ReportMetric(0, "ns/op") // of both together: says nothing
			b.ReportMetric(ratios[len(ratios)/2], "x-bare")
			b.ReportMetric(allocs(ours)-allocs(bare), "more-allocs")
		})
	}
}
