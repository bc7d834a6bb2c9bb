package server

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/world"
)

// A rig is a server on an in-memory network with a client that repeats nothing, in virtual time.
type rig struct {
	t      *testing.T
	srv    *Server
	net    *world.Network
	addr   string
	client *http.Client
	served chan error
}

// route is one call: a path and what its attempts meet.
type route struct {
	method, path string
	sequence     []string
	capped       func()
}

// bubble runs f in a bubble of its own with a server that knows the routes. It closes what f left open, so that
// the bubble ends only if the server lets go of everything.
func bubble(t *testing.T, cfg Config, routes []route, f func(r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := start(t, cfg, routes)
		f(r)
		r.stop()
	})
}

func start(t *testing.T, cfg Config, routes []route) *rig {
	t.Helper()
	cfg.Start = time.Now()
	r := &rig{t: t, srv: New(cfg), net: world.Memory(), served: make(chan error, 1)}
	for i, one := range routes {
		if one.method == "" {
			one.method = http.MethodPost
		}
		r.srv.Register(Registration{
			Call:   &history.Call{ID: fmt.Sprintf("c%d", i+1), Method: one.method, Path: one.path, Resource: one.path},
			Route:  one.path,
			Header: http.Header{"Accept": {"application/json"}}, Capped: one.capped,
			Schedule: faults.Schedule{Sequence: sequence(t, one.sequence...)},
		})
	}
	l, err := r.net.Listen()
	if err != nil {
		t.Fatal(err)
	}
	r.addr = l.Addr().String()
	go func() { r.served <- r.srv.Serve(l) }()
	r.client = &http.Client{Transport: &http.Transport{DialContext: r.net.DialContext, DisableKeepAlives: true}}
	return r
}

func (r *rig) stop() {
	r.client.CloseIdleConnections()
	if err := r.srv.Close(); err != nil {
		r.t.Errorf("closing: %v", err)
	}
	if err := <-r.served; err != nil {
		r.t.Errorf("serving: %v", err)
	}
	if err := r.net.Close(); err != nil {
		r.t.Error(err)
	}
}

func sequence(t *testing.T, texts ...string) []faults.Fault {
	t.Helper()
	var list []faults.Fault
	for _, text := range texts {
		f, err := faults.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, f)
	}
	return list
}

// An answer is what came of one request.
type answer struct {
	status int
	header http.Header
	body   string
	err    error
}

// send makes one request; the header is name, value, name, value …
func (r *rig) send(method, path, body string, header ...string) answer {
	var payload io.Reader
	if body != "" {
		payload = bytes.NewReader([]byte(body))
	}
	req, err := http.NewRequest(method, "http://"+r.addr+path, payload)
	if err != nil {
		return answer{err: err}
	}
	req.GetBody = nil // net/http resends nothing by itself
	req.Header.Set("Accept", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Add(header[i], header[i+1])
	}
	return receive(r.client.Do(req))
}

func receive(resp *http.Response, err error) answer {
	if err != nil {
		return answer{err: err}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return answer{status: resp.StatusCode, header: resp.Header, body: string(b), err: err}
}

// history is what the server has recorded so far.
func (r *rig) history() *history.History {
	h := &history.History{}
	r.srv.Record(h)
	return h
}

// effects returns the attempts that had an effect, like "1 3".
func effects(h *history.History) string {
	var out []string
	for _, e := range h.Effects {
		out = append(out, fmt.Sprint(e.Attempt))
	}
	return strings.Join(out, " ")
}
