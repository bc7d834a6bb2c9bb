package retry_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrychaos/retrychaos/retry"
)

// A guarded server answers 200 to valid tokens, and 401 to others. It keeps the
// bodies that came with valid ones.
type guarded struct {
	mu      sync.Mutex
	valid   string
	refused int
	bodies  []string
}

func (g *guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		req.Body.Close()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if req.Header.Get("Authorization") != "Bearer "+g.valid {
		g.refused++
		return response(401, "WWW-Authenticate", `Bearer error="invalid_token"`), nil
	}
	g.bodies = append(g.bodies, string(body))
	return response(200), nil
}

func withToken(t *testing.T, ctx context.Context, method, token string, body io.Reader) *http.Request {
	req := request(t, ctx, method, "http://server/", body)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return req
}

func TestExpiredToken(t *testing.T) {
	for _, token := range []string{"old", ""} {
		synctest.Test(t, func(t *testing.T) {
			g := &guarded{valid: "new"}
			refreshes := 0
			b := bucket(t, retry.DefaultBudget())
			var attempts []retry.Attempt
			c := newClient(t, retry.Policy{MaxAttempts: 1}, g, retry.WithBucket(b),
				retry.WithTokenRefresh(func(context.Context) (string, error) { refreshes++; return "new", nil }),
				retry.WithHook(func(_ context.Context, a retry.Attempt) { attempts = append(attempts, a) }))
			// A POST that must not happen twice, under a policy without retries.
			req := withToken(t, t.Context(), "POST", token, strings.NewReader("amount=1"))
			resp, err := c.Do(req)
			if err != nil || resp.StatusCode != 200 {
				t.Fatalf("%v, %v", resp, err)
			}
			resp.Body.Close()
			if refreshes != 1 || g.refused != 1 || len(g.bodies) != 1 || g.bodies[0] != "amount=1" {
				t.Errorf("%d refreshes, %d refused, bodies %q", refreshes, g.refused, g.bodies)
			}
			if len(attempts) != 2 || attempts[0].Status != 401 || !attempts[0].Retrying || attempts[0].Wait != 0 || b.Tokens() != 100 {
				t.Errorf("%v, %v tokens", attempts, b.Tokens())
			}
			if got := req.Header.Get("Authorization"); got != "" && got != "Bearer old" {
				t.Errorf("the caller's request was changed: %q", got)
			}

			// The next call knows the new token at once.
			resp, err = c.Do(withToken(t, t.Context(), "GET", token, nil))
			if err != nil || resp.StatusCode != 200 || g.refused != 1 {
				t.Errorf("%v, %v, %d refused", resp, err, g.refused)
			}
			resp.Body.Close()
			// Another's token is left alone.
			resp, err = c.Do(withToken(t, t.Context(), "GET", "new", nil))
			if err != nil || resp.StatusCode != 200 || refreshes != 1 {
				t.Errorf("%v, %v", resp, err)
			}
			resp.Body.Close()
		})
	}
}

// The attempt that was refused is none of those that the policy allows.
func TestExpiredTokenIsNoRetry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{outcomes: []any{503, 401, 503, 200}}
		c := newClient(t, retry.Policy{MaxAttempts: 3}, a, retry.WithTokenRefresh(func(context.Context) (string, error) { return "new", nil }))
		if e := call(t, c, t.Context(), "GET"); e != nil || a.calls != 4 {
			t.Errorf("%d attempts: %v", a.calls, e)
		}
		a = &answers{outcomes: []any{503, 401, 503, 503, 200}}
		c = newClient(t, retry.Policy{MaxAttempts: 3}, a, retry.WithTokenRefresh(func(context.Context) (string, error) { return "new", nil }))
		if e := call(t, c, t.Context(), "GET"); e == nil || a.calls != 4 {
			t.Errorf("%d attempts: %v", a.calls, e)
		}
	})
}

func TestNewTokenIsRefusedToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &guarded{valid: "never"}
		refreshes := 0
		c := newClient(t, retry.Policy{}, g, retry.WithTokenRefresh(func(context.Context) (string, error) { refreshes++; return "new", nil }))
		e := call(t, c, t.Context(), "GET")
		if g.refused != 2 || refreshes != 1 || len(e.Attempts) != 2 || e.Stop != nil {
			t.Errorf("%d refused, %d refreshes, %v", g.refused, refreshes, e)
		}
	})
}

func TestRefreshFails(t *testing.T) {
	errNo := errors.New("the refresh token has expired, too")
	for _, tt := range []struct {
		name    string
		refresh func(context.Context) (string, error)
		want    error
	}{
		{"error", func(context.Context) (string, error) { return "", errNo }, errNo},
		{"empty", func(context.Context) (string, error) { return "", nil }, nil},
		{"hangs", func(ctx context.Context) (string, error) { <-ctx.Done(); return "", context.Cause(ctx) }, context.DeadlineExceeded},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := &guarded{valid: "new"}
				e := call(t, newClient(t, retry.Policy{}, g, retry.WithTokenRefresh(tt.refresh)), t.Context(), "GET")
				if g.refused != 1 || len(e.Attempts) != 1 {
					t.Errorf("%d refused, %v", g.refused, e)
				}
				asType[*retry.TokenError](t, e)
				asType[*retry.StatusError](t, e)
				if tt.want != nil && !errors.Is(e, tt.want) {
					t.Errorf("%v", e)
				}
			})
		})
	}
	t.Run("401 from the same client", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			g := &guarded{valid: "new"}
			var c *retry.Client
			c = newClient(t, retry.Policy{}, g, retry.WithTokenRefresh(func(ctx context.Context) (string, error) {
				resp, err := c.Do(request(t, ctx, "POST", "http://server/token", nil))
				if err != nil {
					return "", err
				}
				resp.Body.Close()
				return "", &retry.StatusError{StatusCode: resp.StatusCode}
			}))
			start := time.Now()
			e := call(t, c, t.Context(), "GET")
			if g.refused != 2 || time.Since(start) != 0 {
				t.Errorf("%d refused after %v: %v", g.refused, time.Since(start), e)
			}
			asType[*retry.TokenError](t, e)
		})
	})
	t.Run("no second body", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, retry.Policy{}, &guarded{valid: "new"},
				retry.WithTokenRefresh(func(context.Context) (string, error) { t.Error("refreshed in vain"); return "new", nil }))
			resp, err := c.Do(withToken(t, t.Context(), "POST", "old", stream{strings.NewReader("x")}))
			if err != nil || resp.StatusCode != 401 {
				t.Fatal(resp, err)
			}
			resp.Body.Close()
			asType[*retry.BodyError](t, retry.Explain(resp))
		})
	})
}

