package peers

import (
	"net/http"
	"time"

	"github.com/PuerkitoBio/rehttp"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
)

// Rehttp is PuerkitoBio/rehttp as its documentation composes it: three retries of temporary errors and of
// statuses from 500, and exponential waits with full jitter from 1 to 10 s.
func Rehttp() harness.Client {
	c := harness.RoundTripper("rehttp", func(base http.RoundTripper) http.RoundTripper {
		return rehttp.NewTransport(base,
			rehttp.RetryAll(rehttp.RetryMaxRetries(3), rehttp.RetryAny(rehttp.RetryTemporaryErr(), rehttp.RetryStatusInterval(500, 600))),
			rehttp.ExpJitterDelay(time.Second, 10*time.Second))
	})
	c.Version = version("github.com/PuerkitoBio/rehttp")
	c.Declared = history.Declared{MaxAttempts: 4, Jitter: history.JitterFull, BaseDelay: time.Second, Multiplier: 2, MaxDelay: 10 * time.Second}
	return c
}
