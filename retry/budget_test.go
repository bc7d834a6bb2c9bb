package retry_test

import (
	"context"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrychaos/retrychaos/retry"
	"pgregory.net/rapid"
)

// call makes one call and returns its attempts, and its report if it failed.
func call(t *testing.T, c *retry.Client, ctx context.Context, method string) *retry.Error {
	t.Helper()
	resp, err := c.Do(request(t, ctx, method, "http://server/", nil))
	if err != nil {
		return asType[*retry.Error](t, err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); string(b) != "body" || err != nil {
		t.Errorf("the response that came back: %q, %v", b, err)
	}
	return retry.Explain(resp)
}

func bucket(t *testing.T, b retry.Budget) *retry.Bucket {
	t.Helper()
	bucket, err := retry.NewBucket(b)
	if err != nil {
		t.Fatal(err)
	}
	return bucket
}

// In an outage a client makes as many retries as the budget holds, and then
// one attempt a call, whose outcome comes back at once.
func TestBudgetEndsTheRetries(t *testing.T) {
	for _, answer := range []any{503, errReset} {
		synctest.Test(t, func(t *testing.T) {
			a := &answers{outcomes: []any{answer}}
			c := newClient(t, retry.Policy{}, a)
			for range 33 {
				if e := call(t, c, t.Context(), "GET"); len(e.Attempts) != 4 {
					t.Fatalf("%v", e)
				}
			}
			if e := call(t, c, t.Context(), "GET"); len(e.Attempts) != 2 {
				t.Errorf("one token left: %v", e)
			}
			start := time.Now()
			e := call(t, c, t.Context(), "GET")
			if len(e.Attempts) != 1 || time.Since(start) != 0 {
				t.Errorf("no token left: %d attempts in %v", len(e.Attempts), time.Since(start))
			}
			if b := asType[*retry.BudgetError](t, e); b.Tokens != 0 || b.Needed != 1 {
				t.Errorf("%+v", b)
			}
			if err, ok := answer.(error); ok && !errors.Is(e, err) {
				t.Errorf("the last real failure is lost: %v", e)
			}

			// Ten calls that succeed pay for one retry.
			a.outcomes = []any{200}
			for range 10 {
				call(t, c, t.Context(), "GET")
			}
			a.outcomes = []any{answer}
			if e := call(t, c, t.Context(), "GET"); len(e.Attempts) != 2 {
				t.Errorf("after ten successes: %v", e)
			}
		})
	}
}

// What would not have been repeated anyway takes nothing.
func TestBudgetIsTakenByRetriesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bucket(t, retry.DefaultBudget())
		a := &answers{outcomes: []any{503}}
		c := newClient(t, retry.Policy{MaxAttempts: 2}, a, retry.WithBucket(b))
		call(t, c, t.Context(), "POST")
		a.outcomes = []any{404}
		call(t, c, t.Context(), "GET")
		a.outcomes = []any{response(429, "Retry-After", "3600")}
		call(t, c, t.Context(), "GET")
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		a.outcomes = []any{503}
		call(t, c, short, "GET")
		if b.Tokens() != 100 {
			t.Errorf("%v tokens", b.Tokens())
		}
		call(t, c, t.Context(), "GET")
		if b.Tokens() != 99 {
			t.Errorf("%v tokens after one retry", b.Tokens())
		}
	})
}

func TestBudgetPresets(t *testing.T) {
	for i, tt := range []struct {
		budget  retry.Budget
		retries int // in an outage, of 200 calls that may be made twice
		back    int // retries that 100 successes then pay for
	}{
		{retry.DefaultBudget(), 100, 10},
		// Five failures leave half, and a retry that fails is one of them.
		{retry.GRPCBudget(), 2, 2},
		// 200 s of back-off pass, in which time pays for all of them.
		{retry.FinagleBudget(), 200, 200},
		// 10, and a tenth of 200, but for the first that finds it full.
		{retry.RequestBudget(), 29, 29},
		{retry.AWSBudget(), 35, 7},
		{retry.NoBudget(), 200, 200},
	} {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &answers{outcomes: []any{503}}
				p := retry.Policy{MaxAttempts: 2, Jitter: retry.NoJitter, Budget: tt.budget}
				c := newClient(t, p, a)
				outage := func() int {
					a.calls, a.outcomes = 0, []any{503}
					for range 200 {
						call(t, c, t.Context(), "GET")
					}
					return a.calls - 200
				}
				if got := outage(); got != tt.retries {
					t.Errorf("%v: %d retries, want %d", tt.budget, got, tt.retries)
				}
				a.outcomes = []any{200}
				for range 100 {
					call(t, c, t.Context(), "GET")
				}
				if got := outage(); got != tt.back {
					t.Errorf("%v: %d retries after 100 successes, want %d", tt.budget, got, tt.back)
				}
			})
		})
	}
}

func TestBudgetOfTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bucket(t, retry.Budget{Capacity: 10, Cost: 4, PerSecond: 2})
		c := newClient(t, retry.Policy{MaxAttempts: 2, Jitter: retry.NoJitter}, &answers{outcomes: []any{503}}, retry.WithBucket(b))
		call(t, c, t.Context(), "GET") // takes 4, and lasts a second
		if got := b.Tokens(); got != 8 {
			t.Errorf("%v tokens, want 10 - 4 + 2", got)
		}
		// Small steps add up to what one step gives.
		for range 1000 {
			time.Sleep(700 * time.Microsecond)
			b.Tokens()
		}
		if got := b.Tokens(); math.Abs(got-9.4) > 0.0011 {
			t.Errorf("%v tokens, want 8 + 0.7 × 2", got)
		}
		time.Sleep(time.Hour)
		if got := b.Tokens(); got != 10 {
			t.Errorf("%v tokens, more than the capacity or less", got)
		}
	})
}

func TestSharedBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bucket(t, retry.Budget{Capacity: 3, Cost: 1, PerSuccess: 1})
		p := retry.Policy{MaxAttempts: 3}
		c1 := newClient(t, p, &answers{outcomes: []any{503}}, retry.WithBucket(b))
		call(t, c1, t.Context(), "GET")
		calls := 0
		_, err := retry.Do(t.Context(), p, func(context.Context) (int, error) { calls++; return 0, errDial }, retry.WithBucket(b))
		asType[*retry.BudgetError](t, err)
		if calls != 2 || b.Tokens() != 0 {
			t.Errorf("%d calls, %v tokens", calls, b.Tokens())
		}
		if c1.Policy().Budget != b.Budget() {
			t.Errorf("the policy does not show the budget that counts: %v", c1.Policy())
		}
	})
}

func TestBudgetThatMakesNoSense(t *testing.T) {
	for _, b := range []retry.Budget{
		{Capacity: -1}, {Capacity: 1}, {Cost: 1, PerSuccess: 1}, {Capacity: 1, Cost: 2, PerSuccess: 1},
		{Capacity: 1, Cost: 1}, {Capacity: 1, FailureCost: 1, PerSuccess: 1, Reserve: 1}, {Capacity: math.NaN(), Cost: 1, PerSuccess: 1},
		{Capacity: math.Inf(1), Cost: 1, PerSuccess: 1}, {Capacity: 1, Cost: 1, PerSuccess: 1e-9}, {Unlimited: true, Cost: 1},
	} {
		_, err := retry.NewClient(retry.Policy{Budget: b})
		if err == nil {
			t.Errorf("%+v is accepted", b)
		} else if e := asType[*retry.PolicyError](t, err); e.Field != "Budget" || e.Problem == "" {
			t.Errorf("%v", err)
		}
		if _, err := retry.NewBucket(b); err == nil {
			t.Errorf("NewBucket accepts %+v", b)
		}
	}
}

// Whatever happens, the bucket holds from nothing to its capacity, and retries
// never take more than was there and was given.
func TestBudgetHolds(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		amount := func(name string) float64 { return float64(rapid.IntRange(0, 5000).Draw(r, name)) / 1000 }
		budget := retry.Budget{
			Capacity: 5 + amount("capacity"), Cost: 0.001 + amount("cost"), ThrottledCost: amount("throttled"), TimeoutCost: amount("timeout"),
			FailureCost: amount("failure"), Reserve: amount("reserve"), PerSuccess: 0.001 + amount("success"),
			RefundLast: rapid.Bool().Draw(r, "refund"), PerCall: amount("call"),
		}
		b, err := retry.NewBucket(budget)
		if err != nil {
			r.Skip(err)
		}
		outcomes := rapid.SliceOfN(rapid.SampledFrom([]any{200, 503, 429, errDial, context.DeadlineExceeded}), 1, 40).Draw(r, "outcomes")
		least := min(b.Budget().Cost, b.Budget().ThrottledCost, b.Budget().TimeoutCost)
		given := budget.Capacity
		retries := 0
		p := instant
		p.MaxAttempts = 3
		for i := 0; i < len(outcomes); {
			given += budget.PerCall
			retry.Do(retry.Idempotent(context.Background()), p, func(context.Context) (int, error) {
				o := outcomes[min(i, len(outcomes)-1)]
				i++
				switch o := o.(type) {
				case error:
					return 0, o
				case int:
					if o != 200 {
						return 0, &retry.StatusError{StatusCode: o}
					}
				}
				given += max(budget.PerSuccess, b.Budget().Cost, b.Budget().ThrottledCost, b.Budget().TimeoutCost)
				return 0, nil
			}, retry.WithBucket(b), retry.WithHook(func(_ context.Context, a retry.Attempt) {
				if a.Retrying {
					retries++
				}
			}))
			if got := b.Tokens(); got < 0 || got > budget.Capacity+1e-9 {
				r.Fatalf("%v tokens of %v", got, budget.Capacity)
			}
		}
		if float64(retries)*least > given+1e-6 {
			r.Fatalf("%d retries at %v or more were paid from %v", retries, least, given)
		}
	})
}

