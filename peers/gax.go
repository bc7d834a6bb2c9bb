package peers

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/googleapis/gax-go/v2"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
)

// Gax is googleapis/gax-go with its default back-off, and our glue: it goes on until the context ends, waiting
// a random part of 1 s doubled up to 30 s.
func Gax() harness.Client {
	c := glued("gax", func(ctx context.Context, once func(context.Context) (*http.Response, error)) (*http.Response, error) {
		var resp *http.Response
		err := gax.Invoke(ctx, func(ctx context.Context, _ gax.CallSettings) (err error) {
			resp, err = once(ctx)
			return err
		}, gax.WithRetry(func() gax.Retryer {
			return gax.OnErrorFunc(gax.Backoff{}, func(err error) bool { return !errors.Is(err, errPermanent) })
		}))
		return resp, err
	})
	c.Version = version("github.com/googleapis/gax-go/v2")
	c.Declared = history.Declared{Jitter: history.JitterFull, BaseDelay: time.Second, Multiplier: 2, MaxDelay: 30 * time.Second}
	return c
}
