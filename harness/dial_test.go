package harness_test

import (
	"context"
	"errors"
	"net"
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

var bothWorlds = []world.Kind{world.Virtual, world.Loopback}

// quick is the bundled client with little patience, for real clocks.
//
// An attempt's timeout is short only where something hangs: elsewhere it would be the machine that is late.
func quick(fault string) harness.Client {
	p := retry.Policy{BaseDelay: 30 * time.Millisecond, AttemptTimeout: 15 * time.Second}
	if strings.Contains(fault, "_hang") {
		p.AttemptTimeout = 2 * time.Second
	}
	return harness.Bundled("retry", p)
}

// secure makes a scenario's server speak TLS before it is validated.
func secure(t *testing.T, g scenarios.Group, sequence ...string) scenarios.Scenario {
	t.Helper()
	s := scenario(t, g)
	s.Server.TLS = true
	for _, text := range sequence {
		s.Faults = append(s.Faults, mustParse(t, text))
	}
	s, err := scenarios.Validate(s)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// faultsOf writes what the attempts of a call met.
func faultsOf(c *history.Call) string {
	var list []string
	for _, a := range c.Attempts {
		list = append(list, a.Fault)
	}
	return strings.Join(list, ", ")
}

func accountOf(h *history.History, fault string) history.Account {
	for _, a := range h.Faults {
		if a.Fault == fault {
			return a
		}
	}
	return history.Account{}
}

// TestConnectionFaults drives the bundled client through each of them, once and then well: the journal, the
// account and the outcome agree, in both worlds.
func TestConnectionFaults(t *testing.T) {
	for _, tc := range []struct {
		fault  string
		tls    bool
		method string
		again  bool   // the bundled client repeats it, and then succeeds
		trait  string // else the error shows it
		sent   bool
		either bool // whether anything was sent is a race
		conn   bool
	}{
		{fault: "connect_refused", method: "POST", again: true},
		{fault: "dns_temporary", method: "POST", again: true},
		{fault: "dns_not_found", method: "GET", trait: history.TraitDNS},
		{fault: "accept_hang", method: "GET", again: true, sent: true, conn: true},
		{fault: "accept_hang", method: "POST", trait: history.TraitTimeout, sent: true, conn: true},
		{fault: "accept_hang", method: "POST", tls: true, again: true, conn: true},
		{fault: "close_at_accept", method: "GET", again: true, either: true, conn: true},
		{fault: "close_at_accept end=rst", method: "GET", again: true, either: true, conn: true},
		{fault: "close_at_accept end=rst", method: "POST", tls: true, again: true, conn: true},
		{fault: "tls_handshake_failure", method: "POST", tls: true, again: true, conn: true},
		{fault: "tls_version_refused", method: "GET", tls: true, again: true, conn: true},
		{fault: "tls_handshake_hang", method: "POST", tls: true, again: true, conn: true},
		{fault: "tls_close_in_handshake", method: "POST", tls: true, again: true, conn: true},
		{fault: "tls_bad_certificate", method: "GET", tls: true, trait: history.TraitCertificate, conn: true},
	} {
		t.Run(strings.NewReplacer(" ", "-", "=", "-").Replace(tc.fault+"-"+tc.method), func(t *testing.T) {
			g := scenarios.Group{Method: tc.method, Deadline: 20 * time.Second}
			plan := scenario
			if tc.tls {
				plan = secure
			}
			s := plan(t, g, tc.fault, "ok")
			for _, w := range bothWorlds {
				res := harness.Runner{World: w, Level: check.May}.One(t, quick(tc.fault), s)
				c := res.History.Calls[0]
				want := mustParse(t, tc.fault).String()
				if tc.again {
					want += ", ok"
				}
				if got := faultsOf(c); got != want || c.Outcome.OK != tc.again || res.Status != check.Pass {
					t.Errorf("%s: attempts met %s, want %s\n%s", w, got, want, res.Explain(check.May))
					continue
				}
				a := c.Attempts[0]
				if !a.Connection || !tc.either && a.Unsent == tc.sent || (a.Conn > 0) != tc.conn || a.Status != 0 || a.Method != tc.method || !a.Delivered || a.Hidden || a.Unmet || a.Reused {
					t.Errorf("%s: journaled as %+v", w, a)
				}
				if len(c.Trips) != len(c.Attempts) || c.TripOf(a) != &c.Trips[0] {
					t.Errorf("%s: %d trips for %d attempts", w, len(c.Trips), len(c.Attempts))
				}
				if got := accountOf(res.History, a.Fault); got.Planned != 1 || got.Claimed != 1 || got.Delivered != 1 {
					t.Errorf("%s: account %+v", w, got)
				}
				if tc.trait != "" && !c.Outcome.Has(tc.trait) {
					t.Errorf("%s: the error shows %v, want %s", w, c.Outcome.Traits, tc.trait)
				}
			}
		})
	}
}

// TestNoDialNoFault: on a reused connection there is no dial. The fault stays unclaimed, the attempt is well,
// and the next attempt gets the next entry.
func TestNoDialNoFault(t *testing.T) {
	for _, w := range bothWorlds {
		s := scenario(t, scenarios.Group{Method: "GET"}, "connect_refused", "503", "ok")
		s.Connection = faults.Reused
		res := harness.Runner{World: w}.One(t, quick(""), s)
		c := res.History.Calls[0]
		if faultsOf(c) != "ok" || !c.Attempts[0].Reused || accountOf(res.History, "connect_refused").Claimed != 0 {
			t.Errorf("%s: %s\n%s", w, faultsOf(c), res.Explain(check.May))
		}
	}
}

// TestStaleThenRefused: the connection is dead and the port refuses. net/http resends a keyed POST by itself, so
// that the refused dial is hidden inside one RoundTrip.
func TestStaleThenRefused(t *testing.T) {
	for _, w := range bothWorlds {
		s := scenario(t, scenarios.Group{Key: true}, "empty_response on=reused", "connect_refused", "ok")
		s.Connection = faults.Reused
		res := harness.Runner{World: w}.One(t, plain(), s)
		c := res.History.Calls[0]
		if faultsOf(c) != "empty_response on=reused, connect_refused" || len(c.Trips) != 1 ||
			c.Attempts[0].Hidden || !c.Attempts[1].Hidden || c.Attempts[1].Key == "" || c.Attempts[1].Key != c.Attempts[0].Key {
			t.Errorf("%s: %s", w, res.Explain(check.May))
		}
		if !c.Outcome.Has(history.TraitRefused) {
			t.Errorf("%s: %+v", w, c.Outcome)
		}
	}
}

// TestUnmet: a call whose handshake hangs is given the connection that another call has done with. It never
// meets the fault, which is nobody else's either.
func TestUnmet(t *testing.T) {
	s := secure(t, scenarios.Group{Method: "GET", Name: "slow", Deadline: 20 * time.Second, Faults: []faults.Fault{mustParse(t, "latency delay=1s")}})
	s.Calls = append(s.Calls, scenarios.Group{Method: "GET", Name: "hung", Path: "/other/{call}", Start: 500 * time.Millisecond,
		Deadline: 20 * time.Second, Faults: []faults.Fault{mustParse(t, "tls_handshake_hang")}})
	s, err := scenarios.Validate(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range bothWorlds {
		res := harness.Runner{World: w, Level: check.May}.One(t, plain(), s)
		c := res.History.Calls[1]
		if res.Status != check.Pass || faultsOf(c) != "tls_handshake_hang, ok" || !c.Outcome.OK || len(c.Trips) != 1 || len(c.Made()) != 1 {
			t.Fatalf("%s: %s: %+v\n%s", w, faultsOf(c), c.Outcome, res.Explain(check.May))
		}
		if a := c.Attempts[0]; !a.Unmet || c.Attempts[1].Hidden || c.TripOf(c.Attempts[1]) == nil || len(c.Gaps()) != 0 || c.Last() != c.Attempts[1] {
			t.Errorf("%s: %+v", w, a)
		}
	}
}

// TestOwnTransport: a client that dials by itself meets faults of a connection where its dials carry the context of a
// call. Where they do not, nothing can be claimed, which is nobody's fault but the harness's.
func TestOwnTransport(t *testing.T) {
	own := func(with func(context.Context) context.Context) harness.Client {
		return harness.Client{Name: "own", Declared: history.Declared{MaxAttempts: 1}, New: func(env harness.Env) (harness.Caller, error) {
			tr := &http.Transport{DialContext: env.DialContext, TLSClientConfig: env.TLS, DisableKeepAlives: true}
			return harness.CallerFunc(func(ctx context.Context, call harness.Call) harness.Outcome {
				req, err := call.Request(with(ctx))
				if err != nil {
					return harness.Outcome{Err: err}
				}
				resp, err := tr.RoundTrip(req)
				return harness.Receive(call, resp, err)
			}), nil
		}}
	}
	bound := own(func(ctx context.Context) context.Context { return ctx })
	loose := own(func(context.Context) context.Context { return context.Background() })
	no := false
	for _, w := range bothWorlds {
		for _, s := range []scenarios.Scenario{
			scenario(t, scenarios.Group{Key: true}, "connect_refused"),
			secure(t, scenarios.Group{Method: "GET"}, "tls_bad_certificate"),
		} {
			s.Expect.OK = &no
			res := harness.Runner{World: w}.One(t, bound, s)
			if c := res.History.Calls[0]; res.Status != check.Pass || faultsOf(c) != s.Faults[0].String() || c.Outcome.OK || len(c.Trips) != 0 {
				t.Errorf("%s: %s", w, res.Explain(check.May))
			}
			res = harness.Runner{World: w}.One(t, loose, s)
			if c := res.History.Calls[0]; res.Status != check.Unknown || len(res.Findings) != 1 || faultsOf(c) != "ok" || !c.Outcome.OK {
				t.Errorf("%s: %s", w, res.Explain(check.May))
			}
		}
		s := secure(t, scenarios.Group{Method: "GET"}, "503")
		if res := (harness.Runner{World: w}).One(t, loose, s); len(res.Findings) > 0 || faultsOf(res.History.Calls[0]) != "503" {
			t.Errorf("%s: %s", w, res.Explain(check.May))
		}
	}
}

// TestEndlessRefusals: whoever dials in a hot loop is stopped at the cap, in virtual time as well.
func TestEndlessRefusals(t *testing.T) {
	hot := harness.RoundTripper("hot", func(base http.RoundTripper) http.RoundTripper {
		return roundTrip(func(req *http.Request) (*http.Response, error) {
			for {
				resp, err := base.RoundTrip(req.Clone(req.Context()))
				if err == nil || errors.Is(err, context.Canceled) {
					return resp, err
				}
			}
		})
	})
	for _, w := range bothWorlds {
		res := harness.Runner{World: w}.One(t, hot, scenario(t, scenarios.Group{Method: "GET"}, "connect_refused times=forever"))
		c := res.History.Calls[0]
		if v := verdict(res, "attempts.bounded"); v.Status != check.Fail || !c.Capped || len(c.Attempts) != res.History.AttemptCap {
			t.Errorf("%s: %d attempts, capped %v\n%s", w, len(c.Attempts), c.Capped, res.Explain(check.May))
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestWireFaultsThroughTLS: what strikes at the request does so through TLS as well, with the same errors.
func TestWireFaultsThroughTLS(t *testing.T) {
	for fault, trait := range map[string]string{
		"connection_reset@after_commit": history.TraitReset,
		"empty_response@after_commit":   history.TraitEOF,
		"truncated_body end=rst":        history.TraitReset,
		"truncated_body end=fin":        history.TraitUnexpectedEOF,
		"hang":                          history.TraitTimeout,
		"stall_body":                    history.TraitTimeout,
		"503":                           "",
		"malformed_json variant=html":   history.TraitDecoding,
		"stall_body delay=50ms":         "ok",
		"latency delay=50ms":            "ok",
	} {
		t.Run(strings.Fields(strings.ReplaceAll(fault, "@", " "))[0], func(t *testing.T) {
			s := secure(t, scenarios.Group{Method: "POST", Deadline: time.Minute}, fault)
			for _, conn := range []faults.ConnState{faults.AnyConn, faults.Reused} {
				for _, w := range bothWorlds {
					s.Connection = conn
					client := harness.HTTPClient("plain", func(base http.RoundTripper) *http.Client {
						c := &http.Client{Transport: base}
						if trait == history.TraitTimeout {
							c.Timeout = 2 * time.Second // the attempt must have arrived by then
						}
						return c
					})
					res := harness.Runner{World: w, Level: check.May}.One(t, client, s)
					c := res.History.Calls[0]
					stale := conn == faults.Reused && c.Attempts[0].Status == 0 && trait != history.TraitTimeout // no sentinel
					if len(res.Findings) > 0 || len(c.Attempts) != 1 || !c.Attempts[0].Delivered || c.Outcome.OK != (trait == "ok") ||
						trait != "" && trait != "ok" && !stale && !c.Outcome.Has(trait) {
						t.Errorf("%s %s: want %s, got %+v\n%s", w, conn, trait, c.Outcome, res.Explain(check.May))
					}
				}
			}
		})
	}
}

// TestDialElsewhere: the server's name leads to the server and to no other port, and other addresses are dialled
// as they are.
func TestDialElsewhere(t *testing.T) {
	var errs []error
	client := harness.Client{Name: "wanderer", New: func(env harness.Env) (harness.Caller, error) {
		return harness.CallerFunc(func(ctx context.Context, call harness.Call) harness.Outcome {
			for _, addr := range []string{"server.test:1", "127.0.0.1:1", "nonsense"} {
				_, err := env.DialContext(ctx, "tcp", addr)
				errs = append(errs, err)
			}
			return harness.Outcome{Err: errors.New("wandering")}
		}), nil
	}}
	harness.Runner{}.One(t, client, scenario(t, scenarios.Group{}, "connect_refused"))
	var addr *net.AddrError
	if len(errs) != 3 || !errors.As(errs[0], &addr) || errs[1] == nil || errs[2] == nil {
		t.Errorf("%v", errs)
	}
}
