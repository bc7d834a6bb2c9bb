package peers

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/sethvargo/go-retry"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
)

// GoRetry is sethvargo/go-retry as its documentation composes it, and our glue: a fresh exponential back-off
// from 1 s for each call, with three retries. It has no jitter unless it is asked for.
func GoRetry() harness.Client {
	c := glued("go-retry", func(ctx context.Context, once func(context.Context) (*http.Response, error)) (*http.Response, error) {
		return retry.DoValue(ctx, retry.WithMaxRetries(3, retry.NewExponential(time.Second)), func(ctx context.Context) (*http.Response, error) {
			resp, err := once(ctx)
			if err != nil && !errors.Is(err, errPermanent) {
				err = retry.RetryableError(err)
			}
			return resp, err
		})
	})
	c.Version = version("github.com/sethvargo/go-retry")
	c.Declared = history.Declared{MaxAttempts: 4, Jitter: history.JitterNone, BaseDelay: time.Second, Multiplier: 2}
	return c
}
