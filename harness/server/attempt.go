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
	s.attempt(w, nil, r, conn)
}

// attempt takes one attempt through its life, whatever the protocol that it came by: journal, claim, body,
// store, fault, commit. Of w and stream one is nil.
func (s *Server) attempt(w http.ResponseWriter, stream faults.Stream, r *http.Request, conn *connInfo) {
	reused := conn.requests.Add(1) > 1
	if r.URL.Path == WarmPath {
		s.say(w, stream, r, faults.Reply{Status: http.StatusNoContent})
		return
	}
	if r.URL.Path == TokenPath {
		s.token(w, stream, r)
		return
	}
	c := s.find(r.URL.Path)
	if c == nil {
		s.unmatched(w, stream, r)
		return
	}
	s.active.Add(1)
	defer s.active.Done()

	h := &handling{server: s, call: c, claimed: s.journal(c, r, conn, reused)}
	if h.capped {
		s.stonewall(stream, r)
		return
	}
	h.writer.ResponseWriter = w
	h.exchange = faults.Exchange{Stream: stream, R: r, Closing: s.closing, Receive: h.receive, Delivered: h.delivered,
		Answered: h.answered, Over: h.over}
	if stream == nil {
		h.exchange.W = &h.writer
	}
	if !h.fault.IsOK() {
		h.exchange.Unread, h.exchange.Quota, h.exchange.Forgo = h.unread, h.quota, h.forgo
	}
	if !h.fault.BeforeBody() {
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
	writer   hijackWatch
	exchange faults.Exchange
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

// forgo decides what the good answer is without the body.
func (h *handling) forgo() {
	h.settle = h.server.admit(h.call, h.attempt, &h.exchange, nil)
}

// ends reports whether the connection takes no further request.
func (h *handling) ends() bool {
	return h.writer.hijacked || h.exchange.Stream != nil && h.exchange.Stream.ConnEnds()
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
	if err != nil || h.ends() {
		s.closed(h.attempt)
	}
	switch {
	case err == nil || errors.Is(err, faults.ErrBrokenOff):
	case h.fault.IsOK() && h.exchange.Stream != nil && h.ends():
		// The fault of another stream has ended the connection of a good answer.
	default:
		s.undelivered(h.call, h.attempt, err)
	}
}

// say answers a request that is no attempt.
func (s *Server) say(w http.ResponseWriter, stream faults.Stream, r *http.Request, reply faults.Reply) {
	_ = faults.Apply(&faults.Exchange{ // the client may have gone: there is nothing to tell
		W: w, Stream: stream, R: r, Reply: reply, Closing: s.closing, Commit: func() {}, Delivered: func() {},
		Answered: func(int, []string, time.Time) {},
	}, faults.Fault{})
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
func (s *Server) stonewall(stream faults.Stream, r *http.Request) {
	_, _ = io.Copy(io.Discard, io.LimitReader(r.Body, maxBody))
	select {
	case <-s.closing:
	case <-r.Context().Done():
	}
	if stream == nil {
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
