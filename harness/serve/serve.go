// Package serve is the fault server over HTTP, for the test suites of clients in any language: a run is a scenario's
// fake server on a port of its own. The test asks for a run, has its client make the run's calls, tells what the client
// told it, and reads the history and the verdict.
//
// A [Handler] is the control API, which the OpenAPI description at /openapi.yaml describes. It judges as the
// rest of retrychaos does, with one difference: of the client's side it knows only what it is told. What needs that
// and was not told is unknown or skipped, with the reason, and never a pass.
package serve

import (
	"cmp"
	"crypto/rand"
	"errors"
	"math"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/retrychaos/retrychaos/harness/server"
)

// Config bounds a Handler. The zero value is ready.
type Config struct {
	// Host is the address that the ports of runs are opened on; default 127.0.0.1.
	Host string
	// BaseHost is the host in the URLs that tests are given; default Host. Where Host is all addresses (0.0.0.0,
	// ::), it is by default the host that the request for the run was sent to.
	BaseHost string
	// AllowHosts are names that a request's Host may have beside localhost and IP addresses. All others are refused,
	// so that no web page can reach the API by a name of its own that leads here (DNS rebinding).
	AllowHosts []string

	MaxRuns    int           // at once; default 32
	TTL        time.Duration // after which a run is deleted; default 15 minutes
	MaxCalls   int           // of one run; default 1000
	MaxBytes   int64         // received by one run's port; default 64 MiB
	MaxConns   int           // open at one run's port at once; default 1024
	AttemptCap int           // attempts of one call; default server.DefaultAttemptCap

	Version string // told by /healthz
}

func (c Config) withDefaults() Config {
	c.Host = cmp.Or(c.Host, "127.0.0.1")
	c.MaxRuns = cmp.Or(c.MaxRuns, 32)
	c.TTL = cmp.Or(c.TTL, 15*time.Minute)
	c.MaxCalls = cmp.Or(c.MaxCalls, 1000)
	c.MaxBytes = cmp.Or(c.MaxBytes, 64<<20)
	c.MaxConns = cmp.Or(c.MaxConns, 1024)
	c.AttemptCap = cmp.Or(c.AttemptCap, server.DefaultAttemptCap)
	c.Version = cmp.Or(c.Version, "devel")
	return c
}

// A Handler is the control API. It is safe for concurrent use. Close it, or its runs go on until their time is over.
type Handler struct {
	cfg    Config
	routes http.Handler

	mu     sync.Mutex
	runs   map[string]*run
	opened int // runs that are there or being opened
	closed bool
	ending sync.WaitGroup // runs that are being ended for their time
}

// New makes a Handler.
func New(cfg Config) *Handler {
	h := &Handler{cfg: cfg.withDefaults(), runs: map[string]*run{}}
	h.routes = h.guard(h.mux())
	return h
}

// ServeHTTP answers a request to the API.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.routes.ServeHTTP(w, r) }

// Close ends all runs and closes their ports. Requests for new ones are refused from then on.
func (h *Handler) Close() {
	h.mu.Lock()
	h.closed = true
	all := h.runs
	h.runs = map[string]*run{}
	h.mu.Unlock()
	var done sync.WaitGroup
	for _, r := range all {
		done.Go(r.drop)
	}
	done.Wait()
	h.ending.Wait()
}

// Errors of reserve.
var (
	errFull   = errors.New("there are as many runs as there can be")
	errClosed = errors.New("the server is being closed")
)

// reserve takes a place for a run; errFull comes with the time after which one is free at the latest.
func (h *Handler) reserve() (after time.Duration, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed:
		return 0, errClosed
	case h.opened < h.cfg.MaxRuns:
		h.opened++
		return 0, nil
	}
	after = h.cfg.TTL
	for _, r := range h.runs {
		after = min(after, max(0, time.Until(r.expires)))
	}
	return time.Duration(math.Ceil(after.Seconds())) * time.Second, errFull
}

// release gives a place back.
func (h *Handler) release() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.opened--
}

// add makes a run known, until its time is over.
func (h *Handler) add(r *run) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return errClosed
	}
	r.release = h.release
	h.runs[r.id] = r
	r.timer = time.AfterFunc(time.Until(r.expires), func() { h.expire(r) })
	return nil
}

func (h *Handler) expire(r *run) {
	h.mu.Lock()
	if h.runs[r.id] != r {
		h.mu.Unlock()
		return
	}
	delete(h.runs, r.id)
	h.ending.Add(1)
	h.mu.Unlock()
	defer h.ending.Done()
	r.drop()
}

// find returns a run, or nil.
func (h *Handler) find(id string) *run {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.runs[id]
}

// take returns a run and forgets it; of two who ask at once one gets it.
func (h *Handler) take(id string) *run {
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.runs[id]
	delete(h.runs, id)
	return r
}

// all returns the runs, oldest first.
func (h *Handler) all() []*run {
	h.mu.Lock()
	defer h.mu.Unlock()
	list := make([]*run, 0, len(h.runs))
	for _, r := range h.runs {
		list = append(list, r)
	}
	slices.SortFunc(list, func(a, b *run) int {
		return cmp.Or(a.created.Compare(b.created), cmp.Compare(a.id, b.id))
	})
	return list
}

// newID makes an id that cannot be guessed.
func newID() string { return rand.Text() }
