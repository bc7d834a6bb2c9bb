package retry_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrychaos/retrychaos/retry"
)

func TestPolicyValidate(t *testing.T) {
	for field, p := range map[string]retry.Policy{
		"MaxAttempts":     {MaxAttempts: -1},
		"BaseDelay":       {BaseDelay: -1},
		"MaxDelay":        {BaseDelay: time.Minute, MaxDelay: time.Second},
		"Multiplier":      {Multiplier: 0.5},
		"Jitter":          {Jitter: 99},
		"JitterWidth":     {JitterWidth: -1},
		"AttemptTimeout":  {AttemptTimeout: -2},
		"CallTimeout":     {CallTimeout: -1},
		"MaxRetryAfter":   {MaxRetryAfter: -1},
		"MaxBufferedBody": {MaxBufferedBody: -1},
		"KeyHeader":       {KeyHeader: "Idempotency Key"},
	} {
		err := p.Validate()
		if e := asType[*retry.PolicyError](t, err); e.Field != field || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v", field, err)
		}
		if _, err := retry.NewClient(p); err == nil {
			t.Errorf("%s: NewClient accepts it", field)
		}
		if _, err := retry.NewTransport(p, nil); err == nil {
			t.Errorf("%s: NewTransport accepts it", field)
		}
	}
	for _, m := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if (retry.Policy{Multiplier: m}).Validate() == nil {
			t.Errorf("Multiplier %v is accepted", m)
		}
	}
	for _, p := range []retry.Policy{{}, retry.AdditivePreset(), {MaxAttempts: 1, AttemptTimeout: retry.NoTimeout}} {
		if err := p.Validate(); err != nil {
			t.Errorf("%v: %v", p, err)
		}
	}
}

func TestPolicyString(t *testing.T) {
	for want, p := range map[string]retry.Policy{
		"4 attempts, 1s ×2 up to 30s, full jitter, attempt timeout 10s, Retry-After up to 2m0s, budget of 100, 1 a retry, 0.1 back a success":              {},
		"4 attempts, 1s ×2 up to 30s, additive jitter of 500ms, attempt timeout 10s, Retry-After up to 2m0s, budget of 100, 1 a retry, 0.1 back a success": retry.AdditivePreset(),
		"2 attempts, 1s ×3 up to 1m0s, no jitter, call timeout 1h0m0s, Retry-After up to 5s, budget of 100, 1 a retry, 0.1 back a success, bodies buffered up to 9 bytes, 503 means unprocessed, keys honoured": {
			MaxAttempts: 2, Multiplier: 3, MaxDelay: time.Minute, Jitter: retry.NoJitter, AttemptTimeout: retry.NoTimeout,
			CallTimeout: time.Hour, MaxRetryAfter: 5 * time.Second, MaxBufferedBody: 9, Unprocessed503: true, HonouredKeys: true,
		},
	} {
		if got := p.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestOptionsThatDoNotFit(t *testing.T) {
	if _, err := retry.NewTransport(retry.Policy{}, nil, retry.WithHTTPClient(http.DefaultClient)); err == nil {
		t.Error("NewTransport takes a client")
	}
	op := func(context.Context) (int, error) { panic("called") }
	if _, err := retry.Do(t.Context(), retry.Policy{}, op, retry.WithTransport(http.DefaultTransport)); err == nil {
		t.Error("Do takes a transport")
	}
	if _, err := retry.NewClient(retry.Policy{}, retry.WithLogger(nil)); err == nil {
		t.Error("NewClient takes a nil logger")
	}
}

func TestWithRandRepeatsItself(t *testing.T) {
	var waits [2][]time.Duration
	for i := range waits {
		synctest.Test(t, func(t *testing.T) {
			_, err := retry.Do(t.Context(), retry.Policy{MaxAttempts: 9}, func(context.Context) (int, error) { return 0, errDial },
				retry.WithRand(rand.NewPCG(1, 2)))
			e, _ := errors.AsType[*retry.Error](err)
			for _, a := range e.Attempts {
				waits[i] = append(waits[i], a.Wait)
			}
		})
	}
	for i := range waits[0] {
		if waits[0][i] != waits[1][i] {
			t.Fatalf("%v\n%v", waits[0], waits[1])
		}
	}
}
