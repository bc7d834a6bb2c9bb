package retry_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrychaos/retrychaos/retry"
)

// In an outage retries die out, and no first attempt is refused; once calls succeed again they are retried as before, and
// the outage is forgotten after half a minute.
func TestAdaptiveBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{outcomes: []any{200}}
		p := retry.Policy{MaxAttempts: 2, BaseDelay: time.Nanosecond, MaxDelay: time.Nanosecond, Jitter: retry.NoJitter, Budget: retry.AdaptiveBudget()}
		c := newClient(t, p, a, retry.WithRand(rand.NewPCG(1, 2)))
		calls := func(n int, gap time.Duration, outcome any) (retries int, refused *retry.BudgetError) {
			a.calls, a.outcomes = 0, []any{outcome}
			for range n {
				if err := call(t, c, t.Context(), "GET"); err != nil {
					errors.As(err, &refused)
				}
				time.Sleep(gap)
			}
			if a.calls < n {
				t.Fatalf("%d attempts of %d calls: a first attempt was refused", a.calls, n)
			}
			return a.calls - n, refused
		}
		calls(1000, 10*time.Millisecond, 200)
		// Half of the requests may fail before anything is refused: 1000 accepts pay for 2000 requests.
		if n, refused := calls(499, time.Millisecond, 503); n != 499 || refused != nil {
			t.Errorf("%d retries of 499, %v: K = 2 allows as many failures as there were successes", n, refused)
		}
		// The accepts are forgotten within half a minute, and then next to nothing is retried.
		calls(600, 100*time.Millisecond, 503)
		n, refused := calls(600, 100*time.Millisecond, 503)
		if n > 6 {
			t.Errorf("%d retries of 600 calls after a minute of failures", n)
		}
		if refused == nil || refused.Chance < 0.9 || refused.Chance > 1 || refused.Error() == "" {
			t.Errorf("%+v", refused)
		}
		time.Sleep(30 * time.Second)
		calls(100, time.Millisecond, 200)
		if n, refused := calls(49, time.Millisecond, 503); n != 49 || refused != nil {
			t.Errorf("%d retries of 49, %v: half a minute later the outage counts no more", n, refused)
		}
	})
}

func TestAdaptiveBudgetIsValidated(t *testing.T) {
	for _, b := range []retry.Budget{{Throttle: 0.5}, {Throttle: -1}, {Throttle: 2, Capacity: 10}, {Throttle: 2, Unlimited: true}} {
		if _, err := retry.NewBucket(b); err == nil {
			t.Errorf("%+v is accepted", b)
		}
	}
	b, err := retry.NewBucket(retry.AdaptiveBudget())
	if err != nil || b.Budget() != retry.AdaptiveBudget() {
		t.Errorf("%v, %+v", err, b.Budget())
	}
	if got, want := retry.AdaptiveBudget().String(), "budget by chance: the requests of half a minute above 2 times the successes are not repeated"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
