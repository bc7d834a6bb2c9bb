package server

import (
	"net/http"
	"strings"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

const keyField = "Idempotency-Key"

// A standing is what the server, where it is well, makes of an attempt.
type standing int

const (
	outside   standing = iota // nothing: it is not admitted yet, or refused, or answered from the store
	harmless                  // it is carried out, and has no effect
	unkeyed                   // it has an effect, and no key that counts
	keyed                     // it has an effect, which its key is for
	committed                 // its effect has happened
)

// admit decides what the attempt would get from a server that is well: the work done, a stored reply, or a
// refusal. An empty field is no key. settle must be called when the fault is over.
//
// What is stored is the application's outcome: the reply of the commit, when it is made, whatever a fault
// then does to the answer on its way; or a fault's status that says that it is the application's own.
func (h *handling) admit() {
	s, c, x := h.server, h.call, &h.exchange
	if !s.authorized(x.R) {
		x.Reply = jsonReply(http.StatusUnauthorized, reply{Call: c.rec.ID, Error: "the token is not valid"})
		x.Reply.Header.Set("WWW-Authenticate", `Bearer error="invalid_token"`)
		return
	}
	if history.SafeMethod(x.R.Method) {
		x.Reply = c.goodReply(s.goodStatus(x.R.Method), 0)
		h.standing = harmless
		return
	}
	var lines []string
	if h.attempt.Key != "" && s.cfg.Keys != scenarios.Ignore && s.profile.takes(x.R.Method) {
		lines = x.R.Header[keyField]
	}
	withKey := strings.Join(lines, "") != ""
	if s.cfg.Keys == scenarios.Require && !withKey && !history.IdempotentMethod(x.R.Method) && s.profile.takes(x.R.Method) {
		x.Reply = s.profile.refuse(c.rec.ID, keyMissing)
		return
	}
	if h.fault != nil {
		// Faults may send it without the commit, which makes a reply of its own.
		x.Reply = c.goodReply(s.goodStatus(x.R.Method), 0)
	}
	if !withKey {
		h.standing = unkeyed
		return
	}
	key, err := s.profile.key(lines)
	if err != nil {
		x.Reply = s.profile.refuse(c.rec.ID, keyInvalid)
		return
	}
	h.claim(keyID{s.caller(x.R), key})
}

// claim looks a key up, and takes it where it is new. It notes on the attempt what came of it.
func (h *handling) claim(id keyID) {
	s, a, x := h.server, h.attempt, &h.exchange
	fingerprint := x.R.Method + " " + x.R.URL.Path + " " + a.BodyHash
	s.mu.Lock()
	defer s.mu.Unlock()
	e, isNew := s.keys.take(id, fingerprint, s.now())
	switch {
	case isNew:
		h.standing, h.entry = keyed, e
	case e.fingerprint != fingerprint:
		x.Reply = s.profile.refuse(h.call.rec.ID, otherPayload)
	case !e.done:
		a.InFlight = true
		x.Reply = s.profile.refuse(h.call.rec.ID, inFlight)
	default:
		a.Replayed = true
		x.Reply = s.replay(e.reply)
	}
}

// Commit makes the effect of the attempt real, once, where it is to have one, and the reply that tells of it. A
// key that has its outcome already has no further effect.
func (h *handling) Commit() {
	if h.standing != unkeyed && h.standing != keyed {
		return
	}
	s, c, a, x := h.server, h.call, h.attempt, &h.exchange
	late := x.R.Context().Err() != nil || a.Phase == string(faults.CommitLate)
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.given {
		// The fault had nothing to damage, and so a good answer comes of it after all.
		h.given = false
		if e, isNew := s.keys.take(h.entry.id, h.entry.fingerprint, s.now()); isNew {
			h.entry = e
		}
	}
	if h.entry != nil && h.entry.done {
		return
	}
	h.standing = committed
	now, n := s.now(), len(s.ledger)+1
	s.ledger = append(s.ledger, history.Effect{
		N: n, At: now, Call: c.rec.ID, Attempt: a.N, Method: x.R.Method, Resource: c.rec.Resource,
		Key: a.Key, Conn: a.Conn, Late: late,
		Value: a.BodyHash, // received notes it before anything can commit
	})
	a.Effect = n
	x.Reply = c.goodReply(s.goodStatus(x.R.Method), n)
	if h.entry != nil {
		s.keys.finish(h.entry, x.Reply, now)
	}
}

// Store keeps r with the key, where the attempt has one, as the outcome of the request.
func (h *handling) Store(r faults.Reply) bool {
	if h.entry != nil {
		s := h.server
		s.mu.Lock()
		defer s.mu.Unlock()
		s.keys.finish(h.entry, r, s.now())
		h.attempt.Stored = true
	}
	return h.standing != outside
}

// settle gives up a key that was taken and not used.
func (h *handling) settle() {
	if h.entry == nil || h.given {
		return
	}
	s := h.server
	s.mu.Lock()
	defer s.mu.Unlock()
	s.keys.giveUp(h.entry)
}

// settleFirst does so before the fault strikes, if nothing comes of the request but what the client then sees: it may
// come again at once, and is not to meet a key that is still in flight.
func (h *handling) settleFirst() {
	if h.entry != nil && h.fault.Refuses() {
		h.settle()
		h.given = true
	}
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
