// Package server is the fake server: real net/http, or the frame-level HTTP/2 of package h2, over a real or
// in-memory listener, with a journal of
// every attempt, a ledger of every effect, an idempotency store whose behaviour the scenario chooses, and
// the execution of planned faults.
package server

import (
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

// WarmPath answers 204 and belongs to no call. A request to it opens a connection that a later attempt
// can reuse.
const WarmPath = "/_retrychaos/warm"

// UnmatchedHeader marks the answer to a request that belongs to no call of the scenario.
const UnmatchedHeader = "X-Retrychaos-Unmatched"

// maxBody bounds what is kept of a request body while it is read.
const maxBody = 64 << 20

// Config is what a Server needs. All of it is fixed before the listener accepts.
type Config struct {
	Scenario   string
	Seed       uint64
	Start      time.Time // instant zero of the run
	Keys       scenarios.KeyMode
	Token      scenarios.TokenMode
	Profile    scenarios.Profile // by which book keys are kept; "": plain
	Expiry     time.Duration     // how long a key is kept; 0: as the profile has it
	AttemptCap int               // attempts per call after which the server answers no more; 0: 64
	// Bounds on the idempotency store; 0: DefaultMaxKeys and DefaultMaxKeyBytes.
	MaxKeys     int
	MaxKeyBytes int
	// Protocol is faults.HTTP1 or faults.HTTP2 (by prior knowledge: RFC 9113 §3.3); "": HTTP1.
	Protocol string
	// Capacity bounds how fast it works; nil: it answers at once.
	Capacity  *scenarios.Capacity
	Incidents []scenarios.Incident
}

// DefaultAttemptCap bounds the attempts of one call when the Config does not.
const DefaultAttemptCap = 64

// A Server is one run's fake server. Register its calls, then Serve.
type Server struct {
	cfg     Config
	profile profile
	http    *http.Server
	frames  *frames // in place of http, for HTTP/2
	closing chan struct{}
	once    sync.Once
	conns   atomic.Int64
	active  sync.WaitGroup // handlers at work, late commits included
	station *station       // nil without a capacity
	// handlings are used again: what they hold of faults and exchanges is large.
	handlings sync.Pool
	calls     map[string]*call // by path; read-only once it serves

	mu       sync.Mutex
	order    []*call
	page     page
	ledger   []history.Effect
	keys     *keyStore
	accounts map[string]*history.Account
	planned  map[*faults.Fault]*strike // by the entry of the schedule
	strikes  map[string]*strike        // by the text that turnAway was given
	findings []history.Finding
	unfound  map[string]bool
	quotas   map[string]*window // by route and fault
	tokens   int                // requests for a token
	late     int                // attempts whose late commit is still to come
	lateIdle chan struct{}      // closed while late is 0
}

// call is what the server keeps of one call. What every attempt needs comes first, and close together: of many
// calls most are not in the processor's caches.
type call struct {
	rec       *history.Call // its Attempts are the server's to write, under Server.mu
	good      []byte        // the beginning of its good reply
	faultless bool          // the schedule has no fault for any attempt
	*setting
	capped   func()
	schedule faults.Schedule
	route    string
}

// setting is what the application sets for a call: as a rule the same as for the call before.
type setting struct {
	fields []field // in the order of their names
	body   []byte  // nil: not known
	hash   string  // of body
}

func (s *setting) equal(o *setting) bool {
	return bytes.Equal(s.body, o.body) && s.hash == o.hash && slices.EqualFunc(s.fields, o.fields, func(a, b field) bool {
		return a.name == b.name && slices.Equal(a.lines, b.lines)
	})
}

// New makes a server that knows no call yet.
func New(cfg Config) *Server {
	if cfg.AttemptCap == 0 {
		cfg.AttemptCap = DefaultAttemptCap
	}
	if cfg.MaxKeys == 0 {
		cfg.MaxKeys = DefaultMaxKeys
	}
	if cfg.MaxKeyBytes == 0 {
		cfg.MaxKeyBytes = DefaultMaxKeyBytes
	}
	p := profileOf(cfg.Profile)
	if cfg.Expiry == 0 {
		cfg.Expiry = p.expiry
	}
	s := &Server{
		cfg:      cfg,
		profile:  p,
		closing:  make(chan struct{}),
		calls:    map[string]*call{},
		keys:     newKeyStore(cfg.Expiry, cfg.MaxKeys, cfg.MaxKeyBytes),
		accounts: map[string]*history.Account{},
		planned:  map[*faults.Fault]*strike{},
		strikes:  map[string]*strike{},
		unfound:  map[string]bool{},
		quotas:   map[string]*window{},
	}
	s.handlings.New = func() any { return new(handling) }
	if cfg.Protocol == faults.HTTP2 {
		s.frames = newFrames(s)
		return s
	}
	if cfg.Capacity != nil {
		s.station = newStation(cfg.Seed, *cfg.Capacity, cfg.Incidents, s.now)
	}
	s.http = &http.Server{
		Handler:     s,
		ConnContext: s.connContext,
		ErrorLog:    log.New(io.Discard, "", 0), // broken connections are what we are here for
	}
	return s
}

// A Registration is one call as the server must know it.
type Registration struct {
	Call     *history.Call // Attempts stay the server's until Finish
	Route    string        // path template, part of the schedule's hash
	Schedule faults.Schedule
	Header   http.Header // fields that every attempt must carry unchanged
	// Body, if not nil, is what Call.BodyHash was made of: an attempt that brings the same is not hashed again.
	// No client may have these bytes in its hands.
	Body []byte
	// Capped, if not nil, is called once when the call has reached the cap on attempts.
	Capped func()
}

// Register makes calls known, with their schedules. It must not be called after Serve.
func (s *Server) Register(regs ...Registration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ledger = slices.Grow(s.ledger, len(regs)) // most calls have an effect
	set := &setting{}
	if n := len(s.order); n > 0 {
		set = s.order[n-1].setting
	}
	for _, r := range regs {
		c := &call{rec: r.Call, schedule: r.Schedule, route: r.Route, setting: set, capped: r.Capped}
		if own := (setting{fields(r.Header), r.Body, r.Call.BodyHash}); !own.equal(set) {
			set = &own
			c.setting = set
		}
		c.faultless = len(r.Schedule.Sequence) == 0 && len(r.Schedule.Storms) == 0 && r.Schedule.Draw == nil
		c.good = bytes.TrimSuffix(jsonReply(http.StatusOK, reply{Call: r.Call.ID, OK: true}).Body, []byte("}\n"))
		s.calls[r.Call.Path] = c
		s.order = append(s.order, c)
		planned, endless := r.Schedule.Planned()
		for _, f := range planned {
			if !f.IsOK() {
				s.account(f).Planned++
			}
		}
		if endless {
			s.account(planned[len(planned)-1]).Planned = -1
		}
		for _, st := range r.Schedule.Storms {
			if st.Meets(r.Route) {
				s.account(st.Fault).Planned = -1
			}
		}
		if d := r.Schedule.Draw; d != nil && d.P > 0 && d.Meets(r.Route) {
			for _, f := range r.Schedule.Draw.Faults {
				s.account(f).Planned = -1
			}
		}
	}
}

// account returns the account of f. Callers hold mu.
func (s *Server) account(f faults.Fault) *history.Account {
	return s.accountOf(once(f).String())
}

// accountOf returns the account of the fault with that text. Callers hold mu.
func (s *Server) accountOf(text string) *history.Account {
	a := s.accounts[text]
	if a == nil {
		a = &history.Account{Fault: text}
		s.accounts[text] = a
	}
	return a
}

// once is f as it hits one attempt, without its count in the sequence.
func once(f faults.Fault) faults.Fault {
	f.Times = 0
	return f
}

// Serve answers on l until Close.
func (s *Server) Serve(l net.Listener) error {
	if s.station != nil {
		s.station.start()
	}
	if s.frames != nil {
		return s.frames.serve(l)
	}
	err := s.http.Serve(l)
	if err == http.ErrServerClosed {
		return nil
	}
	return err
}

// Close aborts what hangs, closes listener and connections, and waits for the handlers. Late commits that
// are still to come are made first.
func (s *Server) Close() error {
	s.once.Do(func() { close(s.closing) })
	if s.station != nil {
		s.station.close()
	}
	var err error
	if s.frames != nil {
		err = s.frames.close()
	} else {
		err = s.http.Close()
	}
	s.active.Wait()
	return err
}

// Closing ends when the server is being closed.
func (s *Server) Closing() <-chan struct{} { return s.closing }

// AwaitLate waits until no late commit is to come, or ctx ends. An attempt whose client never leaves
// commits only at Close, and is not waited for longer than that.
func (s *Server) AwaitLate(ctx context.Context) {
	for {
		s.mu.Lock()
		if s.late == 0 {
			s.mu.Unlock()
			return
		}
		if s.lateIdle == nil {
			s.lateIdle = make(chan struct{})
		}
		idle := s.lateIdle
		s.mu.Unlock()
		select {
		case <-idle:
		case <-ctx.Done():
			return
		}
	}
}

func (s *Server) lateStart() {
	s.mu.Lock()
	s.late++
	s.mu.Unlock()
}

func (s *Server) lateDone() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.late--
	if s.late == 0 && s.lateIdle != nil {
		close(s.lateIdle)
		s.lateIdle = nil
	}
}

