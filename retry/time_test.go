package retry_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrychaos/retrychaos/retry"
)

// gaps returns the waits between the attempts that a saw.
func (a *answers) gaps() (gaps []time.Duration) {
	for i := 1; i < len(a.at); i++ {
		gaps = append(gaps, a.at[i].Sub(a.at[i-1]))
	}
	return gaps
}

func TestWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{outcomes: []any{503}}
		start := time.Now()
		resp, err := newClient(t, retry.Policy{Jitter: retry.NoJitter, MaxAttempts: 7, MaxDelay: 9 * time.Second}, a).
			Do(request(t, t.Context(), "GET", "http://server/", nil))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		want := []time.Duration{1, 2, 4, 8, 9, 9}
		sum := time.Duration(0)
		for i, g := range a.gaps() {
			if g != want[i]*time.Second {
				t.Errorf("gap %d is %v, want %d s", i, g, want[i])
			}
			sum += g
		}
		if total := time.Since(start); total != sum {
			t.Errorf("%v of which %v are gaps: it slept after the last attempt", total, sum)
		}
	})
}

func TestRetryAfterIsAFloor(t *testing.T) {
	for _, tt := range []struct {
		status     int
		header     []string
		policy     retry.Policy
		least, max time.Duration
	}{
		{429, []string{"Retry-After", "7"}, retry.Policy{}, 7 * time.Second, 8 * time.Second},
		{503, []string{"Retry-After", "7"}, retry.Policy{}, 7 * time.Second, 8 * time.Second},
		{413, []string{"Retry-After", "7"}, retry.Policy{}, 7 * time.Second, 8 * time.Second},
		{429, []string{"Retry-After", "120"}, retry.Policy{}, 120 * time.Second, 121 * time.Second},
		{429, []string{"Retry-After", "7"}, retry.Policy{Jitter: retry.NoJitter}, 7 * time.Second, 7 * time.Second},
		{429, []string{"Retry-After", "7"}, retry.AdditivePreset(), 7 * time.Second, 7500 * time.Millisecond},
		{429, []string{"Retry-After", "7"}, retry.Policy{BaseDelay: time.Minute, MaxDelay: time.Hour, Jitter: retry.NoJitter}, time.Minute, time.Minute},
		{429, []string{"Retry-After", "0"}, retry.Policy{}, time.Millisecond, time.Second},
		{429, []string{"Retry-After", "-7"}, retry.Policy{}, time.Millisecond, time.Second},
		{429, []string{"Retry-After", "1", "Retry-After", "7"}, retry.Policy{}, time.Millisecond, time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &answers{outcomes: []any{response(tt.status, tt.header...), 200}}
			resp, err := newClient(t, tt.policy, a).Do(request(t, t.Context(), "GET", "http://server/", nil))
			if err != nil || resp.StatusCode != 200 {
				t.Fatal(resp, err)
			}
			resp.Body.Close()
			if g := a.gaps()[0]; g < tt.least || g > tt.max {
				t.Errorf("%d %q under %v: waited %v, want %v to %v", tt.status, tt.header, tt.policy, g, tt.least, tt.max)
			}
		})
	}
}

func TestTooLongRetryAfterGivesTheResponseBack(t *testing.T) {
	for _, tt := range []struct {
		header  string
		timeout time.Duration
		asked   time.Duration
	}{
		{"121", time.Hour, 121 * time.Second},
		{"30", 20 * time.Second, 30 * time.Second},
		{"99999999999999999999", time.Hour, 1<<63 - 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), tt.timeout)
			defer cancel()
			start := time.Now()
			a := &answers{outcomes: []any{response(429, "Retry-After", tt.header)}}
			resp, err := newClient(t, retry.Policy{}, a).Do(request(t, ctx, "GET", "http://server/", nil))
			if err != nil || a.calls != 1 || time.Since(start) != 0 {
				t.Fatal(err, a.calls, time.Since(start))
			}
			if b, err := io.ReadAll(resp.Body); string(b) != "body" || err != nil {
				t.Errorf("body %q, %v", b, err)
			}
			resp.Body.Close()
			if e := asType[*retry.RetryAfterError](t, retry.Explain(resp)); e.Wait != tt.asked {
				t.Errorf("%v", e)
			}
		})
	}
}

func TestNoSleepPastTheDeadline(t *testing.T) {
	for _, answer := range []any{503, io.EOF} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			start := time.Now()
			a := &answers{outcomes: []any{answer}}
			resp, err := newClient(t, retry.Policy{Jitter: retry.NoJitter}, a).Do(request(t, ctx, "GET", "http://server/", nil))
			if time.Since(start) != time.Second || a.calls != 2 {
				t.Errorf("%d attempts in %v", a.calls, time.Since(start))
			}
			if err == nil {
				resp.Body.Close()
				err = retry.Explain(resp)
			}
			asType[*retry.DeadlineError](t, err)
			if answer == io.EOF && !errors.Is(err, io.EOF) {
				t.Errorf("the last failure is lost: %v", err)
			}
		})
	}
}

