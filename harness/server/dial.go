package server

import (
	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
)

// A Dial is a connection that is about to be made for an attempt of a call: what the client's base transport
// knows of the request that will never arrive if a fault strikes now.
type Dial struct {
	Path   string // URL path, by which calls are told apart
	Method string
	Key    string // Idempotency-Key
	Again  bool   // net/http resends inside one RoundTrip
}

// A Claim is an attempt that meets a fault while its connection is made. Its methods are safe for concurrent
// use.
type Claim struct {
	Fault faults.Fault

	server *Server
	call   *call
	a      *history.Attempt
}

// ClaimDial journals the next attempt of the call that d is for, if its schedule has a fault of
// faults.LevelConnection for it, and claims that fault. Else it returns nil, and the attempt is journaled
// when its request arrives. capped says that the call has had all the attempts that the harness allows: the
// dial must then wait for Closing.
func (s *Server) ClaimDial(d Dial) (claim *Claim, capped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.calls[d.Path]
	if c == nil {
		return nil, false
	}
	now := s.now()
	k := s.choose(c, now, false, true)
	if k == nil {
		return nil, false
	}
	if s.full(c) {
		return nil, true
	}
	a := &history.Attempt{
		N: len(c.rec.Attempts) + 1, At: now, Ended: now, Method: d.Method, Key: d.Key, Hidden: d.Again,
		Connection: true, Unsent: true, Closed: true,
	}
	k.claim(a)
	c.rec.Attempts = append(c.rec.Attempts, a)
	return &Claim{Fault: k.fault, server: s, call: c, a: a}, false
}

// Tell returns what the fault tells the journal by.
func (c *Claim) Tell() faults.Connecting {
	return faults.Connecting{
		Delivered: func() { c.server.delivered(c.a) },
		Over:      c.Over,
		Sent:      func() { c.set(func(a *history.Attempt) { a.Unsent = false }) },
		Failed:    func(err error) { c.server.undelivered(c.call, c.a, err) },
	}
}

// Connected notes that there is a connection, and the client's address on it.
func (c *Claim) Connected(peer string) {
	n := int(c.server.conns.Add(1))
	c.set(func(a *history.Attempt) { a.Conn, a.Peer = n, peer })
}

// Over notes the end of the attempt; the first call counts.
func (c *Claim) Over() { c.server.over(c.a) }

// Unmet notes that the call went on by another connection and never met the fault.
func (c *Claim) Unmet() { c.set(func(a *history.Attempt) { a.Unmet = true }) }

func (c *Claim) set(change func(a *history.Attempt)) {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	change(c.a)
}

// full reports whether the call has had all the attempts that the cap allows, and ends it if so. Callers
// hold mu.
func (s *Server) full(c *call) bool {
	if len(c.rec.Attempts) < s.cfg.AttemptCap {
		return false
	}
	if !c.rec.Capped {
		c.rec.Capped = true
		if c.capped != nil {
			go c.capped()
		}
	}
	return true
}
