package server

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
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
	h := s.handlings.Get().(*handling)
	if !s.journal(h, c, r, conn, reused) {
		s.stonewall(stream, r)
		return
	}
	h.server, h.call = s, c
	h.writer.ResponseWriter = w
	h.exchange = faults.Exchange{Stream: stream, R: r, Closing: s.closing, Server: h}
	if stream == nil {
		h.exchange.W = &h.writer
	}
	h.serve()
	if h.fault == nil && h.ticket == nil {
		// Nobody else has it: there was no fault with goroutines of its own, and no wait for a worker.
		*h = handling{body: h.body}
		s.handlings.Put(h)
	}
}

// A handling is one attempt while its handler is at work. To faults it is the server.
type handling struct {
	server   *Server
	call     *call
	attempt  *history.Attempt
	fault    *faults.Fault // nil: a good answer
	within   bool          // of its quota, where the fault is one
	wait     time.Duration // and else until the next window
	writer   hijackWatch
	exchange faults.Exchange
	ticket   *ticket // of an attempt that a worker has taken
	standing standing
	entry    *stored // the key that it has taken
	given    bool    // up again
	told     bool    // the journal knows all that happened on the wire
	body     []byte  // memory for the body, which is not kept
}

// serve does what is to be done with an attempt that has been journaled.
func (h *handling) serve() {
	if h.fault == nil || !h.fault.BeforeBody() {
		if err := h.Receive(h.exchange.R.Body); err != nil {
			// The client broke off; nothing can be answered and nothing was asked.
			h.Over()
			return
		}
		if h.ticket != nil && h.worked() {
			h.left()
			return
		}
	}
	h.apply()
}

// left ends an attempt whose client had left when the work on it was done: nobody is there to be told.
func (h *handling) left() {
	if h.ticket.lost == "" {
		h.Commit()
	}
	h.settle()
	h.Over()
	h.server.closed(h.attempt)
}

// Receive takes the body of the request and decides what its good answer is.
func (h *handling) Receive(from io.Reader) error {
	body, err := h.readBody(from)
	h.server.received(h.call, h.attempt, body, err)
	if err == nil {
		if h.server.station != nil && h.worthy() {
			h.queueUp()
		}
		h.admit()
	}
	return err
}

// Forgo decides what the good answer is without the body.
func (h *handling) Forgo() { h.admit() }

// Unread notes that the fault took only n bytes of the body.
func (h *handling) Unread(n int) { h.server.unread(h.attempt, n) }

// Quota is what journal has found.
func (h *handling) Quota() (bool, time.Duration) { return h.within, h.wait }

// Delivered notes it in the journal.
func (h *handling) Delivered() {
	if !h.told {
		h.server.delivered(h.attempt)
	}
}

// Over notes the end of the attempt on the wire in the journal; the first call counts.
func (h *handling) Over() {
	if !h.told {
		h.server.over(h.attempt)
	}
}

// Answered notes the answer in the journal. Nothing comes behind a good one.
func (h *handling) Answered(status int, retryAfter []string, notBefore time.Time) {
	h.told = h.fault == nil
	h.server.answered(h.attempt, status, retryAfter, notBefore, h.told)
}

// ends reports whether the connection takes no further request.
func (h *handling) ends() bool {
	return h.writer.hijacked || h.exchange.Stream != nil && h.exchange.Stream.ConnEnds()
}

// keptBody is how large a body may be whose memory serves for the next one too.
const keptBody = 4 << 10

// readBody reads the body. What it returns is good until the handling is over.
func (h *handling) readBody(from io.Reader) ([]byte, error) {
	length := h.exchange.R.ContentLength // -1: not announced
	if length < 0 || length > 1<<20 {
		return io.ReadAll(io.LimitReader(from, maxBody))
	}
	if length == 0 {
		return nil, nil
	}
	body := h.body
	switch {
	case length > keptBody:
		body = make([]byte, length)
	case int(length) > cap(body):
		h.body = make([]byte, length)
		body = h.body
	}
	body = body[:length]
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
	var err error
	if h.fault == nil {
		err = faults.Answer(&h.exchange)
	} else {
		if h.fault.Phase == faults.CommitLate {
			s.lateStart()
			defer s.lateDone()
		}
		h.settleFirst()
		err = faults.Apply(&h.exchange, *h.fault)
	}
	h.settle()
	h.Over()
	if err != nil || h.ends() {
		s.closed(h.attempt)
	}
	switch {
	case err == nil || errors.Is(err, faults.ErrBrokenOff):
	case h.fault == nil && h.exchange.Stream != nil && h.ends():
		// The fault of another stream has ended the connection of a good answer.
	default:
		s.undelivered(h.call, h.attempt, err)
	}
}

// say answers a request that is no attempt.
func (s *Server) say(w http.ResponseWriter, stream faults.Stream, r *http.Request, reply faults.Reply) {
	x := faults.Exchange{W: w, Stream: stream, R: r, Reply: reply, Closing: s.closing, Server: nobody{}}
	_ = faults.Answer(&x) // the client may have gone: there is nothing to tell
}

// nobody is the server of an answer that is not journaled and commits nothing.
type nobody struct{ faults.Server }

func (nobody) Commit()                           {}
func (nobody) Delivered()                        {}
func (nobody) Answered(int, []string, time.Time) {}

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
