package retry

import (
	"context"
	"sync/atomic"
)

// A tally counts the retries of one call over all retriers that it passes
// through, so that layers add up instead of multiplying. The outermost sets
// the limit.
type tally struct {
	limit   atomic.Int64 // one more than the retries allowed; 0 until it is opened
	retries atomic.Int64
}

type tallyKey struct{}

// WithSharedAttempts makes all calls with the context, and those derived from
// it, share one count of retries, the limit being that of the first. Stacked
// retriers of this package share their count anyway; this is for a Transport
// under a plain http.Client that follows redirects, where each hop would
// otherwise have retries of its own. Make a new context for each call.
func WithSharedAttempts(ctx context.Context) context.Context {
	return context.WithValue(ctx, tallyKey{}, new(tally))
}

// open sets the limit, unless a layer above has set it.
func (t *tally) open(limit int) { t.limit.CompareAndSwap(0, int64(limit)+1) }

// take counts n retries, and reports whether they were within the limit.
func (t *tally) take(n int) bool { return t.retries.Add(int64(n)) < t.limit.Load() }

func (t *tally) taken() int { return int(t.retries.Load()) }

func (t *tally) left() int { return int(t.limit.Load() - 1 - t.retries.Load()) }