func TestCancel(t *testing.T) {
	cause := errors.New("the user left")
	t.Run("in the sleep", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(300*time.Millisecond, func() { cancel(cause) })
			start := time.Now()
			a := &answers{outcomes: []any{503}}
			_, err := newClient(t, retry.Policy{Jitter: retry.NoJitter}, a).Do(request(t, ctx, "GET", "http://server/", nil))
			if time.Since(start) != 300*time.Millisecond || a.calls != 1 {
				t.Errorf("%d attempts in %v", a.calls, time.Since(start))
			}
			if s := asType[*retry.StatusError](t, err); s.StatusCode != 503 || !errors.Is(err, cause) {
				t.Errorf("%v", err)
			}
		})
	})
	t.Run("in flight", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(1300*time.Millisecond, func() { cancel(cause) })
			calls := 0
			rt := roundTripper(func(req *http.Request) (*http.Response, error) {
				if calls++; calls == 1 {
					return nil, errReset
				}
				<-req.Context().Done()
				return nil, req.Context().Err()
			})
			_, err := newClient(t, retry.Policy{Jitter: retry.NoJitter}, rt).Do(request(t, ctx, "GET", "http://server/", nil))
			if calls != 2 || !errors.Is(err, errReset) || !errors.Is(err, cause) {
				t.Errorf("%v after %d", err, calls)
			}
		})
	})
	t.Run("before", func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(cause)
		a := &answers{outcomes: []any{200}}
		body := &closeRecorder{Reader: strings.NewReader("x")}
		_, err := newClient(t, retry.Policy{}, a).Do(request(t, ctx, "POST", "http://server/", body))
		if a.calls != 0 || !errors.Is(err, cause) || !errors.Is(err, context.Canceled) || !body.closed {
			t.Errorf("%v after %d, body closed: %v", err, a.calls, body.closed)
		}
	})
}

type closeRecorder struct {
	io.Reader
	closed bool
}

func (c *closeRecorder) Close() error { c.closed = true; return nil }

func TestAttemptTimeout(t *testing.T) {
	hang := func(req *http.Request) (*http.Response, error) {
		<-req.Context().Done()
		return nil, context.Cause(req.Context())
	}
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		start := time.Now()
		rt := roundTripper(func(req *http.Request) (*http.Response, error) {
			at = append(at, time.Since(start))
			return hang(req)
		})
		c := newClient(t, retry.Policy{AttemptTimeout: 3 * time.Second, Jitter: retry.NoJitter, MaxAttempts: 3}, rt)
		_, err := c.Do(request(t, t.Context(), "GET", "http://server/", nil))
		if e := asType[*retry.TimeoutError](t, err); e.What != "attempt" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		if ne := asType[net.Error](t, err); !ne.Timeout() {
			t.Error("no Timeout")
		}
		if len(at) != 3 || at[1] != 4*time.Second || at[2] != 9*time.Second {
			t.Errorf("attempts at %v", at)
		}
		at = nil
		c.Do(request(t, t.Context(), "POST", "http://server/", nil))
		if len(at) != 1 {
			t.Errorf("a POST that timed out was sent %d times", len(at))
		}
	})
	// The caller's own deadline is the end.
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		calls := 0
		rt := roundTripper(func(req *http.Request) (*http.Response, error) { calls++; return hang(req) })
		start := time.Now()
		_, err := newClient(t, retry.Policy{}, rt).Do(request(t, ctx, "GET", "http://server/", nil))
		if calls != 1 || time.Since(start) != 2*time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v after %d and %v", err, calls, time.Since(start))
		}
	})
	// So is the policy's.
	synctest.Test(t, func(t *testing.T) {
		rt := roundTripper(hang)
		start := time.Now()
		_, err := newClient(t, retry.Policy{CallTimeout: 12 * time.Second, Jitter: retry.NoJitter}, rt).Do(request(t, t.Context(), "GET", "http://server/", nil))
		if e := asType[*retry.Error](t, err); time.Since(start) != 12*time.Second || len(e.Attempts) != 2 {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if e := asType[*retry.Error](t, err); e.Cause.(*retry.TimeoutError).What != "call" {
			t.Errorf("cause %v", e.Cause)
		}
	})
}

// The timeout of a wrapped http.Client is one attempt's.
func TestHTTPClientTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rawServer{answer: func(n int, req *http.Request, conn net.Conn) bool {
			if n == 1 {
				io.Copy(io.Discard, conn) // until the client leaves
				return false
			}
			return reply(req, conn)
		}}
		c, err := retry.NewClient(retry.Policy{Jitter: retry.NoJitter}, retry.WithHTTPClient(&http.Client{Transport: s.pipe(t), Timeout: time.Second}))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		resp, err := c.Do(request(t, t.Context(), "GET", "http://server/", nil))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if s.count() != 2 || time.Since(start) != 2*time.Second {
			t.Errorf("%d attempts in %v", s.count(), time.Since(start))
		}
	})
}

// Transports other than net/http's see it in the context.
func TestHTTPClientTimeoutIsInTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		rt := roundTripper(func(req *http.Request) (*http.Response, error) {
			if calls++; calls == 1 {
				<-req.Context().Done()
				return nil, req.Context().Err()
			}
			return response(200), nil
		})
		c, err := retry.NewClient(retry.Policy{Jitter: retry.NoJitter}, retry.WithHTTPClient(&http.Client{Transport: rt, Timeout: time.Second}))
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		resp, err := c.Do(request(t, t.Context(), "GET", "http://server/", nil))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if calls != 2 || time.Since(start) != 2*time.Second {
			t.Errorf("%d attempts in %v", calls, time.Since(start))
		}
	})
}

func TestConcurrentUse(t *testing.T) {
	rt := roundTripper(func(req *http.Request) (*http.Response, error) {
		return nil, errReset
	})
	p := instant
	p.Budget = retry.NoBudget()
	c := newClient(t, p, rt)
	done := make(chan int)
	for range 20 {
		go func() {
			n := 0
			for range 20 {
				req, _ := http.NewRequest("GET", "http://server/", nil)
				_, err := c.Do(req)
				if e, ok := errors.AsType[*retry.Error](err); ok {
					n += len(e.Attempts)
				}
			}
			done <- n
		}()
	}
	for range 20 {
		if n := <-done; n != 80 {
			t.Errorf("%d attempts in 20 calls", n)
		}
	}
}
