package harness_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

// twice sends everything two times, and keeps the second answer.
func twice(base http.RoundTripper) *http.Client {
	return &http.Client{Transport: roundTripper(func(req *http.Request) (*http.Response, error) {
		resp, err := base.RoundTrip(req)
		if err != nil {
			return nil, err
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		again := req.Clone(req.Context())
		if again.GetBody != nil {
			again.Body, _ = again.GetBody()
		}
		return base.RoundTrip(again)
	})}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// A failure that is declared is skipped with its reason; one that does not show is a finding.
func TestKnownFailures(t *testing.T) {
	list, err := scenarios.Load("k.yaml", []byte(`family: known
scenarios:
  - name: charge
    summary: a charge is made once
    rule: effects.once
    source: RFC 9110 §9.2.2
    calls: [{method: POST}]
    faults: []
`))
	if err != nil {
		t.Fatal(err)
	}
	known := func(check string) []scenarios.KnownFailure {
		return []scenarios.KnownFailure{{Scenario: "known/*", Check: check, Reason: "as documented"}}
	}
	plain := func(base http.RoundTripper) *http.Client { return &http.Client{Transport: base} }
	for _, tt := range []struct {
		name   string
		build  func(http.RoundTripper) *http.Client
		known  []scenarios.KnownFailure
		status check.Status
		reason string
	}{
		{"nothing declared", twice, nil, check.Fail, "effects.once"},
		{"declared", twice, slices.Concat(known("effects.once"), known("attempts.bounded"), known("attempts.unsafe-not-repeated")), check.Skipped, "known to fail (as documented)"},
		{"declared of another client", twice, []scenarios.KnownFailure{{Client: "other", Scenario: "*", Check: "effects.once", Reason: "r"}}, check.Fail, "effects.once"},
		{"declared and mended", plain, known("effects.once"), check.Fail, "effects.once passes, and is declared to fail"},
		{"does not apply", plain, known("key.stable"), check.Fail, "key.stable does not apply"},
		{"no such check", plain, known("effects.never"), check.Fail, `there is no check "effects.never"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := harness.HTTPClient("doubling", tt.build)
			c.Declared = history.Declared{MaxAttempts: 1}
			c.Known = tt.known
			res := harness.Runner{Seed: 1}.One(t, c, list[0])
			if res.Status != tt.status || !strings.Contains(res.Reason, tt.reason) {
				t.Errorf("%s: %s", res.Status, res.Reason)
			}
		})
	}
}
