package herd

import (
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/retry"
)

// layered is the bundled client below a loop that retries as well and does not know of it, as where a library and the
// application that uses it both retry: each of the loop's attempts is as many as the client makes.
func layered(name string, p retry.Policy) harness.Client {
	c := harness.Bundled(name, p)
	c.New = func(env harness.Env) (harness.Caller, error) {
		inner, err := retry.NewTransport(p, env.Transport, retry.WithRand(rand.NewPCG(env.Seed, 0)))
		if err != nil {
			return nil, err
		}
		random := rand.NewPCG(env.Seed, 1)
		return harness.RoundTripper(name, func(http.RoundTripper) http.RoundTripper {
			return &loop{inner, p.MaxAttempts, rand.New(&locked{src: random})}
		}).New(env)
	}
	return c
}

// loop retries a 503 and every error, after full jitter from 1 s.
type loop struct {
	next     http.RoundTripper
	attempts int
	random   *rand.Rand
}

func (l *loop) RoundTrip(req *http.Request) (*http.Response, error) {
	for k := 1; ; k++ {
		resp, err := l.next.RoundTrip(req)
		if k >= l.attempts || err == nil && resp.StatusCode != http.StatusServiceUnavailable {
			return resp, err
		}
		if err == nil {
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
		}
		timer := time.NewTimer(time.Duration(l.random.Int64N(int64(time.Second) << (k - 1))))
		select {
		case <-timer.C:
		case <-req.Context().Done():
			timer.Stop()
			return nil, req.Context().Err()
		}
	}
}

// locked is a source for many goroutines.
type locked struct {
	mu  sync.Mutex
	src rand.Source
}

func (l *locked) Uint64() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.src.Uint64()
}
