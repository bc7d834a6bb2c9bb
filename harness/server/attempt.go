package server

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
)

// Hash names the bytes of a body in the journal. It is short: it tells bodies of one run apart, no more.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	var text [16]byte
	hex.Encode(text[:], sum[:8])
	return string(text[:])
}

// ServeHTTP takes one attempt over HTTP/1.1.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	conn, _ := r.Context().Value(connKey{}).(*connInfo)
	if conn == nil {
		conn = &connInfo{}
	}
	h := &handling{writer: hijackWatch{ResponseWriter: w}}
	h.exchange.W, h.exchange.R = &h.writer, r
	s.attempt(h, conn)
}

// attempt takes one attempt through its life, whatever the protocol that it came by: journal, claim, body,
// store, fault, commit.
func (s *Server) attempt(h *handling, conn *connInfo) {
	x := &h.exchange
	r := x.R
	h.server, x.Closing = s, s.closing
	reused := conn.requests.Add(1) > 1
	switch r.URL.Path {
	case WarmPath:
		say(x, faults.Reply{Status: http.StatusNoContent})
		return
	case TokenPath:
		s.token(x)
		return
	}
	c := s.find(r.URL.Path)
	if c == nil {
		s.unmatched(x)
		return
	}
	s.active.Add(1)
	defer s.active.Done()

	h.call, h.claimed = c, s.journal(c, r, conn, reused)
	if h.capped {
		s.stonewall(x)
		return
	}
	x.Receive, x.Delivered, x.Answered, x.Over = h.receive, h.delivered, h.answered, h.over
	if !h.fault.IsOK() {
		x.Unread, x.Quota = h.unread, h.quota
	}
	switch {
	case h.fault.IgnoresBody():
		s.unread(h.attempt, 0)
		h.settle = s.admit(c, h.attempt, x, nil)
	case !h.fault.BeforeBody():
		if err := h.receive(r.Body); err != nil {
			// The client broke off; nothing can be answered and nothing was asked.
			h.over()
			return
		}
	}
	h.apply()
}

// A handling is one attempt while its handler is at work. What a fault asks for comes through its methods.
type handling struct {
	claimed
	server   *Server
	call     *call
	writer   hijackWatch // of HTTP/1.1
	exchange faults.Exchange
	// connEnds, if not nil, reports when the attempt is over whether its connection takes no further request.
	connEnds func() bool
	settle   func() // of admit; nil until then
}

// receive takes the body of the request and decides what its good answer is.
func (h *handling) receive(from io.Reader) error {
	body, err := readBody(from, h.exchange.R.ContentLength)
	h.server.received(h.attempt, body, err)
	if err == nil {
		h.settle = h.server.admit(h.call, h.attempt, &h.exchange, body)
	}
	return err
}

// readBody reads a body of the length announced, -1 for none.
func readBody(from io.Reader, length int64) ([]byte, error) {
	if length < 0 || length > 1<<20 {
		return io.ReadAll(io.LimitReader(from, maxBody))
	}
	if length == 0 {
		return nil, nil
	}
	body := make([]byte, length)
	n, err := io.ReadFull(from, body)
	if err == nil {
		// Only the end tells net/http that the client's next sign of life is another request.
		_, err = from.Read(body[n:])
	}
	if err == io.EOF && n == len(body) {
		err = nil
	}
	return body[:n], err
}

// apply does the fault, with the commit where its phase has it.
func (h *handling) apply() {
	s := h.server
	late := h.fault.Phase == faults.CommitLate && !h.fault.IsOK()
	if late {
		s.lateStart()
		defer s.lateDone()
	}
	err := faults.Apply(&h.exchange, h.fault)
	if h.settle != nil {
		h.settle()
	}
	h.over()
	ends := h.writer.hijacked || h.connEnds != nil && h.connEnds()
	if err != nil || ends {
		s.closed(h.attempt)
	}
	// The fault of another stream may end the connection of a good answer.
	if err != nil && !errors.Is(err, faults.ErrBrokenOff) && !(h.fault.IsOK() && ends) {
		s.undelivered(h.call, h.attempt, err)
	}
}

