package server

import (
	"net/http"
	"strings"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

const keyField = "Idempotency-Key"

// admit decides what an attempt would get from a server that is well: the work done, a stored reply, or a
// refusal. It sets x.Reply, x.Commit and x.Store; the function that it returns must be called when the fault
// is over, and gives up a key that was taken and not used. An empty field is no key.
//
// What is stored is the application's outcome: the reply of the commit, when it is made, whatever a fault
// then does to the answer on its way; or a fault's status that says that it is the application's own.
func (s *Server) admit(c *call, a *history.Attempt, x *faults.Exchange, body []byte) (settle func()) {
	nothing := func() {}
	refuse := func(why refusal) func() {
		x.Reply = s.profile.refuse(c.rec.ID, why)
		x.Commit = nothing
		return nothing
	}
	if !s.authorized(x.R) {
		x.Reply = jsonReply(http.StatusUnauthorized, reply{Call: c.rec.ID, Error: "the token is not valid"})
		x.Reply.Header.Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		x.Commit = nothing
		return nothing
	}
	x.Reply = c.goodReply(s.goodStatus(x.R.Method), 0)
	if history.SafeMethod(x.R.Method) {
		x.Commit = nothing
		x.Store = func(faults.Reply) {}
		return nothing
	}
	lines := x.R.Header.Values(keyField)
	keyed := s.cfg.Keys != scenarios.Ignore && strings.Join(lines, "") != "" && s.profile.takes(x.R.Method)
	if s.cfg.Keys == scenarios.Require && !keyed && !history.IdempotentMethod(x.R.Method) && s.profile.takes(x.R.Method) {
		return refuse(keyMissing)
	}
	if !keyed {
		done := false // Commit may be called twice; an attempt has one effect at most
		x.Commit = func() {
			if !done {
				done = true
				x.Reply = s.commit(c, a, x)
			}
		}
		x.Store = func(faults.Reply) {}
		return nothing
	}
	key, err := s.profile.key(lines)
	if err != nil {
		return refuse(keyInvalid)
	}
	e, why := s.claim(a, keyID{s.caller(x.R), key}, x.R.Method+" "+x.R.URL.Path+" "+Hash(body))
	switch {
	case why != welcome:
		return refuse(why)
	case a.Replayed:
		x.Reply = s.replay(e.reply)
		x.Commit = nothing
		return nothing
	}
	x.Commit = func() {
		if s.outcomeKnown(e) {
			return
		}
		x.Reply = s.commit(c, a, x)
		s.store(e, x.Reply)
	}
	x.Store = func(r faults.Reply) {
		s.store(e, r)
		s.mu.Lock()
		a.Stored = true
		s.mu.Unlock()
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.keys.giveUp(e)
	}
}

// claim looks a key up, and takes it where it is new. It notes on the attempt what came of it, and returns
// the entry, or why the store turns the attempt down.
func (s *Server) claim(a *history.Attempt, id keyID, fingerprint string) (*stored, refusal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, isNew := s.keys.take(id, fingerprint, s.now())
	switch {
	case isNew:
	case e.fingerprint != fingerprint:
		return e, otherPayload
	case !e.done:
		a.InFlight = true
		return e, inFlight
	default:
		a.Replayed = true
	}
	return e, welcome
}

func (s *Server) outcomeKnown(e *stored) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return e.done
}

func (s *Server) store(e *stored, r faults.Reply) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys.finish(e, r, s.now())
}

// replay is a stored reply as it goes out again.
func (s *Server) replay(r faults.Reply) faults.Reply {
	if s.profile.marks == nil {
		return r
	}
	r.Header = r.Header.Clone()
	if r.Header == nil {
		r.Header = http.Header{}
	}
	for k, v := range s.profile.marks {
		r.Header[k] = v
	}
	return r
}

// caller is who sends a request, where keys are kept for each caller apart.
func (s *Server) caller(r *http.Request) string {
	if !s.profile.scoped {
		return ""
	}
	return strings.Join(r.Header.Values("Authorization"), "\x00")
}

// goodStatus is the status of a request that was carried out.
func (s *Server) goodStatus(method string) int {
	if method == http.MethodPost {
		return s.profile.created
	}
	return http.StatusOK
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
	return c.goodReply(s.goodStatus(x.R.Method), n)
}
