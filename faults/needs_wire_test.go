package faults_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrychaos/retrychaos/faults"
)

// TestNeedsNoWire does every fault that says that it needs no wire where there is none: a recorder has no
// connection to take.
func TestNeedsNoWire(t *testing.T) {
	done := map[string]bool{}
	for _, e := range faults.Catalogue() {
		for _, f := range e.Combinations() {
			if f.NeedsWire() {
				continue
			}
			done[e.Name] = true
			synctest.Test(t, func(t *testing.T) {
				if got := applyToRecorder(t, f); got.err != nil || !got.delivered || got.answered == 0 {
					t.Errorf("%s: %+v", f, got)
				}
			})
		}
	}
	for _, name := range []string{"latency", "status", "malformed_json", "stall_body"} {
		if !done[name] {
			t.Errorf("%s needs a wire in all its forms", name)
		}
	}
}

// TestNeedsWire holds the other side: these have no way without a connection, and fail to be delivered.
func TestNeedsWire(t *testing.T) {
	for _, text := range []string{
		"hang", "empty_response", "connection_reset", "truncated_body", "stall_body", "stall_body delay=1s end=rst",
		"503@commit_late", "malformed_json@commit_late", "408 end=fin",
	} {
		f := parse(t, text)
		if !f.NeedsWire() {
			t.Errorf("%s needs no wire", text)
		}
		synctest.Test(t, func(t *testing.T) {
			if got := applyToRecorder(t, f); got.err == nil || !strings.Contains(got.err.Error(), "taking the connection") {
				t.Errorf("%s: %+v", text, got)
			}
		})
	}
	for _, text := range []string{"503 on=fresh", "503 on=reused", "ok on=reused"} {
		if f, err := faults.Parse(text); err == nil && !f.NeedsWire() {
			t.Errorf("%s needs no wire, and there is no such thing as a connection without one", text)
		}
	}
	if (faults.Fault{}).NeedsWire() || parse(t, "ok").NeedsWire() {
		t.Error("ok needs a wire")
	}
	if !(faults.Fault{Name: "not in the catalogue"}).NeedsWire() {
		t.Error("what is not known needs no wire")
	}
}

type recorded struct {
	err       error
	delivered bool
	answered  int
}

func applyToRecorder(t *testing.T, f faults.Fault) (got recorded) {
	t.Helper()
	x := &faults.Exchange{
		W: httptest.NewRecorder(), R: httptest.NewRequest(http.MethodPost, "/charges/c1", nil),
		Reply:   faults.Reply{Status: http.StatusOK, Body: []byte(`{"call":"c1","ok":true,"effect":1}`)},
		Closing: make(chan struct{}),
		Server: &serverSide{
			commit:    func() {},
			delivered: func() { got.delivered = true },
			answered:  func(status int, _ []string, _ time.Time) { got.answered = status },
		},
	}
	got.err = faults.Apply(x, f)
	return got
}
