package retry_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/retrychaos/retrychaos/retry"
)

// A GET that succeeds costs few allocations more than with a bare http.Client,
// whether or not the transport asks for the hooks of the accounting.
func TestAllocations(t *testing.T) {
	for _, transport := range []http.RoundTripper{stub{}, new(wire)} {
		bare := (&http.Client{Transport: transport}).Do
		base := testing.AllocsPerRun(200, func() { get(t, bare) })
		for _, tt := range []struct {
			name string
			opts []retry.Option
			most float64
		}{
			{"without accounting", []retry.Option{retry.WithoutAccounting()}, 2},
			{"with accounting", nil, 5},
		} {
			c := newClient(t, retry.Policy{}, transport, tt.opts...)
			more := testing.AllocsPerRun(200, func() { get(t, c.Do) }) - base
			t.Logf("%T, %s: %v allocations more than %v", transport, tt.name, more, base)
			if more > tt.most {
				t.Errorf("%T, %s: %v allocations more than a bare client, want at most %v", transport, tt.name, more, tt.most)
			}
		}
	}
}

// The request of the caller is left as it is, also where it is passed on.
func TestCallersRequestIsNotChanged(t *testing.T) {
	for _, method := range []string{"GET", "DELETE", "POST"} {
		for _, body := range []string{"", "x"} {
			req := request(t, retry.WithIdempotencyKey(t.Context()), method, "http://server/", strings.NewReader(body))
			if body == "" {
				req.Body, req.GetBody = nil, nil
			}
			req.Header.Set("X-Test", "1")
			before := *req
			resp, err := newClient(t, retry.Policy{}, &answers{outcomes: []any{200}}).Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if req.Body != before.Body || (req.GetBody == nil) != (before.GetBody == nil) || req.ContentLength != before.ContentLength ||
				len(req.Header) != 1 || req.Context() != before.Context() {
				t.Errorf("%s with body %q: %+v", method, body, req)
			}
			if resp.Request == req {
				t.Error("Response.Request is not the attempt's")
			}
		}
	}
}