func TestBudgetIsSharedByConcurrentCalls(t *testing.T) {
	var mu sync.Mutex
	attempts := 0
	rt := roundTripper(func(*http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		attempts++
		return nil, errReset
	})
	c := newClient(t, instant, rt)
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			for range 20 {
				req, _ := http.NewRequest("GET", "http://server/", nil)
				c.Do(req)
			}
		})
	}
	wg.Wait()
	if attempts != 400+100 {
		t.Errorf("%d attempts of 400 calls with 100 tokens", attempts)
	}
}

// Successes, calls and retries at the same time: nothing is lost, and nothing
// is given twice, also where the bucket becomes full and stays so.
func TestBudgetIsExactUnderConcurrency(t *testing.T) {
	for _, budget := range []retry.Budget{
		{Capacity: 1000, Cost: 1, PerSuccess: 0.5, PerSecond: 0.001}, // which is nothing in the time that passes here
		{Capacity: 1000, Cost: 1, PerCall: 0.25},
		{Capacity: 1000, Cost: 0.5, FailureCost: 0.5, RefundLast: true, PerSuccess: 0.5},
	} {
		synctest.Test(t, func(t *testing.T) {
			b := bucket(t, budget)
			// A call succeeds, after one failure where that is asked for.
			call := func(fails bool) {
				_, err := retry.Do(retry.Idempotent(context.Background()), instant, func(context.Context) (int, error) {
					if fails {
						fails = false
						return 0, &retry.StatusError{StatusCode: 503}
					}
					return 0, nil
				}, retry.WithBucket(b))
				if err != nil {
					t.Error(err)
				}
			}
			many := func(calls int, fails bool) {
				var wg sync.WaitGroup
				for range 8 {
					wg.Go(func() {
						for range calls {
							call(fails)
						}
					})
				}
				wg.Wait()
			}
			// Between empty and full all that is counted is kept: each call takes
			// one for its failure and gives what the budget says.
			for range 100 {
				call(true)
			}
			before := b.Tokens()
			if before >= budget.Capacity {
				t.Fatalf("%v: nothing is missing after 100 failures", b.Budget())
			}
			gives := budget.PerSuccess + budget.PerCall
			var wg sync.WaitGroup
			wg.Go(func() { many(5, true) })
			wg.Go(func() { many(5, false) })
			wg.Wait()
			if got, want := b.Tokens(), before+80*gives-40; got != want {
				t.Errorf("%v: %v tokens, want %v", b.Budget(), got, want)
			}
			// What is given at the brim runs over, and never more than that.
			many(1000, false)
			if got := b.Tokens(); got != budget.Capacity {
				t.Errorf("%v: %v tokens after thousands of successes", b.Budget(), got)
			}
			for range 3 {
				many(5, true)
				many(100, false)
			}
			if got := b.Tokens(); got != budget.Capacity {
				t.Errorf("%v: %v tokens after going to and from the brim", b.Budget(), got)
			}
		})
	}
}

func TestBudgetString(t *testing.T) {
	for _, tt := range []struct {
		b    retry.Budget
		want string
	}{
		{retry.Budget{}, "budget of 100, 1 a retry, 0.1 back a success"},
		{retry.GRPCBudget(), "budget of 10, 1 a failure, retries above 5, 0.1 back a success"},
		{retry.FinagleBudget(), "budget of 100, 1 a retry, 0.2 back a call, 10 back a second"},
		{retry.AWSBudget(), "budget of 500, 14 a retry (5 when throttled), 1 back a success (the last retry's cost after retries)"},
		{retry.NoBudget(), "no budget"},
	} {
		if got := tt.b.String(); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
	}
	if s := (retry.Policy{Budget: retry.NoBudget()}).String(); !strings.Contains(s, "no budget") {
		t.Error(s)
	}
}
