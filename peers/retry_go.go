package peers

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/avast/retry-go/v5"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
)

// RetryGo is avast/retry-go 5 with its defaults, and our glue: ten attempts, 100 ms doubled, plus up to 100 ms.
func RetryGo() harness.Client {
	c := glued("retry-go", func(ctx context.Context, once func(context.Context) (*http.Response, error)) (*http.Response, error) {
		return retry.NewWithData[*http.Response](retry.Context(ctx)).Do(func() (*http.Response, error) {
			resp, err := once(ctx)
			if errors.Is(err, errPermanent) {
				err = retry.Unrecoverable(err)
			}
			return resp, err
		})
	})
	c.Version = version("github.com/avast/retry-go/v5")
	c.Declared = history.Declared{MaxAttempts: 10, Jitter: history.JitterAdditive, JitterWidth: 100 * time.Millisecond,
		BaseDelay: 100 * time.Millisecond, Multiplier: 2}
	return c
}
