package harness

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"slices"
	"sync"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/server"
)

// recorder keeps the client's side of a run: when calls began and ended, what the application was told,
// and each use of the base transport.
type recorder struct {
	start time.Time

	mu    sync.Mutex
	calls map[string]*callRecord // by id
	paths map[string]*callRecord // by URL path
}

type callRecord struct {
	started, ended     time.Duration
	begun, returned    bool
	deadline, cancelAt time.Duration
	outcome            history.Outcome
	trips              []*history.Trip
}

func newRecorder(start time.Time) *recorder {
	return &recorder{start: start, calls: map[string]*callRecord{}, paths: map[string]*callRecord{}}
}

func (r *recorder) now() time.Duration { return time.Since(r.start) }

func (r *recorder) add(id, path string) {
	c := &callRecord{}
	r.calls[id], r.paths[path], r.paths[path+faults.OtherPath] = c, c, c
}

func (r *recorder) begin(id string, deadline, cancelAfter time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.calls[id]
	c.begun, c.started = true, r.now()
	if deadline > 0 {
		c.deadline = c.started + deadline
	}
	if cancelAfter > 0 {
		c.cancelAt = c.started + cancelAfter
	}
}

func (r *recorder) finish(id string, o history.Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.calls[id]
	c.ended, c.returned, c.outcome = r.now(), true, o
}

// merge writes the client's side into the calls that the server has recorded.
func (r *recorder) merge(h *history.History) (openBodies int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range h.Calls {
		m := r.calls[c.ID]
		c.Started, c.Ended, c.Returned = m.started, m.ended, m.returned
		c.Deadline, c.CancelAt, c.Outcome = m.deadline, m.cancelAt, m.outcome
		if !m.returned {
			c.Ended = r.now()
		}
		c.Trips = make([]history.Trip, 0, len(m.trips))
		for _, t := range m.trips {
			one := *t
			one.Peers = append([]string(nil), t.Peers...)
			c.Trips = append(c.Trips, one)
			if t.Status != 0 && !t.Closed {
				openBodies++
			}
		}
		markHidden(c)
	}
	return openBodies
}

// markHidden marks the attempts that net/http resent inside one RoundTrip. A trip makes one attempt for each
// connection that it got, as far as the attempt arrived: of these, all but the first. Times alone cannot
// tell, because in virtual time a hot loop makes all its trips in one instant.
func markHidden(c *history.Call) {
	taken := make(map[*history.Attempt]bool, len(c.Attempts))
	for _, t := range c.Trips {
		first := true
		for _, peer := range t.Peers {
			i := slices.IndexFunc(c.Attempts, func(a *history.Attempt) bool {
				return !taken[a] && a.Peer == peer && a.At >= t.Started && a.At <= t.Ended
			})
			if i < 0 {
				continue
			}
			taken[c.Attempts[i]] = true
			c.Attempts[i].Hidden = !first
			first = false
		}
	}
}

// tripper counts the uses of a base transport, by call, and watches the bodies that it hands out.
type tripper struct {
	base *http.Transport
	rec  *recorder
}

func (t *tripper) RoundTrip(req *http.Request) (*http.Response, error) {
	t.rec.mu.Lock()
	c := t.rec.paths[req.URL.Path]
	t.rec.mu.Unlock()
	if c == nil {
		return t.base.RoundTrip(req)
	}
	trip := &history.Trip{Started: t.rec.now()}
	t.rec.mu.Lock()
	c.trips = append(c.trips, trip)
	t.rec.mu.Unlock()
	trail := &trail{rec: t.rec, trip: trip, want: server.Dial{Path: req.URL.Path, Method: req.Method, Key: keyOf(req.Header)}, tls: req.URL.Scheme == "https"}
	ctx := onConn(context.WithValue(req.Context(), trailKey{}, trail), func(info httptrace.GotConnInfo) {
		peer := info.Conn.LocalAddr().String()
		t.rec.mu.Lock()
		defer t.rec.mu.Unlock()
		trail.got(peer)
		trip.Peers = append(trip.Peers, peer)
	})
	resp, err := t.base.RoundTrip(req.WithContext(ctx))
	t.rec.mu.Lock()
	defer t.rec.mu.Unlock()
	trip.Ended = t.rec.now()
	trail.ended()
	if err != nil {
		trip.Error = err.Error()
		return resp, err
	}
	resp.Request = req
	trip.Status = resp.StatusCode
	if resp.Body == http.NoBody {
		trip.BodyEOF, trip.Closed = true, true
	}
	resp.Body = &watchedBody{ReadCloser: resp.Body, trip: trip, rec: t.rec}
	return resp, nil
}

// onConn returns a context by which net/http tells got of each connection that it uses, beside the hooks that ctx has.
// httptrace.WithClientTrace alone would join the two by reflection, at a tenth of the cost of an exchange in memory.
func onConn(ctx context.Context, got func(httptrace.GotConnInfo)) context.Context {
	var hooks httptrace.ClientTrace
	if theirs := httptrace.ContextClientTrace(ctx); theirs != nil {
		hooks = *theirs
		ctx = untraced{ctx, theirs}
	}
	theirs := hooks.GotConn
	hooks.GotConn = func(info httptrace.GotConnInfo) {
		got(info)
		if theirs != nil {
			theirs(info)
		}
	}
	return httptrace.WithClientTrace(ctx, &hooks)
}

// untraced is a context without its hooks for httptrace.
type untraced struct {
	context.Context
	hooks *httptrace.ClientTrace
}

func (c untraced) Value(key any) any {
	v := c.Context.Value(key)
	if v == any(c.hooks) {
		return nil
	}
	return v
}

// CloseIdleConnections lets http.Client.CloseIdleConnections through.
func (t *tripper) CloseIdleConnections() { t.base.CloseIdleConnections() }

// watchedBody notes whether a response body was read to its end and closed.
type watchedBody struct {
	io.ReadCloser
	trip *history.Trip
	rec  *recorder
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == io.EOF {
		b.rec.mu.Lock()
		b.trip.BodyEOF = true
		b.rec.mu.Unlock()
	}
	return n, err
}

func (b *watchedBody) Close() error {
	b.rec.mu.Lock()
	b.trip.Closed = true
	b.rec.mu.Unlock()
	return b.ReadCloser.Close()
}
