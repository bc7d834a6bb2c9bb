package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

// The journal holds every attempt as it came and as it ended.
func TestJournal(t *testing.T) {
	bubble(t, Config{Keys: scenarios.Honour}, []route{{path: "/a", sequence: []string{"503 retry-after=2s", "connection_reset@after_commit", "latency delay=3s"}}}, func(r *rig) {
		r.client.Transport.(*http.Transport).DisableKeepAlives = false
		time.Sleep(time.Second)
		if got := r.send("POST", "/a", "abc", "Idempotency-Key", "k"); got.status != 503 {
			t.Fatalf("%+v", got)
		}
		if got := r.send("POST", "/a", "abcd", "X-Other", "x"); !errors.Is(got.err, syscall.ECONNRESET) {
			t.Fatalf("%+v", got)
		}
		r.send("GET", "/a", "", "Accept", "text/plain")
		h := r.history()
		if len(h.Calls) != 1 || len(h.Calls[0].Attempts) != 3 {
			t.Fatalf("%+v", h)
		}
		first, second, third := h.Calls[0].Attempts[0], h.Calls[0].Attempts[1], h.Calls[0].Attempts[2]
		if first.N != 1 || first.At != time.Second || first.Conn != 1 || first.Reused || first.Method != "POST" || first.Key != "k" ||
			first.BodyHash != Hash([]byte("abc")) || first.BodyLen != 3 || first.BodyBroken || len(first.HeaderDiff) != 0 ||
			first.Fault != "503 retry-after=2s" || first.FaultName != "status" || first.Phase != "before_commit" || first.Category != "status" ||
			!first.Delivered || first.Status != 503 || first.NotBefore != 3*time.Second || first.Effect != 0 || first.Closed {
			t.Errorf("first: %+v", first)
		}
		if second.N != 2 || second.Conn != 1 || !second.Reused || second.Key != "" || second.BodyLen != 4 || second.Status != 0 ||
			second.Effect != 1 || !second.Closed || !second.Delivered || second.Phase != "after_commit" {
			t.Errorf("second: %+v", second)
		}
		if third.N != 3 || third.Conn != 2 || third.Reused || third.Method != "GET" || third.BodyHash != "" || third.Status != 200 ||
			third.Effect != 0 || third.Ended-third.At != 3*time.Second || fmt.Sprint(third.HeaderDiff) != "[Accept]" {
			t.Errorf("third: %+v", third)
		}
		if len(h.Effects) != 1 || h.Effects[0].Attempt != 2 || h.Effects[0].Value != Hash([]byte("abcd")) || h.Effects[0].Late {
			t.Errorf("ledger: %+v", h.Effects)
		}
		for _, a := range h.Faults {
			if a.Planned != 1 || a.Claimed != 1 || a.Delivered != 1 {
				t.Errorf("account: %+v", a)
			}
		}
		if len(h.Faults) != 3 || len(h.Findings) != 0 {
			t.Errorf("%d accounts, findings %v", len(h.Faults), h.Findings)
		}
		// What Record gave is a copy.
		first.Status = 999
		if r.history().Calls[0].Attempts[0].Status != 503 {
			t.Error("the copy is the original")
		}
	})
}

// A body that breaks off is journaled, and asks for nothing.
func TestBrokenBody(t *testing.T) {
	bubble(t, Config{Keys: scenarios.Honour}, []route{{path: "/a"}}, func(r *rig) {
		c, err := r.net.DialContext(r.t.Context(), "tcp", r.addr)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(c, "POST /a HTTP/1.1\r\nHost: x\r\nAccept: application/json\r\nContent-Length: 10\r\n\r\nabc")
		c.Close()
		synctest.Wait()
		h := r.history()
		a := h.Calls[0].Attempts[0]
		if !a.BodyBroken || a.BodyLen != 3 || a.Status != 0 || len(h.Effects) != 0 {
			t.Errorf("%+v, effects %v", a, h.Effects)
		}
	})
}

