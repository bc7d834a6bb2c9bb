package controls

import (
	"context"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
)

// policy is the loop's parts. A defect replaces one of them.
type policy struct {
	declared history.Declared // what its author says of it; the loop does not look at it
	attempts int              // per call, the first included
	timeout  time.Duration    // of one attempt
	budget   float64          // retries that an instance may make; a call that succeeds gives back a tenth of one

	// prepare gives the request of attempt n its last touch.
	prepare func(req *http.Request, n int)
	// decode judges the whole body of a good status.
	decode func(call harness.Call, body []byte) error
	// release is done with a response that is not wanted.
	release func(resp *http.Response)
	// repeat says whether the call may be tried again after f.
	repeat func(call harness.Call, f *failure) bool
	// random makes the call's source of jitter.
	random func(seed uint64, call harness.Call) *rand.Rand
	// backoff is the loop's own wait before retry k, from 1; last is the one before it, at first 0.
	backoff func(r *rand.Rand, k int, last time.Duration) time.Duration
	// asked reads the Retry-After of a response; ok is false where it asks for nothing.
	asked func(lines []string, now time.Time) (d time.Duration, ok bool)
	// combine makes one wait of what the server asked for and the loop's own.
	combine func(asked, own time.Duration) time.Duration
	// patience is the longest Retry-After that is waited for.
	patience time.Duration
	// fits says whether there is time for the wait.
	fits func(ctx context.Context, wait time.Duration) bool
	// sleep waits; its error ends the call.
	sleep func(ctx context.Context, wait time.Duration) error
	// report has the last word on what the application is told.
	report func(call harness.Call, f *failure, o harness.Outcome) harness.Outcome
	// around, where there is one, wraps the whole client.
	around func(next harness.Caller) harness.Caller
}

const (
	base      = time.Second
	longest   = 30 * time.Second
	leastWait = 5 * time.Millisecond // so that full jitter is never no wait at all
)

// good is the policy without a defect.
func good() policy {
	return policy{
		declared: history.Declared{
			MaxAttempts: 4, Jitter: history.JitterFull, BaseDelay: base, Multiplier: 2, MaxDelay: longest,
			MaxRetryAfter: 5 * time.Minute, CanBeTold: true,
		},
		attempts: 4,
		timeout:  2 * time.Second,
		budget:   300,
		prepare:  func(*http.Request, int) {},
		decode:   harness.DecodeReply,
		release:  drain,
		repeat:   repeatable,
		random:   seeded,
		backoff:  fullJitter,
		asked:    retryAfter,
		combine:  func(asked, own time.Duration) time.Duration { return asked + own },
		patience: 5 * time.Minute,
		fits:     beforeDeadline,
		sleep:    sleep,
		report:   func(_ harness.Call, _ *failure, o harness.Outcome) harness.Outcome { return o },
	}
}

// drain reads what is left, so that the connection can be used again, and closes.
func drain(resp *http.Response) {
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10)
	_ = resp.Body.Close()
}

// repeatable says yes where the attempt cannot have had an effect, or where the call may happen twice.
func repeatable(call harness.Call, f *failure) bool {
	switch f.kind {
	case transport:
		return !f.hopeless && (!f.sent || mayHappenTwice(call))
	case status:
		switch f.status {
		case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
			return true // refused before any work
		case http.StatusConflict:
			return f.rival != nil
		case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
			return false
		}
		return f.status >= 500 && mayHappenTwice(call)
	}
	return false
}

// mayHappenTwice goes by RFC 9110 §9.2.2: an idempotent method, the application's word, or a key that the server
// is known to honour.
func mayHappenTwice(call harness.Call) bool {
	if call.Idempotent {
		return true
	}
	switch call.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions, http.MethodTrace, http.MethodPut, http.MethodDelete, "QUERY":
		return true
	}
	return call.Key != "" && call.KeyHonoured
}

// seeded gives each call of each instance draws of its own, whatever order calls come in.
func seeded(seed uint64, call harness.Call) *rand.Rand {
	h := fnv.New64a()
	_, _ = io.WriteString(h, call.ID)
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// delay is the wait before retry k before jitter: 1 s, 2 s, 4 s … 30 s.
func delay(k int) time.Duration {
	d := base
	for range k - 1 {
		if d >= longest/2 {
			return longest
		}
		d *= 2
	}
	return d
}

// fullJitter is uniform over the whole delay.
func fullJitter(r *rand.Rand, k int, _ time.Duration) time.Duration {
	return between(r, leastWait, delay(k))
}

func between(r *rand.Rand, low, high time.Duration) time.Duration {
	return low + time.Duration(r.Int64N(int64(high-low)+1))
}

func beforeDeadline(ctx context.Context, wait time.Duration) bool {
	deadline, ok := ctx.Deadline()
	return !ok || time.Until(deadline) > wait
}

func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
