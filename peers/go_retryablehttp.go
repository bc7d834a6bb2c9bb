package peers

import (
	"net/http"

	"github.com/hashicorp/go-retryablehttp"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
)

// GoRetryableHTTP is hashicorp/go-retryablehttp with its defaults, driven through StandardClient as most
// programs use it. Only its log is silenced.
//
// What it declares is what its documentation and its defaults say: RetryMax 4, so five attempts; waits from
// 1 s to 30 s that double; no jitter.
func GoRetryableHTTP() harness.Client {
	c := harness.HTTPClient("go-retryablehttp", func(base http.RoundTripper) *http.Client {
		r := retryablehttp.NewClient()
		r.HTTPClient.Transport = base
		r.Logger = nil
		return r.StandardClient()
	})
	c.Version = version("github.com/hashicorp/go-retryablehttp")
	defaults := retryablehttp.NewClient()
	c.Declared = history.Declared{
		MaxAttempts: defaults.RetryMax + 1,
		BaseDelay:   defaults.RetryWaitMin,
		MaxDelay:    defaults.RetryWaitMax,
		Multiplier:  2,
		Jitter:      history.JitterNone,
	}
	return c
}
