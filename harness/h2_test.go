package harness_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os/exec"
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

// h2Scenario makes a valid scenario over HTTP/2.
func h2Scenario(t *testing.T, conn faults.ConnState, g scenarios.Group, sequence ...string) scenarios.Scenario {
	t.Helper()
	s := scenarios.Scenario{Name: "test/http2", Summary: "A test.", Rule: "effects.once", Source: "here",
		Calls: []scenarios.Group{g}, Connection: conn, Server: scenarios.Server{Protocol: faults.HTTP2}}
	for _, text := range sequence {
		s.Faults = append(s.Faults, mustParse(t, text))
	}
	s, err := scenarios.Validate(s)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// blind repeats whatever fails, three times, and keeps net/http from doing so.
func blind() harness.Client {
	return harness.RoundTripper("blind", func(base http.RoundTripper) http.RoundTripper {
		return roundTripFunc(func(r *http.Request) (resp *http.Response, err error) {
			var body []byte
			if r.Body != nil {
				if body, err = io.ReadAll(r.Body); err != nil {
					return nil, err
				}
			}
			for range 3 {
				again := r.Clone(r.Context())
				again.GetBody = nil
				again.Body = io.NopCloser(bytes.NewReader(body))
				if resp, err = base.RoundTrip(again); err != nil {
					continue
				}
				whole, readErr := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err = readErr; err == nil {
					resp.Body = io.NopCloser(bytes.NewReader(whole))
					return resp, nil
				}
			}
			return nil, err
		})
	})
}

// TestHTTP2HiddenResends: net/http sends again inside one RoundTrip what HTTP/2 says was not processed, and what
// a PROTOCOL_ERROR says nothing of. Each such attempt is marked, on one connection and on several.
func TestHTTP2HiddenResends(t *testing.T) {
	for _, c := range []struct {
		sequence []string
		conns    []int // connection of each attempt
		effects  int
	}{
		{[]string{"h2_rst_stream code=REFUSED_STREAM", "h2_rst_stream code=REFUSED_STREAM"}, []int{1, 1, 1}, 1},
		{[]string{"h2_goaway", "h2_goaway last=twice_lower then=open"}, []int{1, 2, 3}, 1},
		{[]string{"h2_rst_stream code=REFUSED_STREAM", "h2_goaway then=open", "h2_rst_stream code=REFUSED_STREAM"}, []int{1, 1, 2, 2}, 1},
		{[]string{"h2_rst_stream@after_commit code=PROTOCOL_ERROR"}, []int{1, 2}, 2},
	} {
		t.Run(strings.Join(c.sequence, ", "), func(t *testing.T) {
			s := h2Scenario(t, faults.AnyConn, scenarios.Group{Count: 2, Every: 10 * time.Second}, c.sequence...)
			for _, w := range []world.Kind{world.Virtual, world.Loopback} {
				s.Calls[0].Count = 2
				if w == world.Loopback {
					s.Calls[0].Count, s.Calls[0].Every = 1, 0 // where time is real, a second one might come in between
				}
				res := harness.Runner{World: w}.One(t, plain(), s)
				for _, call := range res.History.Calls {
					if len(call.Trips) != 1 || len(call.Attempts) != len(c.conns) || !call.Outcome.OK {
						t.Fatalf("%s: %d trips, %d attempts; want 1, %d\n%s", w, len(call.Trips), len(call.Attempts), len(c.conns), res.Explain(check.May))
					}
					for i, a := range call.Attempts {
						if a.Hidden != (i > 0) {
							t.Errorf("%s: attempt %d of %s: hidden = %v", w, a.N, call.ID, a.Hidden)
						}
						if w == world.Virtual && call.ID == "c1" && a.Conn != c.conns[i] {
							t.Errorf("%s: attempt %d is on connection %d, want %d", w, a.N, a.Conn, c.conns[i])
						}
					}
				}
				if n := len(res.History.Effects); n != s.Calls[0].Count*c.effects {
					t.Errorf("%s: %d effects, want %d", w, n, s.Calls[0].Count*c.effects)
				}
				if len(res.Findings) > 0 {
					t.Errorf("%s: findings %v", w, res.Findings)
				}
			}
		})
	}
}

// TestHTTP2EndlessResends: what net/http sends again without end is stopped by the harness, and what it sends
// with an end of its own is counted; the verdict says who did it.
func TestHTTP2EndlessResends(t *testing.T) {
	for _, c := range []struct {
		fault    string
		capped   bool
		attempts int
	}{
		{"h2_goaway times=forever", true, 64},
		{"h2_rst_stream code=REFUSED_STREAM times=forever", false, 8},
	} {
		t.Run(c.fault, func(t *testing.T) {
			client := plain()
			client.Declared.MaxAttempts = 1
			s := h2Scenario(t, faults.AnyConn, scenarios.Group{Deadline: 5 * time.Minute}, c.fault)
			res := harness.Runner{RealCap: 10 * time.Second}.One(t, client, s)
			call := res.History.Calls[0]
			if call.Capped != c.capped || len(call.Attempts) != c.attempts || len(call.Trips) != 1 || call.HiddenAttempts() != c.attempts-1 {
				t.Errorf("capped %v, %d attempts of which %d are hidden, %d trips; want %v, %d, %d, 1",
					call.Capped, len(call.Attempts), call.HiddenAttempts(), len(call.Trips), c.capped, c.attempts, c.attempts-1)
			}
			v := verdict(res, "attempts.bounded")
			if v.Status != check.Fail || !strings.Contains(v.Reason, "resent by net/http") {
				t.Errorf("attempts.bounded = %s (%s)", v.Status, v.Reason)
			}
			if len(res.Findings) > 0 {
				t.Errorf("findings %v", res.Findings)
			}
		})
	}
}

// TestHTTP2BundledRepeatsWhatWasNotProcessed, a POST without a key, and makes every attempt itself.
func TestHTTP2BundledRepeatsWhatWasNotProcessed(t *testing.T) {
	for _, fault := range []string{
		"h2_rst_stream code=REFUSED_STREAM", "h2_goaway", "h2_goaway then=open", "h2_goaway code=ENHANCE_YOUR_CALM",
		"h2_goaway code=INTERNAL_ERROR then=open", "h2_goaway last=twice_lower", "h2_goaway last=twice_lower code=INTERNAL_ERROR",
	} {
		for _, conn := range []faults.ConnState{faults.Fresh, faults.Reused} {
			for _, w := range []world.Kind{world.Virtual, world.Loopback} {
				res := harness.Runner{World: w}.One(t, harness.Bundled("retry", retry.Policy{BaseDelay: 50 * time.Millisecond}), h2Scenario(t, conn, scenarios.Group{}, fault))
				call := res.History.Calls[0]
				if !call.Outcome.OK || len(call.Attempts) != 2 || call.HiddenAttempts() != 0 || len(res.History.Effects) != 1 || res.Status != check.Pass {
					t.Errorf("%s, %s, %s: %d attempts, %d of them hidden\n%s", fault, conn, w, len(call.Attempts), call.HiddenAttempts(), res.Explain(check.May))
				}
			}
		}
	}
}

// TestHTTP2BodyStalls: a body of more than the window stops there; a shorter one cannot be stalled, and that the
// fault was not delivered is a finding.
func TestHTTP2BodyStalls(t *testing.T) {
	for _, c := range []struct {
		size      int
		delivered bool
	}{{100_000, true}, {2_000, false}} {
		for _, w := range []world.Kind{world.Virtual, world.Loopback} {
			// Only an attempt that stalls needs an end. Where time is real it must be far from what an attempt
			// that goes well takes on a busy machine.
			timeout, deadline := 200*time.Millisecond, 10*time.Second
			if w == world.Loopback {
				timeout, deadline = 2*time.Second, time.Minute
			}
			if !c.delivered {
				timeout = retry.NoTimeout
			}
			g := scenarios.Group{Method: "PUT", Body: strings.Repeat("x", c.size), Deadline: deadline}
			res := harness.Runner{World: w}.One(t, harness.Bundled("retry", retry.Policy{AttemptTimeout: timeout}),
				h2Scenario(t, faults.AnyConn, g, "h2_flow_control_stall variant=request"))
			first := res.History.Calls[0].Attempts[0]
			if first.Delivered != c.delivered && c.delivered || !res.History.Calls[0].Outcome.OK {
				t.Errorf("%s: delivered = %v\n%s", w, first.Delivered, res.Explain(check.May))
			}
			undelivered := len(res.Findings) == 1 && res.Findings[0].Kind == history.FindingUndelivered
			if undelivered == c.delivered {
				t.Errorf("%s, %d bytes: findings %v", w, c.size, res.Findings)
			}
			if c.delivered && res.Status != check.Pass {
				t.Errorf("%s: %s", w, res.Explain(check.May))
			}
		}
	}
}

// TestHTTP2Upload: 4 MiB go through the windows of the server, and are what the application gave.
func TestHTTP2Upload(t *testing.T) {
	g := scenarios.Group{Method: "PUT", Body: strings.Repeat("x", 1<<20), Count: 4}
	for _, w := range []world.Kind{world.Virtual, world.Loopback} {
		res := harness.Runner{World: w}.One(t, harness.Bundled("retry", retry.Policy{}), h2Scenario(t, faults.Reused, g, "503"))
		if res.Status != check.Pass || verdict(res, "body.intact").Status != check.Pass {
			t.Errorf("%s: %s", w, res.Explain(check.May))
		}
	}
}

// TestHTTP2SharedConnection: one stream's fault may end the connection under the others. Their attempts end
// without an answer, which is no failure of the harness.
func TestHTTP2SharedConnection(t *testing.T) {
	s := h2Scenario(t, faults.Reused, scenarios.Group{Name: "slow", Method: "PUT", Count: 3, Faults: []faults.Fault{mustParse(t, "latency delay=300ms")}})
	s.Calls = append(s.Calls, scenarios.Group{Name: "closer", Method: "PUT", Start: 100 * time.Millisecond, Faults: []faults.Fault{mustParse(t, "h2_connection_closed end=rst")}})
	s, err := scenarios.Validate(s)
	if err != nil {
		t.Fatal(err)
	}
	res := harness.Runner{}.One(t, harness.Bundled("retry", retry.Policy{}), s)
	if res.Status != check.Pass {
		t.Error(res.Explain(check.May))
	}
	for _, call := range res.History.Calls {
		if len(call.Attempts) != 2 || !call.Outcome.OK {
			t.Errorf("call %s: %d attempts", call.ID, len(call.Attempts))
		}
	}
}

// TestHTTP2NeedsHTTP2: who does not speak it is told so, and it is no network error of the scenario's.
func TestHTTP2NeedsHTTP2(t *testing.T) {
	s := h2Scenario(t, faults.AnyConn, scenarios.Group{Method: "GET"})
	own := harness.Client{Name: "own transport", New: func(env harness.Env) (harness.Caller, error) {
		tr := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			return env.DialContext(ctx, network, addr)
		}}
		return harness.CallerFunc(func(ctx context.Context, call harness.Call) harness.Outcome {
			defer tr.CloseIdleConnections()
			req, err := call.Request(ctx)
			if err != nil {
				return harness.Outcome{Err: err}
			}
			resp, err := tr.RoundTrip(req)
			return harness.Receive(call, resp, err)
		}), nil
	}}
	for _, w := range []world.Kind{world.Virtual, world.Loopback} {
		res := harness.Runner{World: w}.One(t, own, s)
		if got := res.History.Calls[0].Outcome.Status; got != http.StatusHTTPVersionNotSupported {
			t.Errorf("%s: status %d (%s)", w, got, res.History.Calls[0].Outcome.Error)
		}
		if len(res.Findings) != 1 || res.Findings[0].Kind != history.FindingUnmatched || !strings.Contains(res.Findings[0].Text, "HTTP/2") || res.Status != check.Unknown {
			t.Errorf("%s: %s, findings %v", w, res.Status, res.Findings)
		}
	}
	process, err := harness.Exec("true", "true {url}")
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if res := (harness.Runner{World: world.Loopback}).One(nil, process, s); res.Status != check.Skipped || !strings.Contains(res.Reason, "HTTP/2") {
		t.Errorf("a process: %s (%s)", res.Status, res.Reason)
	}
}