func (s *Server) now() time.Duration { return time.Since(s.cfg.Start) }

// connInfo numbers a connection and counts what it has carried.
type connInfo struct {
	n        int
	requests atomic.Int64
}

type connKey struct{}

func (s *Server) connContext(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, &connInfo{n: int(s.conns.Add(1))})
}

// find returns the call that a path belongs to: its own, or the one that a redirect leads to.
func (s *Server) find(path string) *call {
	if c := s.calls[path]; c != nil {
		return c
	}
	base, ok := strings.CutSuffix(path, faults.OtherPath)
	if !ok {
		return nil
	}
	return s.calls[base]
}

// unmatched answers a request that belongs to no call, so that nobody takes it for a network error.
func (s *Server) unmatched(w http.ResponseWriter, stream faults.Stream, r *http.Request) {
	s.mu.Lock()
	what := r.Method + " " + r.URL.Path
	near := s.nearestPath(r.URL.Path)
	if !s.unfound[what] && len(s.unfound) < 100 {
		s.unfound[what] = true
		s.findings = append(s.findings, history.Finding{Kind: history.FindingUnmatched,
			Text: "no route of the scenario matches " + what + "; the nearest is " + near})
	}
	s.mu.Unlock()
	s.say(w, stream, r, faults.Reply{
		Status: http.StatusNotFound,
		Header: http.Header{UnmatchedHeader: {"true"}, "Content-Type": {"text/plain; charset=utf-8"}},
		Body:   []byte("retrychaos: no route of the scenario matches " + what + "; the nearest is " + near + "\n"),
	})
}

// nearestPath returns the registered path that shares the longest prefix with path. Callers hold mu.
func (s *Server) nearestPath(path string) string {
	best, bestLen := "none", -1
	for _, c := range s.order {
		n := 0
		for n < len(path) && n < len(c.rec.Path) && path[n] == c.rec.Path[n] {
			n++
		}
		if n > bestLen {
			best, bestLen = c.rec.Path, n
		}
	}
	return strings.Clone(best)
}