// say answers a request that is no attempt.
func say(x *faults.Exchange, r faults.Reply) {
	x.Reply = r
	x.Commit, x.Delivered = func() {}, func() {}
	x.Answered = func(int, []string, time.Time) {}
	_ = faults.Apply(x, faults.Fault{}) // the client may have gone: there is nothing to tell
}

func (h *handling) delivered() { h.server.delivered(h.attempt, h.fault) }
func (h *handling) over()      { h.server.over(h.attempt) }

func (h *handling) answered(status int, retryAfter []string, notBefore time.Time) {
	h.server.answered(h.attempt, status, retryAfter, notBefore)
}
func (h *handling) unread(n int)                 { h.server.unread(h.attempt, n) }
func (h *handling) quota() (bool, time.Duration) { return h.within, h.wait }

// claimed is what an attempt was given when its head arrived.
type claimed struct {
	attempt *history.Attempt
	fault   faults.Fault
	capped  bool // the call is over its cap, and nothing else is set
	within  bool // of its quota, where the fault is one
	wait    time.Duration
}

// journal records the attempt and claims its fault, under one lock: two attempts never claim the same.
func (s *Server) journal(c *call, r *http.Request, conn *connInfo, reused bool) claimed {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	a := &history.Attempt{
		N: len(c.rec.Attempts) + 1, At: now, Ended: now, Conn: conn.n, Reused: reused, Peer: r.RemoteAddr,
		Method: r.Method,
	}
	if keys := r.Header[keyField]; len(keys) > 0 {
		a.Key = strings.Join(keys, ", ")
	}
	if s.full(c) {
		return claimed{attempt: a, capped: true}
	}
	f := s.choose(c, now, faults.Point{Reused: reused})
	s.claimFault(a, f)
	got := claimed{attempt: a, fault: f}
	if f.Quota > 0 {
		if got.within, got.wait = s.quota(c.route, f, now); got.within {
			a.Category = string(faults.None)
		}
	}
	for k, want := range c.header {
		if !slices.Equal(r.Header[k], want) {
			a.HeaderDiff = append(a.HeaderDiff, k)
		}
	}
	if len(a.HeaderDiff) > 1 {
		sort.Strings(a.HeaderDiff)
	}
	c.rec.Attempts = append(c.rec.Attempts, a)
	return got
}

// stonewall holds an attempt beyond the cap until the world is closed: whoever loops without end is
// stopped here, in whatever clock it runs.
func (s *Server) stonewall(x *faults.Exchange) {
	r := x.R
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, maxBody))
	select {
	case <-s.closing:
	case <-r.Context().Done():
	}
	if x.Stream == nil {
		panic(http.ErrAbortHandler) // net/http would answer 200 to whoever still waits
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

// unread notes that a fault took only n bytes of the body.
func (s *Server) unread(a *history.Attempt, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a.BodyLen, a.BodyUnread = n, true
}

func (s *Server) delivered(a *history.Attempt, f faults.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if a.Delivered {
		return
	}
	a.Delivered = true
	if !f.IsOK() {
		s.account(f).Delivered++
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

// FlushError is what http.ResponseController looks for first.
func (w *hijackWatch) FlushError() error {
	if f, ok := w.ResponseWriter.(interface{ FlushError() error }); ok {
		return f.FlushError()
	}
	return http.NewResponseController(w.ResponseWriter).Flush()
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

// goodReply is the reply of a call that went well; effect is 0 where it has none.
func (c *call) goodReply(status, effect int) faults.Reply {
	b := make([]byte, 0, len(c.good)+len(`,"effect":1000000}`)+1)
	b = append(b, c.good...)
	if effect > 0 {
		b = append(b, `,"effect":`...)
		b = strconv.AppendInt(b, int64(effect), 10)
	}
	return faults.Reply{Status: status, Body: append(b, '}', '\n')} // JSON goes without saying
}
