package server

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

// An eager client has its next request with the server before the handler that answered it goes on.
type eager struct {
	*httptest.ResponseRecorder
	again func()
}

func (e eager) FlushError() error {
	if e.again != nil {
		e.again()
	}
	return nil
}

// A client that comes again at once, with its key, does not meet the request that was refused as one in flight.
func TestRefusedIsNoLongerInFlight(t *testing.T) {
	for _, tc := range []struct {
		fault   string
		want    int // status of the repeat
		effects int
	}{
		{"503", 200, 1},
		{"429 retry-after=0s", 200, 1},
		{"malformed_json variant=empty", 200, 1},
		{"500 stored=true", 500, 0},
		{"503@after_commit", 200, 1},
	} {
		srv := New(Config{Start: time.Now(), Keys: scenarios.Honour})
		call := &history.Call{ID: "c1", Method: "POST", Path: "/a", Resource: "/a"}
		srv.Register(Registration{Call: call, Route: "/a", Schedule: faults.Schedule{Sequence: sequence(t, tc.fault)}})
		request := func() *http.Request {
			r := httptest.NewRequest("POST", "/a", strings.NewReader("x"))
			r.Header.Set("Idempotency-Key", "k")
			return r
		}
		again := httptest.NewRecorder()
		srv.ServeHTTP(eager{httptest.NewRecorder(), func() {
			srv.ServeHTTP(eager{ResponseRecorder: again}, request())
		}}, request())
		h := &history.History{}
		srv.Record(h)
		if again.Code != tc.want || len(h.Effects) != tc.effects {
			t.Errorf("%s: the repeat is answered %d with %d effects, want %d with %d", tc.fault, again.Code, len(h.Effects), tc.want, tc.effects)
		}
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A fault that finds nothing to damage makes a good answer after all, and its outcome is kept with the key.
func TestKeyGivenUpIsTakenAgain(t *testing.T) {
	srv := New(Config{Start: time.Now(), Keys: scenarios.Honour})
	srv.Register(Registration{Call: &history.Call{ID: "c1", Method: "POST", Path: "/a", Resource: "/a"}, Route: "/a"})
	attempt := func(n int) *handling {
		h := &handling{server: srv, call: srv.find("/a"), attempt: &history.Attempt{N: n, Key: "k"}, fault: &sequence(t, "503")[0]}
		h.exchange.R = httptest.NewRequest("POST", "/a", nil)
		h.claim(keyID{key: "k"})
		return h
	}
	first := attempt(1)
	first.settleFirst()
	first.Commit()
	first.settle()
	if second := attempt(2); !second.attempt.Replayed || second.exchange.Reply.Status != http.StatusOK {
		t.Errorf("the repeat is given %+v, and not the outcome: %+v", second.exchange.Reply, second.attempt)
	}
}
