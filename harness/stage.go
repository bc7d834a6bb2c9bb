package harness

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/server"
	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/scenarios"
)

// A Stage is a scenario's fake server on a real listener, with nobody who makes its calls: they come from
// elsewhere, from the tests of a client in another language, say. Its methods are safe for concurrent use.
type Stage struct {
	d        *drive
	listener net.Listener
	calls    []StagedCall
	ca       []byte
	served   chan error
	stop     chan struct{} // of the watch over the clock
	watching sync.WaitGroup

	once   sync.Once
	closed chan struct{}
}

// StageConfig is what OpenStage needs beside the scenario.
type StageConfig struct {
	Seed     uint64
	Client   string           // name, for the history
	Declared history.Declared // what is known of the client's policy
	// Exact says that the calls are made with the header fields of StagedCall, so that an attempt without them lacks
	// something.
	Exact bool
	// Listener is where the server serves; the Stage closes it. Its connections must be world.Conn, as those of
	// package net are.
	Listener net.Listener
	// AttemptCap bounds the attempts of one call; default server.DefaultAttemptCap.
	AttemptCap int
}

// A StagedCall is a call for others to make, and how the scenario wants it made.
type StagedCall struct {
	Call   // its URL is a path
	Group  scenarios.Group
	Offset time.Duration // of its start: from the opening of the stage, or from the end of the group that it waits for
}

// Unstaged says why the server of a scenario alone, on loopback and in real time, cannot stage it; "" if it can.
func Unstaged(s scenarios.Scenario) string {
	switch {
	case !s.RunsIn(scenarios.World(world.Loopback)):
		return fmt.Sprintf("it does not run in real time: %s", s.Why)
	case s.Meets(faults.LevelConnection):
		return "it has a fault that strikes while a connection is made, in the client's dialer, and a server has no part in that"
	}
	return ""
}

// OpenStage starts the server of a scenario. Instant zero of its history is now. The listener is closed if it fails.
func OpenStage(s scenarios.Scenario, cfg StageConfig) (*Stage, error) {
	l := cfg.Listener
	if why := Unstaged(s); why != "" {
		_ = l.Close()
		return nil, fmt.Errorf("scenario %s: %s", s.Name, why)
	}
	d := newDrive(Client{Name: cfg.Client, Declared: cfg.Declared}, s, cfg.Seed)
	d.attemptCap, d.free = cfg.AttemptCap, !cfg.Exact
	d.env = environment{kind: world.Loopback, grain: grainLoopback}
	st := &Stage{d: d, served: make(chan error, 1), stop: make(chan struct{}), closed: make(chan struct{})}
	if s.Server.TLS {
		ca, err := faults.NewAuthority(serverName)
		if err != nil {
			_ = l.Close()
			return nil, err
		}
		st.ca = ca.PEM()
		l = tls.NewListener(l, ca.Server())
	}
	st.listener = l
	d.start = time.Now()
	d.rec = newRecorder(d.start)
	d.srv = d.newServer(d.start)
	for _, j := range d.expand(d.rec, d.srv) {
		st.calls = append(st.calls, StagedCall{Call: j.call, Group: *j.group, Offset: j.offset})
	}
	go func() { st.served <- d.srv.Serve(l) }()
	st.watching.Go(func() { d.watchClock(st.stop) })
	return st, nil
}

// Calls returns the calls of the scenario. The list and what is in it is not to be changed.
func (s *Stage) Calls() []StagedCall { return s.calls }

// CA returns the certificate of the authority that a client has to trust, in PEM; nil where the server speaks no TLS.
func (s *Stage) CA() []byte { return s.ca }

// Since returns how long the stage has been open.
func (s *Stage) Since() time.Duration { return time.Since(s.d.start) }

// History returns what the server has seen up to now, and, after Close, all of it. Nothing of the client's side is
// in it: no call has begun or returned.
func (s *Stage) History() *history.History {
	select {
	case <-s.closed:
	default:
		s.d.mu.Lock()
		s.d.end = s.Since()
		s.d.mu.Unlock()
	}
	h := s.d.history()
	for _, c := range h.Calls {
		c.Started, c.Ended = 0, 0
	}
	return h
}

// Close ends what is under way, makes the late commits that are still to come, closes the listener and waits until
// nothing of the stage is left. Later calls wait as well.
func (s *Stage) Close() {
	s.once.Do(func() {
		d := s.d
		d.mu.Lock()
		d.end = s.Since()
		d.mu.Unlock()
		_ = d.srv.Close()
		_ = s.listener.Close()
		if err := <-s.served; err != nil {
			d.finding(history.FindingHarness, "serving: %v", err)
		}
		close(s.stop)
		s.watching.Wait()
		close(s.closed)
	})
	<-s.closed
}

// Paths of the fake server that belong to no call: one to warm a connection by, and one that gives a token for a
// POST.
const (
	WarmPath  = server.WarmPath
	TokenPath = server.TokenPath
)

// WireHeader returns the header fields of a call as it goes over the wire, its key included.
func (c Call) WireHeader() http.Header {
	h := c.Header.Clone()
	if c.Key != "" {
		h.Set("Idempotency-Key", c.Key)
	}
	return h
}
