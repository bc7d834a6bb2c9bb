package peers

import (
	"net/http"
	"time"

	"github.com/gojek/heimdall/v7"
	"github.com/gojek/heimdall/v7/httpclient"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
)

// Heimdall is gojek/heimdall with three retries (it has none unless told) and its exponential back-off from
// 1 s, doubled up to 10 s, with 500 ms of jitter added.
func Heimdall() harness.Client {
	c := harness.DoFunc("heimdall", func(base http.RoundTripper) func(*http.Request) (*http.Response, error) {
		return httpclient.NewClient(
			httpclient.WithHTTPClient(&http.Client{Transport: base}),
			httpclient.WithRetryCount(3),
			httpclient.WithRetrier(heimdall.NewRetrier(heimdall.NewExponentialBackoff(time.Second, 10*time.Second, 2, 500*time.Millisecond))),
		).Do
	})
	c.Version = version("github.com/gojek/heimdall/v7")
	c.Declared = history.Declared{MaxAttempts: 4, Jitter: history.JitterAdditive, JitterWidth: 500 * time.Millisecond,
		BaseDelay: time.Second, Multiplier: 2, MaxDelay: 10 * time.Second}
	return c
}
