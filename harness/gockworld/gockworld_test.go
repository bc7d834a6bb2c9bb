package gockworld_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/gockworld"
	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/scenarios"
)

func one(t *testing.T, c harness.Client, s scenarios.Scenario) *harness.Result {
	t.Helper()
	res, err := gockworld.World{Origin: origin}.One(t, c, s)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

func verdict(t *testing.T, res *harness.Result, id string) check.Status {
	t.Helper()
	for _, v := range res.Verdicts {
		if v.Check == id {
			return v.Status
		}
	}
	t.Fatalf("there is no verdict of %s", id)
	return ""
}

// TestDuplicates: the client cannot be pointed anywhere else, and its charges are counted all the same.
func TestDuplicates(t *testing.T) {
	for _, c := range []struct {
		name    string
		client  payments
		group   scenarios.Group
		keys    scenarios.KeyMode
		effects int
		once    check.Status
	}{
		{"no key", payments{}, scenarios.Group{}, scenarios.Honour, 2, check.Fail},
		{"a key that is dropped", payments{}, scenarios.Group{Key: true}, scenarios.Honour, 2, check.Fail},
		{"a key", payments{sendsKey: true}, scenarios.Group{Key: true}, scenarios.Honour, 1, check.Pass},
		{"a key that the server ignores", payments{sendsKey: true}, scenarios.Group{Key: true, KeyUntrusted: true}, scenarios.Ignore, 2, check.Fail},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := scenario(t, c.group, "503@after_commit")
			s.Server.Keys = c.keys
			res := one(t, vendored(c.client), s)
			h := res.History
			if len(h.Effects) != c.effects || verdict(t, res, "effects.once") != c.once {
				t.Errorf("%d effects, want %d; effects.once: %s, want %s\n%s", len(h.Effects), c.effects,
					verdict(t, res, "effects.once"), c.once, res.Explain(check.May))
			}
			call := h.Calls[0]
			if len(call.Attempts) != 2 || len(call.Trips) != 2 || call.Attempts[0].Status != 503 || call.Path != "/charges/c1" {
				t.Errorf("%d attempts and %d trips, want 2 and 2: %+v", len(call.Attempts), len(call.Trips), call)
			}
			if len(h.Faults) != 1 || h.Faults[0].Planned != 1 || h.Faults[0].Delivered != 1 || len(res.Findings) != 0 {
				t.Errorf("account %+v, findings %v", h.Faults, res.Findings)
			}
			if res.World != string(world.Virtual) || res.Simulated < time.Second || res.Simulated > 2*time.Second {
				t.Errorf("%v in the %s world; the client waits one second, on the world's clock", res.Simulated, res.World)
			}
		})
	}
}

// TestNonsense: an answer that makes no sense is a decoding error, and asking again is no cure.
func TestNonsense(t *testing.T) {
	s := scenario(t, scenarios.Group{Key: true}, "malformed_json variant=html times=forever")
	for _, c := range []struct {
		client   payments
		attempts int
		want     check.Status
	}{
		{payments{sendsKey: true}, 3, check.Fail},
		{payments{sendsKey: true, givesUpOnNonsense: true}, 1, check.Pass},
	} {
		res := one(t, vendored(c.client), s)
		if n := len(res.History.Calls[0].Attempts); n != c.attempts || verdict(t, res, "attempts.permanent-once") != c.want {
			t.Errorf("%d attempts, want %d; attempts.permanent-once: %s, want %s", n, c.attempts, verdict(t, res, "attempts.permanent-once"), c.want)
		}
		if !res.History.Calls[0].Outcome.Has("decoding") {
			t.Errorf("the application is told %+v", res.History.Calls[0].Outcome)
		}
	}
}

// TestRetryAfter: header fields come through, and so does the world's clock.
func TestRetryAfter(t *testing.T) {
	s := scenario(t, scenarios.Group{Key: true}, "429 retry-after=7s")
	for _, c := range []struct {
		obeys bool
		gap   time.Duration
		want  check.Status
	}{{false, time.Second, check.Fail}, {true, 7 * time.Second, check.Pass}} {
		res := one(t, vendored(payments{sendsKey: true, obeysRetryAfter: c.obeys}), s)
		a := res.History.Calls[0].Attempts
		if len(a) != 2 {
			t.Fatalf("%d attempts", len(a))
		}
		if gap := a[1].At - a[0].Ended; gap != c.gap || verdict(t, res, "timing.retry-after") != c.want {
			t.Errorf("a gap of %v, want %v; timing.retry-after: %s, want %s", gap, c.gap, verdict(t, res, "timing.retry-after"), c.want)
		}
	}
}

// TestLibrary runs what fits of the library. The adapters of package harness work here as they do elsewhere,
// and a good client is as good here.
func TestLibrary(t *testing.T) {
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	results := gockworld.World{Origin: origin}.Run(t, harness.Bundled("retry", retry.Policy{}), library...)
	fit := 0
	for _, s := range library {
		if gockworld.Fit(s) == nil {
			fit++
		}
	}
	if len(results) != fit || fit < 50 || fit == len(library) {
		t.Errorf("%d results of %d scenarios that fit, of %d", len(results), fit, len(library))
	}
}

// TestEveryFaultThatFits is delivered.
func TestEveryFaultThatFits(t *testing.T) {
	w := gockworld.World{Origin: "http://api.example.com:8080", Runner: harness.Runner{Seed: 1}}
	n := 0
	for _, e := range faults.Catalogue() {
		for _, f := range e.Combinations() {
			s, err := scenarios.Validate(scenarios.Scenario{Name: "test/fault", Summary: "a test", Rule: "effects.once", Source: "here",
				Calls: []scenarios.Group{{Key: true}}, Faults: []faults.Fault{f}})
			if err != nil {
				continue // it needs a server or a protocol of its own, which is more than gock has
			}
			res, err := w.One(t, harness.Bundled("retry", retry.Policy{}), s)
			if f.NeedsWire() {
				if err == nil {
					t.Errorf("%s is not refused", f)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", f, err)
				continue
			}
			n++
			if a := res.History.Faults; len(a) != 1 || a[0].Delivered != 1 || len(res.Findings) != 0 {
				t.Errorf("%s: account %+v, findings %v", f, a, res.Findings)
			}
		}
	}
	if n < 20 {
		t.Errorf("%d combinations fit", n)
	}
}

// TestOnLoopback: real time and a real socket to the server, without a *testing.T.
func TestOnLoopback(t *testing.T) {
	w := gockworld.World{Origin: "https://api.example.com", Runner: harness.Runner{World: world.Loopback}}
	var url, host string
	client := calls(func(ctx context.Context, base http.RoundTripper, call harness.Call) harness.Outcome {
		req, err := call.Request(ctx)
		if err != nil {
			return harness.Outcome{Err: err}
		}
		url = req.URL.String()
		resp, err := base.RoundTrip(req)
		if resp != nil {
			host = resp.Request.URL.Host
		}
		return harness.Receive(call, resp, err)
	})
	res, err := w.One(nil, client, scenario(t, scenarios.Group{}))
	if err != nil || res.Status != check.Pass {
		t.Fatalf("%v, %v", err, res)
	}
	if url != "https://api.example.com/charges/c1" || host != "api.example.com" {
		t.Errorf("the application asks for %s, and the response is one of %s", url, host)
	}
}
