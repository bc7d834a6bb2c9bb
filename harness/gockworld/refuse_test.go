package gockworld_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/h2non/gock"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/gockworld"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/scenarios"
)

// TestNeedsAWire: refused before anything happens, in the scenario's own words.
func TestNeedsAWire(t *testing.T) {
	plain := func() scenarios.Scenario { return scenario(t, scenarios.Group{}) }
	with := func(f func(*scenarios.Scenario)) scenarios.Scenario {
		s := plain()
		s.Calls = append([]scenarios.Group(nil), s.Calls...)
		f(&s)
		return s
	}
	for want, s := range map[string]scenarios.Scenario{
		"connection_reset@after_commit": scenario(t, scenarios.Group{}, "503", "connection_reset@after_commit"),
		"hang":                          scenario(t, scenarios.Group{Faults: []faults.Fault{parse(t, "hang")}}),
		"503@commit_late":               scenario(t, scenarios.Group{}, "503@commit_late"),
		"503 on=fresh":                  scenario(t, scenarios.Group{}, "503 on=fresh"),
		"protocol: h2":                  with(func(s *scenarios.Scenario) { s.Server.Protocol = faults.HTTP2 }),
		"connection: reused":            with(func(s *scenarios.Scenario) { s.Connection = faults.Reused }),
		"the calls of calls are a fleet": with(func(s *scenarios.Scenario) {
			s.Calls[0].Fleet = true
		}),
		"empty_response": with(func(s *scenarios.Scenario) {
			s.Storms = []faults.Storm{{To: time.Second, Fault: parse(t, "empty_response")}}
		}),
		"truncated_body": with(func(s *scenarios.Scenario) {
			s.Draw = &faults.Draw{P: 0.5, Faults: []faults.Fault{parse(t, "503"), parse(t, "truncated_body")}}
		}),
	} {
		made := false
		client := harness.Client{Name: "c", New: func(harness.Env) (harness.Caller, error) { made = true; return nil, errors.New("made") }}
		res, err := gockworld.World{Origin: origin}.One(t, client, s)
		wire := (*gockworld.NeedsWireError)(nil)
		if res != nil || !errors.As(err, &wire) || !strings.Contains(wire.What, want) || made {
			t.Errorf("%s: %v, %v", want, res, err)
		} else if text := err.Error(); !strings.Contains(text, s.Name+" needs a wire") || !strings.Contains(text, "virtual or loopback") {
			t.Error(text)
		}
	}
	if err := gockworld.Fit(plain()); err != nil {
		t.Error(err)
	}
}

func TestMisuse(t *testing.T) {
	fine := scenario(t, scenarios.Group{})
	for wrong, want := range map[string]string{
		"":                           "it is empty",
		"api.example.com":            `did you mean "https://api.example.com"?`,
		"ftp://api.example.com":      `the scheme is "ftp"`,
		"https://":                   "it has no host",
		"https://u:p@example.com":    "and nothing else",
		"https://example.com/?a=b":   "and nothing else",
		"https://example.com/v1#a":   "and nothing else",
		"https://example.com/a%2fb":  "escapes",
		"https://exa mple.com/a":     "invalid character",
		"https://api.example.com:ab": "invalid port",
	} {
		res, err := gockworld.World{Origin: wrong}.One(t, vendored(payments{}), fine)
		if res != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", wrong, err)
		}
	}
	w := gockworld.World{Origin: origin}
	if _, err := w.One(t, harness.Client{Name: "empty"}, fine); err == nil || !strings.Contains(err.Error(), `"empty" has no New`) {
		t.Error(err)
	}
	process := harness.Client{Name: "exec:curl", Declared: history.Declared{Process: true}, New: vendored(payments{}).New}
	if _, err := w.One(t, process, fine); err == nil || !strings.Contains(err.Error(), "exec:curl is a process") {
		t.Error(err)
	}
	// Virtual time needs a T here as elsewhere, and says so as elsewhere.
	if res, err := w.One(nil, vendored(payments{}), fine); err != nil || res.Status != check.Unknown {
		t.Errorf("%v, %v", res, err)
	}
	undone(t, gock.NativeTransport, realServer(t))
}

// TestOneAtATime: gock is one per process.
func TestOneAtATime(t *testing.T) {
	fine := scenario(t, scenarios.Group{})
	w := gockworld.World{Origin: origin, Runner: harness.Runner{World: world.Loopback}}
	inside, leave := make(chan struct{}), make(chan struct{})
	slow := calls(func(context.Context, http.RoundTripper, harness.Call) harness.Outcome {
		close(inside)
		<-leave
		return harness.Outcome{Err: errors.New("given up")}
	})
	over := make(chan error)
	go func() { _, err := w.One(nil, slow, fine); over <- err }()
	<-inside
	if res, err := w.One(nil, vendored(payments{}), fine); res != nil || !errors.Is(err, gockworld.ErrBusy) {
		t.Errorf("a second run: %v, %v", res, err)
	}
	close(leave)
	if err := <-over; err != nil {
		t.Error(err)
	}
	if _, err := w.One(nil, vendored(payments{}), fine); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

// TestForeign: somebody else's mocks are neither used nor thrown away.
func TestForeign(t *testing.T) {
	defer gock.OffAll()
	gock.New("https://api.example.com").Get("^/$").Reply(204)
	if _, err := (gockworld.World{Origin: origin}).One(t, vendored(payments{}), scenario(t, scenarios.Group{})); !errors.Is(err, gockworld.ErrForeign) {
		t.Errorf("with mocks: %v", err)
	}
	if len(gock.GetAll()) != 1 || !gock.Intercepting() {
		t.Error("the mocks of another are gone")
	}
	gock.Flush()
	if _, err := (gockworld.World{Origin: origin}).One(t, vendored(payments{}), scenario(t, scenarios.Group{})); !errors.Is(err, gockworld.ErrForeign) {
		t.Errorf("while it intercepts: %v", err)
	}
	gock.OffAll()
	one(t, vendored(payments{}), scenario(t, scenarios.Group{}))
}
