package server

import (
	"net/http"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

// stored is one key of the idempotency store.
type stored struct {
	fingerprint string
	done        bool
	reply       faults.Reply
}

// admit decides what an attempt would get from a server that is well: the work done, a stored reply, or a
// refusal. It sets x.Reply and x.Commit; the function that it returns must be called when the fault is
// over, and gives up a key that was taken and not used.
//
// Behaviour by draft-ietf-httpapi-idempotency-key-header: a stored reply for a repeat (2.6), 409 while
// the first is at work, 422 for another payload, 400 where a key is required and missing (2.7).
func (s *Server) admit(c *call, a *history.Attempt, x *faults.Exchange, body []byte) (settle func()) {
	nothing := func() {}
	refuse := func(status int, why string) func() {
		x.Reply = jsonReply(status, reply{Call: c.rec.ID, Error: why})
		x.Commit = nothing
		return nothing
	}
	if !s.authorized(x.R) {
		settle = refuse(http.StatusUnauthorized, "the token is not valid")
		x.Reply.Header.Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		return settle
	}
	x.Reply = c.goodReply(0)
	if history.SafeMethod(x.R.Method) {
		x.Commit = nothing
		return nothing
	}
	keyed := s.cfg.Keys != scenarios.Ignore && a.Key != ""
	if s.cfg.Keys == scenarios.Require && a.Key == "" && !history.IdempotentMethod(x.R.Method) {
		return refuse(http.StatusBadRequest, "this operation needs an Idempotency-Key")
	}
	if !keyed {
		done := false // Commit may be called twice; an attempt has one effect at most
		x.Commit = func() {
			if !done {
				done = true
				x.Reply = s.commit(c, a, x)
			}
		}
		return nothing
	}
	fingerprint := x.R.Method + " " + x.R.URL.Path + " " + Hash(body)
	s.mu.Lock()
	e := s.keys[a.Key]
	switch {
	case e == nil:
		e = &stored{fingerprint: fingerprint}
		s.keys[a.Key] = e
	case e.fingerprint != fingerprint:
		s.mu.Unlock()
		return refuse(http.StatusUnprocessableEntity, "this Idempotency-Key was used with another payload")
	case !e.done:
		a.InFlight = true
		s.mu.Unlock()
		return refuse(http.StatusConflict, "a request with this Idempotency-Key is at work")
	default:
		a.Replayed = true
		x.Reply = e.reply
		x.Commit = nothing
		s.mu.Unlock()
		return nothing
	}
	s.mu.Unlock()
	x.Commit = func() {
		s.mu.Lock()
		done := e.done
		s.mu.Unlock()
		if done {
			return
		}
		r := s.commit(c, a, x)
		s.mu.Lock()
		e.done, e.reply = true, r
		s.mu.Unlock()
		x.Reply = r
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !e.done {
			delete(s.keys, a.Key)
		}
	}
}

// commit makes one effect real and returns the reply that tells of it.
func (s *Server) commit(c *call, a *history.Attempt, x *faults.Exchange) faults.Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.ledger) + 1
	e := history.Effect{
		N: n, At: s.now(), Call: c.rec.ID, Attempt: a.N, Method: x.R.Method, Resource: c.rec.Resource,
		Key: a.Key, Conn: a.Conn, Late: x.R.Context().Err() != nil || a.Phase == string(faults.CommitLate),
	}
	e.Value = a.BodyHash // received notes it before anything can commit
	s.ledger = append(s.ledger, e)
	a.Effect = n
	return c.goodReply(n)
}
