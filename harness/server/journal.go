package server

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
)

// A field is one that the application sets, with its lines.
type field struct {
	name  string
	lines []string
}

// fields returns h in the order of the names.
func fields(h http.Header) []field {
	list := make([]field, 0, len(h))
	for name, lines := range h {
		list = append(list, field{name, lines})
	}
	slices.SortFunc(list, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return list
}

// A page is memory for attempts: one by one they would cost more than all else that is done for them.
type page struct {
	attempts []history.Attempt
	firsts   []*history.Attempt // for the lists of calls with one attempt
}

const pageSize = 32

// newAttempt returns a new attempt. Callers hold mu.
func (s *Server) newAttempt() *history.Attempt {
	if len(s.page.attempts) == 0 {
		s.page.attempts = make([]history.Attempt, pageSize)
	}
	a := &s.page.attempts[0]
	s.page.attempts = s.page.attempts[1:]
	return a
}

// append adds a to the attempts of c. Callers hold mu.
func (s *Server) append(c *call, a *history.Attempt) {
	if c.rec.Attempts == nil {
		if len(s.page.firsts) == 0 {
			s.page.firsts = make([]*history.Attempt, pageSize)
		}
		c.rec.Attempts = s.page.firsts[:0:1]
		s.page.firsts = s.page.firsts[1:]
	}
	c.rec.Attempts = append(c.rec.Attempts, a)
}

// journal records the attempt of h and claims its fault, under one lock: two attempts never claim the same. It
// returns false, and records nothing, where the call is over its cap.
func (s *Server) journal(h *handling, c *call, r *http.Request, conn *connInfo, reused bool) bool {
	var key string
	switch keys := r.Header[keyField]; len(keys) {
	case 0:
	case 1:
		key = keys[0]
	default:
		key = strings.Join(keys, ", ")
	}
	var diff []string
	for _, f := range c.fields {
		if !slices.Equal(r.Header[f.name], f.lines) {
			diff = append(diff, f.name)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	if s.full(c) {
		return false
	}
	a := s.newAttempt()
	h.attempt = a
	a.N, a.At, a.Ended = len(c.rec.Attempts)+1, now, now
	a.Conn, a.Reused, a.Peer, a.Method = conn.n, reused, r.RemoteAddr, r.Method
	a.Key, a.HeaderDiff, a.Fault = key, diff, faults.OK
	if !c.faultless {
		if k := s.choose(c, now, reused, false); k != nil {
			h.fault = &k.fault
			k.claim(a)
			if k.fault.Quota > 0 {
				if h.within, h.wait = s.quota(c.route, k, now); h.within {
					a.Category = string(faults.None)
				}
			}
		}
	}
	s.append(c, a)
	return true
}

func (s *Server) received(c *call, a *history.Attempt, body []byte, err error) {
	hash := ""
	switch {
	case len(body) == 0:
	case bytes.Equal(body, c.body):
		hash = c.hash
	default:
		hash = Hash(body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	a.BodyLen, a.BodyHash, a.BodyBroken = len(body), hash, err != nil
}

// unread notes that a fault took only n bytes of the body.
func (s *Server) unread(a *history.Attempt, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.BodyLen, a.BodyUnread = n, true
}

func (s *Server) delivered(a *history.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.Delivered {
		return
	}
	a.Delivered = true
	if a.Fault != faults.OK {
		s.accountOf(a.Fault).Delivered++
	}
}

// over notes the end of the attempt on the wire; the first call counts.
func (s *Server) over(a *history.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.Ended == a.At {
		a.Ended = s.now()
	}
}

// answered notes an answer. The last thing to happen to an attempt, it is delivered and over at once.
func (s *Server) answered(a *history.Attempt, status int, retryAfter []string, notBefore time.Time, last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.Status, a.RetryAfter = status, retryAfter
	if !notBefore.IsZero() {
		a.NotBefore = notBefore.Sub(s.cfg.Start)
	}
	if last {
		a.Delivered = true
		if a.Ended == a.At {
			a.Ended = s.now()
		}
	}
}

func (s *Server) closed(a *history.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.Closed = true
}

func (s *Server) undelivered(c *call, a *history.Attempt, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.findings = append(s.findings, history.Finding{Kind: history.FindingUndelivered, Call: c.rec.ID,
		Text: fmt.Sprintf("attempt %d of %s: %s did not happen: %v", a.N, c.rec.ID, a.Fault, err)})
}
