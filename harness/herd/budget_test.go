package herd

import (
	"testing"

	"github.com/retrychaos/retrychaos/harness/history"
)

// TestDefaultBudgetRecovers: where a server recovers from an outage with clients that never retry, it recovers with
// the bundled client as it comes.
func TestDefaultBudgetRecovers(t *testing.T) {
	settings := Outages(true)
	for _, load := range []float64{0.3, 0.8} {
		s := settings[0]
		s.Load = load
		settings = append(settings, s)
	}
	for _, s := range settings {
		recovery := map[string]history.Recovery{}
		for _, name := range []string{"none", "default"} {
			p, err := FindPolicies(name)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Do(t, p[0].Client(s.Timeout, 0), s, 3)
			if err != nil {
				t.Fatal(err)
			}
			recovery[name] = r.Load.Recovery
			t.Logf("%s at %.1f, %s: %s after %v, %.2f attempts a call", s.Name, s.Load, name, r.Load.Recovery, r.Load.Took, r.Load.After)
		}
		if recovery["none"] == history.Recovered && recovery["default"] != history.Recovered {
			t.Errorf("%s at a load of %.1f: %s with the default, and without retries it recovers", s.Name, s.Load, recovery["default"])
		}
	}
}