// Every commit is in the ledger, by method and key mode.
func TestLedger(t *testing.T) {
	for _, c := range []struct {
		keys    scenarios.KeyMode
		profile scenarios.Profile
		method  string
		key     string
		want    string // attempts with an effect, of two
		status  int    // of the second
	}{
		{scenarios.Honour, "", "POST", "", "1 2", 200},
		{scenarios.Honour, "", "POST", "k", "1", 200},
		{scenarios.Honour, "", "PUT", "k", "1", 200},
		{scenarios.Honour, "", "FROB", "k", "1", 200},
		{scenarios.Honour, "", "GET", "k", "", 200},
		{scenarios.Honour, "", "PROPFIND", "", "", 200},
		{scenarios.Ignore, "", "POST", "k", "1 2", 200},
		{scenarios.Require, "", "POST", "", "", 400},
		{scenarios.Require, "", "POST", "k", "1", 200},
		{scenarios.Require, "", "PUT", "", "1 2", 200},
		{scenarios.Honour, scenarios.IETF, "POST", "", "1 2", 201},
		{scenarios.Honour, scenarios.IETF, "POST", `"k"`, "1", 201},
		{scenarios.Honour, scenarios.IETF, "POST", "k", "", 400},
		{scenarios.Honour, scenarios.IETF, "PATCH", `"k"`, "1", 200},
		{scenarios.Honour, scenarios.IETF, "PUT", `"k"`, "1 2", 200},
		{scenarios.Require, scenarios.IETF, "POST", "", "", 400},
		{scenarios.Ignore, scenarios.Plain, "POST", `"k"`, "1 2", 200},
		{scenarios.Honour, scenarios.Stripe, "POST", "k", "1", 200},
		{scenarios.Honour, scenarios.Stripe, "PATCH", "k", "1 2", 200},
		{scenarios.Require, scenarios.Stripe, "POST", "", "", 400},
		{scenarios.Require, scenarios.Stripe, "PATCH", "", "1 2", 200},
	} {
		bubble(t, Config{Keys: c.keys, Profile: c.profile}, []route{{method: c.method, path: "/a"}}, func(r *rig) {
			var last answer
			for range 2 {
				var header []string
				if c.key != "" {
					header = []string{"Idempotency-Key", c.key}
				}
				last = r.send(c.method, "/a", "x", header...)
			}
			if got := effects(r.history()); got != c.want || last.status != c.status {
				t.Errorf("%s %s %s %q: effects of %q and status %d, want %q and %d", c.keys, c.profile, c.method, c.key, got, last.status, c.want, c.status)
			}
		})
	}
}

// A request for no route is told so, with a status that nobody repeats, and is a finding, once.
func TestUnmatched(t *testing.T) {
	bubble(t, Config{Keys: scenarios.Honour}, []route{{path: "/charges/c1"}, {path: "/accounts/c2"}}, func(r *rig) {
		for range 3 {
			got := r.send("POST", "/charge/c1", "x")
			if got.status != 404 || got.header.Get(UnmatchedHeader) != "true" || !strings.Contains(got.body, "/charges/c1") {
				t.Fatalf("%+v", got)
			}
		}
		r.send("GET", "/acounts/c2", "")
		h := r.history()
		if len(h.Findings) != 2 || h.Findings[0].Kind != history.FindingUnmatched || h.Findings[1].Kind != history.FindingUnmatched ||
			!strings.Contains(h.Findings[0].Text, "POST /charge/c1") || !strings.Contains(h.Findings[1].Text, "/accounts/c2") {
			t.Errorf("%+v", h.Findings)
		}
		if len(h.Calls[0].Attempts)+len(h.Calls[1].Attempts)+len(h.Effects) != 0 {
			t.Error("it was journaled as an attempt of a call")
		}
		if got := r.send("GET", WarmPath, ""); got.status != 204 || len(r.history().Findings) != 2 {
			t.Errorf("warming: %+v", got)
		}
	})
}

// Whoever loops without end gets no answer at the cap, and the harness is told, once.
func TestCap(t *testing.T) {
	var told atomic.Int32
	bubble(t, Config{Keys: scenarios.Honour, AttemptCap: 2}, []route{{path: "/a", sequence: []string{"503 times=forever"}, capped: func() { told.Add(1) }}}, func(r *rig) {
		for range 2 {
			if got := r.send("POST", "/a", "x"); got.status != 503 {
				t.Fatalf("%+v", got)
			}
		}
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				if got := r.send("POST", "/a", "x"); got.err == nil {
					t.Errorf("beyond the cap: %+v", got)
				}
			})
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		c := r.history().Calls[0]
		if told.Load() != 1 || !c.Capped || len(c.Attempts) != 2 {
			t.Errorf("told %d times, capped %v, %d attempts", told.Load(), c.Capped, len(c.Attempts))
		}
		// The handlers may see the end before their connections are closed.
		r.srv.once.Do(func() { close(r.srv.closing) })
		wg.Wait()
	})
}