// Calls that are refused side by side share one refresh, whichever of them
// started it and whether or not that one still waits.
func TestRefreshIsShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &guarded{valid: "new"}
		var refreshes atomic.Int32
		c := newClient(t, retry.Policy{}, g, retry.WithTokenRefresh(func(ctx context.Context) (string, error) {
			refreshes.Add(1)
			select {
			case <-time.After(5 * time.Second):
				return "new", nil
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}))
		cause := errors.New("left")
		leader, leave := context.WithCancelCause(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() {
			start := time.Now()
			_, err := c.Do(withToken(t, leader, "GET", "old", nil))
			if err == nil {
				t.Error("the cancelled call succeeded")
			}
			if !errors.Is(err, cause) || time.Since(start) != time.Second {
				t.Errorf("the cancelled call: %v after %v", err, time.Since(start))
			}
		})
		for i := range 20 {
			wg.Go(func() {
				time.Sleep(time.Duration(i+1) * 100 * time.Millisecond)
				resp, err := c.Do(withToken(t, t.Context(), "GET", "old", nil))
				if err != nil || resp.StatusCode != 200 {
					t.Errorf("%v, %v", resp, err)
					return
				}
				resp.Body.Close()
			})
		}
		time.Sleep(time.Second)
		leave(cause)
		wg.Wait()
		if refreshes.Load() != 1 || g.refused != 21 {
			t.Errorf("%d refreshes, %d refused", refreshes.Load(), g.refused)
		}
	})
}

// A refresh for which no one waits any more is cancelled, and is not what the
// next call gets.
func TestAbandonedRefresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &guarded{valid: "new"}
		refreshes := 0
		c := newClient(t, retry.Policy{}, g, retry.WithTokenRefresh(func(ctx context.Context) (string, error) {
			if refreshes++; refreshes == 1 {
				<-ctx.Done()
				time.Sleep(time.Second) // slow to notice
				return "", ctx.Err()
			}
			return "new", nil
		}))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Do(withToken(t, ctx, "GET", "old", nil)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
		resp, err := c.Do(withToken(t, t.Context(), "GET", "old", nil))
		if err != nil || resp.StatusCode != 200 || refreshes != 2 {
			t.Fatalf("%v, %v after %d refreshes", resp, err, refreshes)
		}
		resp.Body.Close()
		time.Sleep(2 * time.Second) // the first returns only now
	})
}

// The refresh gets the connection that the 401 came on, be it the only one.
func TestRefreshOverTheOnlyConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rawServer{}
		s.answer = func(_ int, req *http.Request, conn net.Conn) bool {
			if req.URL.Path == "/token" || req.Header.Get("Authorization") == "Bearer new" {
				return reply(req, conn)
			}
			return write(conn, "HTTP/1.1 401 No\r\nContent-Length: 5000\r\n\r\n"+strings.Repeat("x", 5000))
		}
		tr := s.pipe(t)
		tr.MaxConnsPerHost = 1
		c := newClient(t, retry.Policy{}, tr, retry.WithTokenRefresh(func(ctx context.Context) (string, error) {
			resp, err := (&http.Client{Transport: tr}).Do(request(t, ctx, "POST", "http://server/token", nil))
			if err != nil {
				return "", err
			}
			defer resp.Body.Close()
			_, err = io.Copy(io.Discard, resp.Body)
			return "new", err
		}))
		start := time.Now()
		resp, err := c.Do(withToken(t, t.Context(), "GET", "old", nil))
		if err != nil || resp.StatusCode != 200 || time.Since(start) != 0 {
			t.Fatalf("%v, %v after %v", resp, err, time.Since(start))
		}
		resp.Body.Close()
	})
}

// A call that is refused after another has got a new token takes that one.
func TestLateRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &guarded{valid: "new"}
		refreshes := 0
		rt := roundTripper(func(req *http.Request) (*http.Response, error) {
			resp, err := g.RoundTrip(req)
			if req.URL.Path == "/slow" {
				time.Sleep(time.Second)
			}
			return resp, err
		})
		c := newClient(t, retry.Policy{}, rt, retry.WithTokenRefresh(func(context.Context) (string, error) { refreshes++; return "new", nil }))
		var wg sync.WaitGroup
		for _, path := range []string{"slow", "fast"} {
			wg.Go(func() {
				resp, err := c.Do(request(t, t.Context(), "GET", "http://server/"+path, nil))
				if err != nil || resp.StatusCode != 200 {
					t.Errorf("%s: %v, %v", path, resp, err)
					return
				}
				resp.Body.Close()
			})
			synctest.Wait() // the slow one has been refused, and does not know it yet
		}
		wg.Wait()
		if refreshes != 1 || g.refused != 2 {
			t.Errorf("%d refreshes, %d refused", refreshes, g.refused)
		}
	})
}
