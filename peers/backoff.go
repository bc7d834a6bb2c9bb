package peers

import (
	"context"
	"errors"
	"net/http"

	"github.com/cenkalti/backoff/v5"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
)

// Backoff is cenkalti/backoff 5 with its defaults, and our glue: it goes on for 15 minutes, waiting 0.5 s times
// 1.5^n up to 60 s, ±50 %.
func Backoff() harness.Client {
	c := glued("backoff", func(ctx context.Context, once func(context.Context) (*http.Response, error)) (*http.Response, error) {
		return backoff.Retry(ctx, func() (*http.Response, error) {
			resp, err := once(ctx)
			if errors.Is(err, errPermanent) {
				err = backoff.Permanent(err)
			}
			return resp, err
		})
	})
	c.Version = version("github.com/cenkalti/backoff/v5")
	c.Declared = history.Declared{Jitter: history.JitterProportional, JitterRatio: 2 * backoff.DefaultRandomizationFactor,
		BaseDelay: backoff.DefaultInitialInterval, Multiplier: backoff.DefaultMultiplier, MaxDelay: backoff.DefaultMaxInterval}
	return c
}
