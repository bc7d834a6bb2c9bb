package harness_test

import (
	"testing"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/scenarios"
)

// TestKeyFormsAtEveryServer has the bundled client send quoted and bare keys, of its own and the application's, to
// servers of every profile. Only one pair does not go together: a bare key is none by the header draft, and the
// client takes the 400 for final.
func TestKeyFormsAtEveryServer(t *testing.T) {
	for _, profile := range []scenarios.Profile{scenarios.Plain, scenarios.IETF, scenarios.Stripe} {
		for form, bare := range map[string]bool{"quoted": false, "bare": true} {
			for whose, text := range map[string]string{"clients": "", "applications": `order "7"`} {
				t.Run(string(profile)+"-"+form+"-"+whose, func(t *testing.T) {
					s := scenario(t, scenarios.Group{Key: true, KeyText: text}, "connection_reset@after_commit", "503")
					s.Server.Profile = profile
					res := harness.Runner{}.One(t, harness.Bundled("retry", retry.Policy{BareKeys: bare}), s)
					call := res.History.Calls[0]
					if res.Status != check.Pass {
						t.Error(res.Explain(check.Should))
					}
					if profile == scenarios.IETF && bare {
						// The faults strike on the way, so that the third attempt is the first to be told.
						if len(res.History.Effects) != 0 || len(call.Attempts) != 3 || call.Outcome.Status != 400 {
							t.Errorf("effects %v, outcome %+v", res.History.Effects, call.Outcome)
						}
						return
					}
					if len(res.History.Effects) != 1 || len(call.Attempts) != 3 || !call.Outcome.OK || !call.Attempts[2].Replayed {
						t.Errorf("%d effects, %d attempts, %+v", len(res.History.Effects), len(call.Attempts), call.Outcome)
					}
					want := map[bool]string{false: `"order \"7\""`, true: `order "7"`}[bare]
					if text != "" && call.Attempts[0].Key != want {
						t.Errorf("the key on the wire is %s, want %s", call.Attempts[0].Key, want)
					}
				})
			}
		}
	}
}

// TestApplicationsKeyForm: an application that makes its keys writes them as its server has them documented, and a
// client that passes them on unchanged gets along with every profile.
func TestApplicationsKeyForm(t *testing.T) {
	for profile, want := range map[scenarios.Profile]string{
		scenarios.Plain: `"order-c1"`, scenarios.IETF: `"order-c1"`, scenarios.Stripe: "order-c1",
	} {
		s := scenario(t, scenarios.Group{Key: true, KeyText: "order-{call}", Count: 2}, "ok")
		s.Server = scenarios.Server{Keys: scenarios.Require, Profile: profile}
		res := harness.Runner{}.One(t, plain(), s)
		for i, c := range res.History.Calls {
			if !c.Outcome.OK || c.KeyText != "order-"+c.ID {
				t.Errorf("%s: %+v", profile, c)
			}
			if i == 0 && c.Attempts[0].Key != want {
				t.Errorf("%s: %s on the wire, want %s", profile, c.Attempts[0].Key, want)
			}
		}
	}
}

// TestExpiryIsRecorded: the history says how long keys were kept, so that a stored one can be judged.
func TestExpiryIsRecorded(t *testing.T) {
	for want, server := range map[string]scenarios.Server{
		"0s":      {},
		"24h0m0s": {Profile: scenarios.IETF},
		"5s":      {Profile: scenarios.Stripe, Expiry: 5e9},
		"7s":      {Profile: scenarios.Plain, Expiry: 7e9},
	} {
		s := scenario(t, scenarios.Group{Key: true}, "ok")
		s.Server = server
		s.Server.Keys = scenarios.Honour
		if got := (harness.Runner{}).One(t, plain(), s).History.KeyExpiry; got.String() != want {
			t.Errorf("%+v: kept for %v, want %s", server, got, want)
		}
	}
}

// TestToldIdempotent: a POST that the application calls idempotent is repeated by a client that is told, twice done
// is no finding, and a client that cannot be told is not blamed for giving up.
func TestToldIdempotent(t *testing.T) {
	told := scenario(t, scenarios.Group{Idempotent: true}, "connection_reset@after_commit")
	res := harness.Runner{}.One(t, harness.Bundled("retry", retry.Policy{}), told)
	if len(res.History.Effects) != 2 || !res.History.Calls[0].MayRepeat || res.Status != check.Pass {
		t.Errorf("%d effects\n%s", len(res.History.Effects), res.Explain(check.Should))
	}
	untold := told
	untold.Calls = append([]scenarios.Group(nil), told.Calls...)
	untold.Calls[0].Idempotent = false
	res = harness.Runner{}.One(t, harness.Bundled("retry", retry.Policy{}), untold)
	if len(res.History.Effects) != 1 || len(res.History.Calls[0].Attempts) != 1 {
		t.Errorf("untold: %d effects", len(res.History.Effects))
	}
	res = harness.Runner{}.One(t, plain(), told)
	if v := verdict(res, "liveness.recovers"); v.Status != check.Skipped {
		t.Errorf("a client that cannot be told: %s (%s)", v.Status, v.Reason)
	}
	deaf := plain()
	deaf.Declared = history.Declared{CanBeTold: true}
	res = harness.Runner{}.One(t, deaf, told)
	if v := verdict(res, "liveness.recovers"); v.Status != check.Fail {
		t.Errorf("a client that was told and gave up: %s (%s)", v.Status, v.Reason)
	}
}