// AwaitLate waits for commits that are still to come, for as long as it is allowed to.
func TestAwaitLate(t *testing.T) {
	bubble(t, Config{Keys: scenarios.Honour}, []route{{path: "/a", sequence: []string{"hang@commit_late late=3s"}}, {path: "/b", sequence: []string{"hang@commit_late"}}}, func(r *rig) {
		start := time.Now()
		r.srv.AwaitLate(r.t.Context())
		if time.Since(start) != 0 {
			t.Error("it waits for nothing")
		}
		r.client.Timeout = 2 * time.Second
		if got := r.send("POST", "/a", "x"); got.err == nil {
			t.Fatalf("%+v", got)
		}
		if n := len(r.history().Effects); n != 0 {
			t.Fatalf("%d effects before their time", n)
		}
		r.srv.AwaitLate(r.t.Context())
		if d := time.Since(start); d != 5*time.Second {
			t.Errorf("it came back after %v, want the client's 2s and 3s more", d)
		}
		if h := r.history(); len(h.Effects) != 1 || !h.Effects[0].Late || h.Effects[0].At != 5*time.Second {
			t.Errorf("%+v", h.Effects)
		}
		// A client that never leaves.
		r.client.Timeout = 0
		done := make(chan answer, 1)
		go func() { done <- r.send("POST", "/b", "x") }()
		synctest.Wait()
		limit, cancel := context.WithTimeout(r.t.Context(), time.Minute)
		defer cancel()
		before := time.Now()
		r.srv.AwaitLate(limit)
		if d := time.Since(before); d != time.Minute || len(r.history().Effects) != 1 {
			t.Errorf("it waited %v", d)
		}
		// Closing commits what is still to come, and saves nobody from it.
		if err := r.srv.Close(); err != nil {
			t.Error(err)
		}
		if got := <-done; got.err == nil {
			t.Errorf("%+v", got)
		}
		if h := r.history(); len(h.Effects) != 2 {
			t.Errorf("%+v", h.Effects)
		}
	})
}

// Close ends handlers that hang, whatever they hang in.
func TestCloseWhileHandlersHang(t *testing.T) {
	hanging := []string{"hang", "hang@after_commit", "latency delay=1h", "latency@after_commit delay=1h", "stall_body", "stall_body@after_commit end=hang"}
	var routes []route
	for i, f := range hanging {
		routes = append(routes, route{path: fmt.Sprintf("/%d", i), sequence: []string{f}})
	}
	bubble(t, Config{Keys: scenarios.Honour}, routes, func(r *rig) {
		var wg sync.WaitGroup
		for i, f := range hanging {
			wg.Go(func() {
				if got := r.send("POST", fmt.Sprintf("/%d", i), "x", "Idempotency-Key", "k"); got.err == nil {
					t.Errorf("%s: %+v", f, got)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		if err := r.srv.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if d := time.Since(start); d != 0 {
			t.Errorf("closing took %v", d)
		}
		select {
		case <-r.srv.Closing():
		default:
			t.Error("Closing has not ended")
		}
		if err := r.srv.Close(); err != nil {
			t.Errorf("closing twice: %v", err)
		}
	})
}

// Record may be called at any time.
func TestRecordWhileRunning(t *testing.T) {
	var routes []route
	for i := range 8 {
		routes = append(routes, route{path: fmt.Sprintf("/%d", i), sequence: []string{"503", "empty_response@after_commit", "500 stored=true", "ok"}})
	}
	bubble(t, Config{Keys: scenarios.Honour, MaxKeys: 4}, routes, func(r *rig) {
		var wg sync.WaitGroup
		for i := range routes {
			wg.Go(func() {
				for n := range 10 {
					r.send("POST", fmt.Sprintf("/%d", i), "x", "Idempotency-Key", fmt.Sprintf("%d-%d", i, n/2))
				}
			})
		}
		done := make(chan struct{})
		go func() { wg.Wait(); close(done) }()
		for n := 0; ; n++ {
			h := r.history()
			for _, c := range h.Calls {
				for i, a := range c.Attempts {
					if a.N != i+1 {
						t.Fatalf("call %s: attempt %d stands at %d", c.ID, a.N, i)
					}
				}
			}
			select {
			case <-done:
				if h := r.history(); len(h.Calls) != 8 || len(h.Calls[7].Attempts) != 10 {
					t.Errorf("%d calls after %d records", len(h.Calls), n)
				}
				return
			default:
			}
		}
	})
}

// On a connection of its own every request is fresh; on one that is kept, only the first.
func TestReused(t *testing.T) {
	bubble(t, Config{Keys: scenarios.Honour}, []route{{path: "/a", sequence: []string{"503 on=reused", "503 on=reused", "503 on=fresh"}}}, func(r *rig) {
		r.client.Transport.(*http.Transport).DisableKeepAlives = false
		var got []int
		for range 3 {
			got = append(got, r.send("POST", "/a", "x").status)
		}
		if fmt.Sprint(got) != "[200 503 200]" {
			t.Errorf("statuses %v: a fault strikes on its kind of connection alone", got)
		}
		for i, a := range r.history().Calls[0].Attempts {
			if a.Reused != (i > 0) || a.Conn != 1 {
				t.Errorf("attempt %d: connection %d, reused %v", a.N, a.Conn, a.Reused)
			}
		}
	})
}
