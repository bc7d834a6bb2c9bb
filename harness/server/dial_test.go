package server_test

import (
	"errors"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/server"
)

func sequence(t *testing.T, text string) faults.Schedule {
	t.Helper()
	fs, err := faults.ParseSequence(text)
	if err != nil {
		t.Fatal(err)
	}
	return faults.Schedule{Sequence: fs}
}

func newServer(t *testing.T, limit int, schedule string, capped func()) *server.Server {
	t.Helper()
	s := server.New(server.Config{Scenario: "test/dial", Start: time.Now(), AttemptCap: limit})
	s.Register(server.Registration{Call: &history.Call{ID: "c1", Path: "/c1"}, Schedule: sequence(t, schedule), Capped: capped})
	return s
}

func record(s *server.Server) *history.History {
	h := &history.History{}
	s.Record(h)
	return h
}

// TestClaimDial: a dial claims the entry that the next attempt would get, if it is of its level, and tells the
// account what became of it.
func TestClaimDial(t *testing.T) {
	s := newServer(t, 0, `["connect_refused", "tls_handshake_hang", "503", "dns_temporary"]`, nil)
	d := server.Dial{Path: "/c1", Method: "POST", Key: "k"}
	if c, capped := s.ClaimDial(server.Dial{Path: "/nowhere"}); c != nil || capped {
		t.Error("a dial for no call claims something")
	}
	first, _ := s.ClaimDial(d)
	first.Tell().Delivered()
	first.Tell().Delivered()
	first.Over()
	d.Again = true
	second, _ := s.ClaimDial(d)
	second.Connected("127.0.0.1:40000")
	second.Tell().Sent()
	second.Unmet()
	second.Tell().Failed(errors.New("no room"))
	if c, capped := s.ClaimDial(d); c != nil || capped {
		t.Errorf("the 503 of attempt 3 is claimed at the dial: %v", c.Fault)
	}
	h := record(s)
	as := h.Calls[0].Attempts
	if len(as) != 2 || as[0].Fault != "connect_refused" || as[1].Fault != "tls_handshake_hang" {
		t.Fatalf("%+v", as)
	}
	if a := as[0]; a.N != 1 || !a.Connection || !a.Unsent || !a.Delivered || a.Conn != 0 || a.Hidden || a.Unmet || a.Method != "POST" || a.Key != "k" || a.Category != "transport" {
		t.Errorf("%+v", a)
	}
	if a := as[1]; a.N != 2 || a.Unsent || a.Delivered || a.Conn != 1 || a.Peer != "127.0.0.1:40000" || !a.Hidden || !a.Unmet {
		t.Errorf("%+v", a)
	}
	want := map[string]history.Account{
		"connect_refused":    {Fault: "connect_refused", Planned: 1, Claimed: 1, Delivered: 1},
		"tls_handshake_hang": {Fault: "tls_handshake_hang", Planned: 1, Claimed: 1},
		"503":                {Fault: "503", Planned: 1},
		"dns_temporary":      {Fault: "dns_temporary", Planned: 1},
	}
	for _, a := range h.Faults {
		if want[a.Fault] != a {
			t.Errorf("account %+v, want %+v", a, want[a.Fault])
		}
		delete(want, a.Fault)
	}
	if len(want) > 0 {
		t.Errorf("no account of %v", want)
	}
	if len(h.Findings) != 1 || h.Findings[0].Kind != history.FindingUndelivered || h.Findings[0].Call != "c1" {
		t.Errorf("findings %+v", h.Findings)
	}
}

// TestClaimDialIsCapped: beyond the cap nothing is journaled, and the call is ended once.
func TestClaimDialIsCapped(t *testing.T) {
	ended := make(chan struct{}, 10)
	s := newServer(t, 2, `["connect_refused times=forever"]`, func() { ended <- struct{}{} })
	d := server.Dial{Path: "/c1"}
	for n := range 4 {
		if c, capped := s.ClaimDial(d); capped != (n >= 2) || (c == nil) != capped {
			t.Errorf("dial %d: %v, %v", n+1, c, capped)
		}
	}
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("the call is not ended")
	}
	select {
	case <-ended:
		t.Error("ended twice")
	default:
	}
	if c := record(s).Calls[0]; len(c.Attempts) != 2 || !c.Capped {
		t.Errorf("%d attempts, capped %v", len(c.Attempts), c.Capped)
	}
}
