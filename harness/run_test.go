package harness_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/scenarios"
)

// scenario makes a valid scenario of one group of calls.
func scenario(t *testing.T, g scenarios.Group, sequence ...string) scenarios.Scenario {
	t.Helper()
	s := scenarios.Scenario{Name: "test/" + strings.ToLower(t.Name()[4:]), Summary: "a test", Rule: "effects.once", Source: "here", Calls: []scenarios.Group{g}}
	s.Name = strings.Map(func(r rune) rune {
		if r == '/' || r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, "test/"+strings.ReplaceAll(strings.ToLower(t.Name()), "/", "-"))
	for _, text := range sequence {
		f, err := faults.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		s.Faults = append(s.Faults, f)
	}
	s, err := scenarios.Validate(s)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func plain() harness.Client {
	return harness.HTTPClient("plain", func(base http.RoundTripper) *http.Client { return &http.Client{Transport: base} })
}

func verdict(res *harness.Result, id string) check.Verdict {
	for _, v := range res.Verdicts {
		if v.Check == id {
			return v
		}
	}
	return check.Verdict{}
}

// TestHiddenReplay shows net/http resending a keyed POST inside one RoundTrip, on a warmed connection, and
// what the ledger makes of it under each key mode (golang/go#48438; shouldRetryRequest in net/http).
func TestHiddenReplay(t *testing.T) {
	for _, c := range []struct {
		keys    scenarios.KeyMode
		effects int
	}{{scenarios.Honour, 1}, {scenarios.Ignore, 2}} {
		t.Run(string(c.keys), func(t *testing.T) {
			s := scenario(t, scenarios.Group{Key: true}, "empty_response@after_commit")
			s.Connection, s.Server.Keys = faults.Reused, c.keys
			for _, w := range []world.Kind{world.Virtual, world.Loopback} {
				res := harness.Runner{World: w}.One(t, plain(), s)
				call := res.History.Calls[0]
				if len(call.Trips) != 1 || len(call.Attempts) != 2 || len(res.History.Effects) != c.effects {
					t.Fatalf("%s: %d trips, %d attempts, %d effects; want 1, 2, %d\n%s", w,
						len(call.Trips), len(call.Attempts), len(res.History.Effects), c.effects, res.Explain(check.May))
				}
				if call.Attempts[0].Hidden || !call.Attempts[1].Hidden {
					t.Errorf("%s: hidden = %v, %v; want the second alone", w, call.Attempts[0].Hidden, call.Attempts[1].Hidden)
				}
			}
		})
	}
}

// TestSameSeedSameDecisions holds two runs of a seeded draw against each other, and a third with another seed.
func TestSameSeedSameDecisions(t *testing.T) {
	s := scenario(t, scenarios.Group{Count: 50, Method: "GET"})
	s.Draw = &faults.Draw{P: 0.5, Faults: []faults.Fault{mustParse(t, "503"), mustParse(t, "connection_reset")}}
	client := harness.Bundled("retry", retry.Policy{})
	first := harness.Runner{Seed: 7}.One(t, client, s)
	again := harness.Runner{Seed: 7}.One(t, client, s)
	other := harness.Runner{Seed: 8}.One(t, client, s)
	if a, b := flat(first), flat(again); a != b {
		t.Errorf("seed 7 twice:\n%s\n%s", a, b)
	}
	if flat(first) == flat(other) {
		t.Error("seeds 7 and 8 decide the same")
	}
	if !strings.Contains(flat(first), "503") || !strings.Contains(flat(first), "connection_reset") {
		t.Errorf("the draw chose nothing: %s", flat(first))
	}
}

func flat(r *harness.Result) string {
	var b strings.Builder
	for _, d := range r.Decisions {
		b.WriteString(d.Call + ":" + d.Fault + " ")
	}
	return b.String()
}

func mustParse(t *testing.T, text string) faults.Fault {
	t.Helper()
	f, err := faults.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestEndlessLoopIsStopped: a client that tries for ever without waiting neither hangs the run nor passes.
func TestEndlessLoopIsStopped(t *testing.T) {
	client := harness.RoundTripper("hot", func(base http.RoundTripper) http.RoundTripper {
		return roundTripFunc(func(r *http.Request) (*http.Response, error) {
			for {
				resp, err := base.RoundTrip(r.Clone(context.Background()))
				if err == nil && resp.StatusCode < 500 {
					return resp, nil
				}
				if err == nil {
					_ = resp.Body.Close()
				}
			}
		})
	})
	res := harness.Runner{RealCap: 3 * time.Second}.One(t, client, scenario(t, scenarios.Group{Method: "GET"}, "503 times=forever"))
	if v := verdict(res, "attempts.bounded"); v.Status != check.Fail {
		t.Errorf("attempts.bounded = %s (%s)", v.Status, v.Reason)
	}
	if res.Status != check.Fail {
		t.Errorf("status = %s", res.Status)
	}
	if n := len(res.History.Calls[0].Attempts); n != res.History.AttemptCap {
		t.Errorf("%d attempts kept, the cap is %d", n, res.History.AttemptCap)
	}
}

type roundTripFunc func(*http.Request) (*http.Response, error)

func (f roundTripFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestClientPanicIsAFinding: a client that panics fails its call and nothing else.
func TestClientPanicIsAFinding(t *testing.T) {
	client := harness.Client{Name: "panics", New: func(harness.Env) (harness.Caller, error) {
		return harness.CallerFunc(func(context.Context, harness.Call) harness.Outcome { panic("oh") }), nil
	}}
	res := harness.Runner{}.One(t, client, scenario(t, scenarios.Group{Method: "GET"}))
	if o := res.History.Calls[0].Outcome; o.OK || !strings.Contains(o.Panic, "oh") {
		t.Errorf("outcome = %+v", o)
	}
	if res.Status == check.Pass {
		t.Errorf("status = %s", res.Status)
	}
}

// TestClientThatCannotBeMade is the harness's finding, and undecided.
func TestClientThatCannotBeMade(t *testing.T) {
	client := harness.Client{Name: "broken", New: func(harness.Env) (harness.Caller, error) { return nil, errors.New("no licence") }}
	res := harness.Runner{}.One(t, client, scenario(t, scenarios.Group{Method: "GET"}))
	if res.Status != check.Unknown || len(res.Findings) == 0 || res.Findings[0].Kind != history.FindingHarness {
		t.Errorf("status %s, findings %v", res.Status, res.Findings)
	}
}

// TestVirtualNeedsT: without a T there is no bubble, and no verdict.
func TestVirtualNeedsT(t *testing.T) {
	res := harness.Runner{}.One(nil, plain(), scenario(t, scenarios.Group{Method: "GET"}))
	if res.Status != check.Unknown {
		t.Errorf("status = %s", res.Status)
	}
}

// TestUnmatchedRouteIsNoNetworkError: a client that goes elsewhere gets a marked 404, and the run says so.
func TestUnmatchedRouteIsNoNetworkError(t *testing.T) {
	client := harness.DoFunc("lost", func(base http.RoundTripper) func(*http.Request) (*http.Response, error) {
		return func(r *http.Request) (*http.Response, error) {
			r.URL.Path = "/chargez/" + strings.TrimPrefix(r.URL.Path, "/charges/")
			return base.RoundTrip(r)
		}
	})
	res := harness.Runner{}.One(t, client, scenario(t, scenarios.Group{Method: "GET"}))
	if res.History.Calls[0].Outcome.Status != http.StatusNotFound {
		t.Errorf("outcome = %+v", res.History.Calls[0].Outcome)
	}
	if len(res.Findings) != 1 || res.Findings[0].Kind != history.FindingUnmatched || !strings.Contains(res.Findings[0].Text, "/charges/c1") {
		t.Errorf("findings = %v", res.Findings)
	}
	if res.Status != check.Unknown {
		t.Errorf("status = %s", res.Status)
	}
}

// TestLeaksAreSeen: bodies never closed, connections left open, and goroutines left behind.
func TestLeaksAreSeen(t *testing.T) {
	bodies := harness.Client{Name: "bodies", New: func(env harness.Env) (harness.Caller, error) {
		return harness.CallerFunc(func(ctx context.Context, call harness.Call) harness.Outcome {
			req, err := call.Request(ctx)
			if err != nil {
				return harness.Outcome{Err: err}
			}
			resp, err := env.Transport.RoundTrip(req)
			if err != nil {
				return harness.Outcome{Err: err}
			}
			return harness.Outcome{OK: resp.StatusCode < 300, Status: resp.StatusCode}
		}), nil
	}}
	for _, w := range []world.Kind{world.Virtual, world.Loopback} {
		res := harness.Runner{World: w}.One(t, bodies, scenario(t, scenarios.Group{Method: "GET"}))
		if res.History.Leaks.Bodies != 1 || verdict(res, "resources.released").Status != check.Fail {
			t.Errorf("%s: leaks = %+v, verdict %+v", w, res.History.Leaks, verdict(res, "resources.released"))
		}
	}
	sleeper := harness.Client{Name: "sleeper", New: func(harness.Env) (harness.Caller, error) {
		return harness.CallerFunc(func(context.Context, harness.Call) harness.Outcome {
			go func() {
				for range time.Tick(time.Hour) {
				}
			}()
			return harness.Outcome{OK: true}
		}), nil
	}}
	res := harness.Runner{}.One(t, sleeper, scenario(t, scenarios.Group{Method: "GET"}))
	if len(res.History.Leaks.Goroutines) != 1 {
		t.Errorf("leaks = %+v", res.History.Leaks)
	}
}

// TestLedgerIsTheTruth walks the store through its modes with a client that repeats everything once.
func TestLedgerIsTheTruth(t *testing.T) {
	twice := harness.RoundTripper("twice", func(base http.RoundTripper) http.RoundTripper {
		return roundTripFunc(func(r *http.Request) (*http.Response, error) {
			first := r.Clone(r.Context())
			if r.GetBody != nil {
				first.Body, _ = r.GetBody()
			}
			if resp, err := base.RoundTrip(first); err == nil {
				_ = resp.Body.Close()
			}
			return base.RoundTrip(r)
		})
	})
	for _, c := range []struct {
		name     string
		group    scenarios.Group
		keys     scenarios.KeyMode
		fault    string
		effects  int
		statuses [2]int
	}{
		{"honoured", scenarios.Group{Key: true}, scenarios.Honour, "ok", 1, [2]int{200, 200}},
		{"ignored", scenarios.Group{Key: true}, scenarios.Ignore, "ok", 2, [2]int{200, 200}},
		{"unkeyed", scenarios.Group{}, scenarios.Honour, "ok", 2, [2]int{200, 200}},
		{"required and missing", scenarios.Group{}, scenarios.Require, "ok", 0, [2]int{400, 400}},
		{"put", scenarios.Group{Method: "PUT"}, scenarios.Honour, "ok", 2, [2]int{200, 200}},
		{"get", scenarios.Group{Method: "GET"}, scenarios.Honour, "ok", 0, [2]int{200, 200}},
		{"lost before the commit", scenarios.Group{Key: true}, scenarios.Honour, "connection_reset", 1, [2]int{0, 200}},
		{"lost after the commit", scenarios.Group{Key: true}, scenarios.Honour, "connection_reset@after_commit", 1, [2]int{0, 200}},
		{"in flight", scenarios.Group{Key: true}, scenarios.Honour, "empty_response@commit_late", 1, [2]int{0, 409}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := scenario(t, c.group, c.fault)
			s.Server.Keys = c.keys
			h := harness.Runner{}.One(t, twice, s).History
			if len(h.Effects) != c.effects {
				t.Errorf("%d effects, want %d", len(h.Effects), c.effects)
			}
			if n := len(h.Calls[0].Attempts); n != 2 {
				t.Fatalf("%d attempts", n)
			}
			for i, a := range h.Calls[0].Attempts {
				if a.Status != c.statuses[i] {
					t.Errorf("attempt %d: status %d, want %d", a.N, a.Status, c.statuses[i])
				}
			}
		})
	}
}
