package retry_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/retrychaos/retrychaos/retry"
	"pgregory.net/rapid"
)

// Whatever a server answers, a call has one key for all its attempts, no two
// calls have the same one, all attempts have the same body, and there are no more
// of them than the policy allows.
func TestCallsAreStable(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		p := instant
		p.MaxAttempts = rapid.IntRange(1, 6).Draw(r, "attempts")
		p.Budget = retry.NoBudget()
		p.BareKeys = rapid.Bool().Draw(r, "bare")
		p.KeyHeader = rapid.SampledFrom([]string{"Idempotency-Key", "X-Request-Key"}).Draw(r, "header")
		outcome := rapid.SampledFrom([]any{200, 400, 404, 409, 429, 500, 503, errDial, errReset, errUnknown, context.DeadlineExceeded})
		seen := make(map[string]bool)
		for range rapid.IntRange(1, 3).Draw(r, "calls") {
			a := &answers{outcomes: rapid.SliceOfN(outcome, 1, 8).Draw(r, "outcomes")}
			var keys []string
			c, err := retry.NewClient(p, retry.WithTransport(onRequest{a, func(req *http.Request) {
				keys = append(keys, req.Header.Get(p.KeyHeader))
			}}))
			if err != nil {
				r.Fatal(err)
			}
			body := rapid.String().Draw(r, "body")
			method := rapid.SampledFrom([]string{"POST", "PUT", "PATCH", "GET"}).Draw(r, "method")
			req, err := http.NewRequestWithContext(retry.WithIdempotencyKey(context.Background()), method, "http://server/", strings.NewReader(body))
			if err != nil {
				r.Fatal(err)
			}
			if resp, err := c.Do(req); err == nil {
				resp.Body.Close()
			}
			if len(keys) == 0 || len(keys) > p.MaxAttempts {
				r.Fatalf("%d attempts of %d", len(keys), p.MaxAttempts)
			}
			if slices.ContainsFunc(keys, func(k string) bool { return k != keys[0] }) || seen[keys[0]] || len(keys[0]) < 32 {
				r.Fatalf("keys %q, after %v", keys, seen)
			}
			seen[keys[0]] = true
			for _, b := range a.bodies {
				if b != body {
					r.Fatalf("body %q, want %q", b, body)
				}
			}
			if body != "" && len(a.bodies) != len(keys) {
				r.Fatalf("%d bodies for %d attempts", len(a.bodies), len(keys))
			}
		}
	})
}

// onRequest shows each request before it is answered.
type onRequest struct {
	base http.RoundTripper
	show func(*http.Request)
}

func (o onRequest) RoundTrip(req *http.Request) (*http.Response, error) {
	o.show(req)
	return o.base.RoundTrip(req)
}
