package harness

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/retry"
)

// BundledAttemptTimeout is the per-attempt timeout that Bundled gives a policy that has none of its own:
// short, so that scenarios that hang are over in seconds on a real clock too.
const BundledAttemptTimeout = 2 * time.Second

// Bundled adapts the client of package retry with a policy; the zero Policy is its default.
func Bundled(name string, p retry.Policy) Client {
	if p.AttemptTimeout == 0 {
		p.AttemptTimeout = BundledAttemptTimeout
	}
	return Client{
		Name:     name,
		Version:  "bundled",
		Declared: declared(p),
		New: func(env Env) (Caller, error) {
			opts := []retry.Option{retry.WithTransport(env.Transport), retry.WithRand(rand.NewPCG(env.Seed, 0))}
			if env.Refresh != nil {
				opts = append(opts, retry.WithTokenRefresh(env.Refresh))
			}
			c, err := retry.NewClient(p, opts...)
			if err != nil {
				return nil, err
			}
			return &bundled{c}, nil
		},
	}
}

func declared(p retry.Policy) history.Declared {
	d := history.Declared{
		CanBeTold:     true,
		MaxAttempts:   or(p.MaxAttempts, retry.DefaultMaxAttempts),
		BaseDelay:     or(p.BaseDelay, retry.DefaultBaseDelay),
		MaxDelay:      or(p.MaxDelay, retry.DefaultMaxDelay),
		Multiplier:    or(p.Multiplier, retry.DefaultMultiplier),
		MaxRetryAfter: or(p.MaxRetryAfter, retry.DefaultMaxRetryAfter),
		JitterWidth:   or(p.JitterWidth, retry.DefaultJitterWidth),
	}
	switch p.Jitter {
	case retry.EqualJitter:
		d.Jitter = history.JitterEqual
	case retry.DecorrelatedJitter:
		d.Jitter = history.JitterDecorrelated
	case retry.AdditiveJitter:
		d.Jitter = history.JitterAdditive
	case retry.NoJitter:
		d.Jitter = history.JitterNone
	default:
		d.Jitter = history.JitterFull
	}
	return d
}

func or[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}

type bundled struct{ client *retry.Client }

func (b *bundled) Call(ctx context.Context, call Call) Outcome {
	if call.Key != "" && call.KeyHonoured {
		// The client makes its own key, unless the application has one: that it makes one, and keeps it, is
		// under test.
		if ctx = retry.WithIdempotencyKey(ctx); call.KeyText != "" {
			ctx = retry.WithKey(ctx, call.KeyText)
		}
		call.Key = ""
	}
	if call.Idempotent {
		ctx = retry.Idempotent(ctx)
	}
	req, err := call.Request(ctx)
	if err != nil {
		return Outcome{Err: err}
	}
	status := 0
	_, err = retry.Fetch(b.client, req, func(resp *http.Response) (struct{}, error) {
		status = resp.StatusCode
		body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
		if err != nil || call.Method == http.MethodHead {
			return struct{}{}, err
		}
		return struct{}{}, DecodeReply(call, body)
	})
	if err == nil {
		return Outcome{OK: true, Status: status}
	}
	o := Outcome{Err: err, Status: statusOf(err), Decoding: isDecoding(err)}
	var report *retry.Error
	if errors.As(err, &report) {
		for _, a := range report.Attempts {
			o.Attempts += 1 + a.Wire.Resent()
		}
	}
	return o
}

// Close lets go of idle connections.
func (b *bundled) Close() error {
	b.client.CloseIdleConnections()
	return nil
}
