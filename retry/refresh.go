package retry

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// WithTokenRefresh makes refresh the answer to a 401: it is asked for a new
// token, and the request is sent once more with it, as
// "Authorization: Bearer <token>", body and all. From then on the token stands
// for the Authorization that it has replaced, in every call of this client.
//
// Calls that carry the same Authorization share one refresh. Each call refreshes
// once: a 401 to the new token comes back as it is. When refresh fails, or the
// body cannot be sent again, the 401 comes back at once, and [Explain] gives a
// [*TokenError], or a [*BodyError]. The attempt with the old token is listed in
// the attempts, but is no retry: it takes nothing from MaxAttempts and the
// budget, and any method is sent again, because a 401 says that nothing was
// done.
//
// The context that refresh gets has the values of one of the calls that wait,
// and ends when none of them waits any more, or after AttemptTimeout. A request
// that refresh itself makes with that context is never refreshed.
func WithTokenRefresh(refresh func(ctx context.Context) (token string, err error)) Option {
	return func(o *options) { o.refresh = refresh }
}

// A TokenError says that there was no new token after a 401.
type TokenError struct {
	Err error // of the refresh
}

func (e *TokenError) Error() string { return "refreshing the token: " + e.Err.Error() }

// Unwrap returns the refresh's own error.
func (e *TokenError) Unwrap() error { return e.Err }

// tokens holds the tokens that stand for the Authorization of the callers. It is
// safe for concurrent use.
type tokens struct {
	refresh func(context.Context) (string, error)
	timeout time.Duration

	mu sync.Mutex
	by map[string]*token // by what the caller has set, "" for nothing
}

type token struct {
	value  string // the whole Authorization, or "" before the first refresh
	flight *refreshing
}

// A refreshing is a refresh under way.
type refreshing struct {
	done    chan struct{}
	cancel  context.CancelFunc
	waiting int // calls; guarded by tokens.mu

	value string // valid after done
	err   error
}

// maxTokensHeld bounds the memory for callers that change their Authorization.
const maxTokensHeld = 64

// authorization returns what to send in place of what the caller has set.
func (s *tokens) authorization(set string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.by[set]; t != nil && t.value != "" {
		return t.value
	}
	return set
}

// renew returns a new Authorization for the one that the caller has set; sent
// is the one that was refused.
func (s *tokens) renew(ctx context.Context, set, sent string) (string, error) {
	s.mu.Lock()
	t := s.by[set]
	if t == nil {
		t = s.add(set)
	}
	if t.value != "" && t.value != sent {
		defer s.mu.Unlock()
		return t.value, nil // another call has got one meanwhile
	}
	f := t.flight
	if f == nil {
		f = s.start(ctx, t)
	}
	f.waiting++
	s.mu.Unlock()

	select {
	case <-f.done:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	f.waiting--
	if ctx.Err() != nil {
		if f.waiting == 0 {
			f.cancel()
			if t.flight == f {
				t.flight = nil // whoever comes now needs one that is not cancelled
			}
		}
		return "", context.Cause(ctx)
	}
	return f.value, f.err
}

// add makes a place for a token. s.mu is held.
func (s *tokens) add(set string) *token {
	for old, t := range s.by {
		if len(s.by) < maxTokensHeld {
			break
		}
		if t.flight == nil {
			delete(s.by, old)
		}
	}
	t := new(token)
	s.by[set] = t
	return t
}

// start begins a refresh. s.mu is held.
func (s *tokens) start(ctx context.Context, t *token) *refreshing {
	ctx = context.WithValue(context.WithoutCancel(ctx), refreshKey{}, s)
	f := &refreshing{done: make(chan struct{})}
	if s.timeout != NoTimeout {
		ctx, f.cancel = context.WithTimeoutCause(ctx, s.timeout, &TimeoutError{"token refresh", s.timeout})
	} else {
		ctx, f.cancel = context.WithCancel(ctx)
	}
	t.flight = f
	go func() {
		defer f.cancel()
		value, err := s.refresh(ctx)
		if err == nil && value == "" {
			err = errors.New("the new token is empty")
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if f.err = err; err == nil {
			f.value = "Bearer " + value
			t.value = f.value
		}
		if t.flight == f {
			t.flight = nil
		}
		close(f.done)
	}()
	return f
}

type refreshKey struct{}

// renews reports whether a response with this status is answered with a new
// token.
func (c *call) renews(status int) bool {
	if status != http.StatusUnauthorized || c.tokens == nil || c.req == nil || c.record().renewed {
		return false
	}
	// The refresh itself must not wait for the refresh.
	return c.ctx.Value(refreshKey{}) != c.tokens
}

// renew gets a new token after the attempt t, and reports whether the call goes
// on with it.
func (c *call) renew(t *try) bool {
	f := c.failures
	f.renewed = true
	c.spent-- // this attempt is not one of those that the policy counts
	if cause := c.bodies.replayable(); cause != nil {
		f.stop = &BodyError{Err: f.last, Cause: cause}
		f.reason = "the request body cannot be sent again with a new token"
		return false
	}
	set := c.req.Header.Get("Authorization")
	value, err := c.tokens.renew(c.ctx, set, t.authorization)
	switch {
	case c.ctx.Err() != nil:
		f.reason = "the call's context has ended"
		return false
	case err != nil:
		f.stop = &TokenError{err}
		f.reason = fmt.Sprintf("401, and no new token: %v", err)
		return false
	}
	f.token = value
	return true
}
