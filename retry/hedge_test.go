package retry_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrychaos/retrychaos/retry"
)

// A slow transport answers request n after delays[n], unless it is cancelled.
type slow struct {
	mu        sync.Mutex
	delays    []time.Duration
	statuses  []int
	calls     int
	cancelled int
	bodies    []*closeRecorder
}

func (s *slow) RoundTrip(req *http.Request) (*http.Response, error) {
	s.mu.Lock()
	n := s.calls
	s.calls++
	s.mu.Unlock()
	select {
	case <-time.After(s.delays[min(n, len(s.delays)-1)]):
	case <-req.Context().Done():
		s.mu.Lock()
		s.cancelled++
		s.mu.Unlock()
		return nil, req.Context().Err()
	}
	status := 200
	if n < len(s.statuses) {
		status = s.statuses[n]
	}
	resp := response(status)
	body := &closeRecorder{Reader: strings.NewReader("body")}
	resp.Body = body
	s.mu.Lock()
	s.bodies = append(s.bodies, body)
	s.mu.Unlock()
	return resp, nil
}

func TestHedge(t *testing.T) {
	const ms = time.Millisecond
	for _, tt := range []struct {
		name      string
		method    string
		delays    []time.Duration
		statuses  []int
		policy    retry.Policy
		calls     int
		cancelled int
		took      time.Duration
		tokens    float64
		attempts  int
		status    int
	}{
		{"fast", "GET", []time.Duration{50 * ms}, nil, retry.Policy{}, 1, 0, 50 * ms, 100, 1, 200},
		{"second wins", "GET", []time.Duration{time.Hour, 20 * ms}, nil, retry.Policy{AttemptTimeout: retry.NoTimeout}, 2, 1, 120 * ms, 99.1, 2, 200},
		{"first wins", "GET", []time.Duration{150 * ms, time.Hour}, nil, retry.Policy{AttemptTimeout: retry.NoTimeout}, 2, 1, 150 * ms, 99.1, 2, 200},
		{"404 wins", "GET", []time.Duration{150 * ms, time.Hour}, []int{404}, retry.Policy{AttemptTimeout: retry.NoTimeout}, 2, 1, 150 * ms, 99, 2, 404},
		{"second fails first", "GET", []time.Duration{200 * ms, 20 * ms}, []int{200, 503}, retry.Policy{}, 2, 0, 200 * ms, 99.1, 2, 200},
		{"both fail", "GET", []time.Duration{200 * ms, 20 * ms}, []int{503, 503}, retry.Policy{MaxAttempts: 2}, 2, 0, 200 * ms, 99, 2, 503},
		{"both fail, then a retry", "GET", []time.Duration{200 * ms, 20 * ms, 0}, []int{503, 503}, retry.Policy{MaxAttempts: 3}, 3, 0, 1200 * ms, 98.1, 3, 200},
		{"PUT", "PUT", []time.Duration{150 * ms}, nil, retry.Policy{}, 1, 0, 150 * ms, 100, 1, 200},
		{"POST", "POST", []time.Duration{150 * ms}, nil, retry.Policy{}, 1, 0, 150 * ms, 100, 1, 200},
		{"one attempt", "GET", []time.Duration{150 * ms}, nil, retry.Policy{MaxAttempts: 1}, 1, 0, 150 * ms, 100, 1, 200},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &slow{delays: tt.delays, statuses: tt.statuses}
				b := bucket(t, retry.DefaultBudget())
				p := tt.policy
				p.HedgeDelay = 100 * ms
				p.Jitter = retry.NoJitter
				attempts := 0
				c := newClient(t, p, s, retry.WithBucket(b), retry.WithHook(func(context.Context, retry.Attempt) { attempts++ }))
				start := time.Now()
				resp, err := c.Do(request(t, t.Context(), tt.method, "http://server/", nil))
				if err != nil {
					t.Fatal(err)
				}
				took := time.Since(start)
				resp.Body.Close()
				synctest.Wait() // for the loser
				if resp.StatusCode != tt.status || s.calls != tt.calls || s.cancelled != tt.cancelled || took != tt.took || b.Tokens() != tt.tokens || attempts != tt.attempts {
					t.Errorf("status %d, %d requests, %d cancelled, took %v, %v tokens, %d attempts", resp.StatusCode, s.calls, s.cancelled, took, b.Tokens(), attempts)
				}
				for i, b := range s.bodies {
					if !b.closed {
						t.Errorf("body %d of %d is left open", i+1, len(s.bodies))
					}
				}
			})
		})
	}
}

// A response that comes just as the other has won is closed.
func TestHedgedResponseThatComesTooLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bodies := make(chan *closeRecorder, 2)
		n := atomic.Int32{}
		rt := roundTripper(func(*http.Request) (*http.Response, error) {
			if n.Add(1) == 1 {
				time.Sleep(time.Second) // heeds no context
			}
			resp := response(200)
			body := &closeRecorder{Reader: strings.NewReader("body")}
			resp.Body = body
			bodies <- body
			return resp, nil
		})
		c := newClient(t, retry.Policy{HedgeDelay: 100 * time.Millisecond}, rt)
		resp, err := c.Do(request(t, t.Context(), "GET", "http://server/", nil))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		time.Sleep(2 * time.Second)
		synctest.Wait()
		for range 2 {
			if b := <-bodies; !b.closed {
				t.Error("a body is left open")
			}
		}
	})
}

// Without tokens there is no hedge, and the first attempt goes on.
func TestHedgeWithoutBudget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bucket(t, retry.Budget{Capacity: 1, Cost: 1, PerSuccess: 0.1})
		s := &slow{delays: []time.Duration{150 * time.Millisecond}}
		c := newClient(t, retry.Policy{HedgeDelay: 100 * time.Millisecond}, s, retry.WithBucket(b))
		for want := 2; want <= 3; want++ {
			if e := call(t, c, t.Context(), "GET"); e != nil || s.calls != want {
				t.Errorf("%d requests, want %d: %v", s.calls, want, e)
			}
		}
	})
}
