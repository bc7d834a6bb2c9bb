package server

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sort"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
)

// Hash names the bytes of a body in the journal. It is short: it tells bodies of one run apart, no more.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:8])
}

// ServeHTTP takes one attempt through its life: journal, claim, body, store, fault, commit.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn, _ := r.Context().Value(connKey{}).(*connInfo)
	if conn == nil {
		conn = &connInfo{}
	}
	reused := conn.requests.Add(1) > 1
	if r.URL.Path == WarmPath {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	c := s.find(r.URL.Path)
	if c == nil {
		s.unmatched(w, r)
		return
	}
	s.active.Add(1)
	defer s.active.Done()

	a, fault, capped := s.journal(c, r, conn, reused)
	if capped {
		s.stonewall(r)
		return
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody))
	s.received(a, body, err)
	if err != nil {
		// The client broke off; nothing can be answered and nothing was asked.
		s.over(a)
		return
	}
	hw := &hijackWatch{ResponseWriter: w}
	x := &faults.Exchange{
		W: hw, R: r, Closing: s.closing,
		Delivered: func() { s.delivered(a) },
		Over:      func() { s.over(a) },
		Answered: func(status int, retryAfter []string, notBefore time.Time) {
			s.answered(a, status, retryAfter, notBefore)
		},
	}
	t := s.queueUp(c, a, r, &fault)
	settle := s.admit(c, a, x, body)
	if left := s.worked(a, t, &fault); left {
		// Nobody is there to be told.
		if t.lost == "" {
			x.Commit()
		}
		settle()
		s.over(a)
		s.closed(a)
		return
	}
	late := fault.Phase == faults.CommitLate && !fault.IsOK()
	if late {
		s.lateStart()
		defer s.lateDone()
	}
	err = faults.Apply(x, fault)
	settle()
	s.over(a)
	if hw.hijacked || err != nil {
		s.closed(a)
	}
	if err != nil {
		s.undelivered(c, a, err)
	}
}

// journal records the attempt and claims its fault, under one lock: two attempts never claim the same.
func (s *Server) journal(c *call, r *http.Request, conn *connInfo, reused bool) (*history.Attempt, faults.Fault, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	a := &history.Attempt{
		N: len(c.rec.Attempts) + 1, At: now, Ended: now, Conn: conn.n, Reused: reused, Peer: r.RemoteAddr,
		Method: r.Method, Key: strings.Join(r.Header.Values("Idempotency-Key"), ", "),
	}
	if a.N > s.cfg.AttemptCap {
		if !c.rec.Capped {
			c.rec.Capped = true
			if c.capped != nil {
				go c.capped()
			}
		}
		return a, faults.Fault{}, true
	}
	f := once(c.schedule.For(faults.Point{
		Seed: s.cfg.Seed, Scenario: s.cfg.Scenario, Route: c.route, Call: c.rec.ID,
		Attempt: a.N, At: now, Reused: reused,
	}))
	a.Fault = faults.OK
	if !f.IsOK() {
		a.Fault, a.FaultName, a.Phase, a.Category = f.String(), f.Name, string(f.Phase), string(f.Category())
		s.accountOf(a.Fault).Claimed++
	}
	for k, want := range c.header {
		if strings.Join(r.Header.Values(k), "\x00") != strings.Join(want, "\x00") {
			a.HeaderDiff = append(a.HeaderDiff, k)
		}
	}
	sort.Strings(a.HeaderDiff)
	c.rec.Attempts = append(c.rec.Attempts, a)
	return a, f, false
}

// stonewall holds an attempt beyond the cap until the world is closed: whoever loops without end is
// stopped here, in whatever clock it runs.
func (s *Server) stonewall(r *http.Request) {
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, maxBody))
	select {
	case <-s.closing:
	case <-r.Context().Done():
	}
}

func (s *Server) received(a *history.Attempt, body []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.BodyLen = len(body)
	if len(body) > 0 {
		a.BodyHash = Hash(body)
	}
	a.BodyBroken = err != nil
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

func (s *Server) answered(a *history.Attempt, status int, retryAfter []string, notBefore time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.Status, a.RetryAfter = status, retryAfter
	if !notBefore.IsZero() {
		a.NotBefore = notBefore.Sub(s.cfg.Start)
	}
}

func (s *Server) closed(a *history.Attempt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.Closed = true
}

// hijackWatch notes whether a fault took the connection from net/http, which then never carries another
// request.
type hijackWatch struct {
	http.ResponseWriter
	hijacked bool
}

func (w *hijackWatch) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	c, rw, err := http.NewResponseController(w.ResponseWriter).Hijack()
	w.hijacked = err == nil
	return c, rw, err
}

// Unwrap lets http.ResponseController through.
func (w *hijackWatch) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (s *Server) undelivered(c *call, a *history.Attempt, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.findings = append(s.findings, history.Finding{Kind: history.FindingUndelivered, Call: c.rec.ID,
		Text: fmt.Sprintf("attempt %d of %s: %s did not happen: %v", a.N, c.rec.ID, a.Fault, err)})
}

// reply is the answer of a server that is well.
type reply struct {
	Call   string `json:"call"`
	OK     bool   `json:"ok"`
	Effect int    `json:"effect,omitempty"`
	Error  string `json:"error,omitempty"`
}

func jsonReply(status int, v reply) faults.Reply {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // a struct of strings and numbers always marshals
	}
	return faults.Reply{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: append(b, '\n')}
}
