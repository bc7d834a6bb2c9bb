package herd

import (
	"fmt"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/scenarios"
)

// triggers is every way to overload a server, at every load and with a short and a long queue; few of them where short.
func triggers(short bool) []Setting {
	settings := Outages(short)
	loads, queues := []float64{0.3, 0.5, 0.7, 0.8, 0.9}, []int{50, 500}
	at := settings[0].Incidents[0].At
	if short {
		loads, queues = []float64{0.3, 0.8}, []int{500}
	}
	for _, load := range loads {
		for _, queue := range queues {
			for _, i := range []scenarios.Incident{
				{At: at, For: 5 * time.Second, Do: scenarios.Stall},
				{At: at, For: 10 * time.Second, Do: scenarios.Refuse},
				{At: at, For: 5 * time.Second, Do: scenarios.Slow, Factor: 5},
				{At: at, For: time.Second, Do: scenarios.Burst, Count: 300},
				{At: at, For: 2 * time.Second, Do: scenarios.Restart, Factor: 3, Count: 100},
			} {
				if short && i.Do != scenarios.Stall {
					continue
				}
				s := settings[0]
				s.Load, s.Capacity.Queue, s.Incidents = load, queue, []scenarios.Incident{i}
				s.Name = fmt.Sprintf("%s-load%.0f-q%d", i.Do, 100*load, queue)
				settings = append(settings, s)
			}
		}
	}
	return settings
}

// TestDefaultBudgetRecovers: where a server recovers from an outage with clients that never retry, it recovers with
// the bundled client as it comes. seedsEnv makes it try everything.
func TestDefaultBudgetRecovers(t *testing.T) {
	_, short := seeds(t)
	compared := 0
	for _, s := range triggers(short) {
		recovery := map[string]history.Load{}
		for _, name := range []string{"none", "default"} {
			p, err := FindPolicies(name)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Do(t, p[0].Client(s.Timeout, 0), s, 3)
			if err != nil {
				t.Fatal(err)
			}
			recovery[name] = r.Load
		}
		compared += asGoodAsNone(t, s.Name, recovery["none"], recovery["default"])
	}
	if compared == 0 {
		t.Error("no server recovered: nothing was compared")
	}
}

// TestDefaultBudgetRecoversInTheLibrary is the same for the scenarios of the library.
func TestDefaultBudgetRecoversInTheLibrary(t *testing.T) {
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	_, short := seeds(t)
	compared := 0
	for _, s := range library {
		if s.Server.Capacity == nil {
			continue
		}
		if short && s.Name != "overload/burst-of-others" && s.Name != "overload/refusal" {
			continue
		}
		load := func(name string, p retry.Policy) history.Load {
			res := harness.Runner{Seed: 3}.One(t, harness.Bundled(name, p), s)
			for _, f := range res.Findings {
				t.Errorf("%s, %s: the harness: %s", s.Name, name, f.Text)
			}
			l, ok := res.History.Load()
			if !ok {
				t.Errorf("%s, %s: no load was measured", s.Name, name)
			}
			return l
		}
		compared += asGoodAsNone(t, s.Name, load("none", retry.Policy{MaxAttempts: 1}), load("default", retry.Policy{}))
	}
	if compared == 0 {
		t.Error("no server recovered: nothing was compared")
	}
}

// asGoodAsNone returns 1 where the server recovered without retries, so that there was something to compare.
func asGoodAsNone(t *testing.T, name string, none, got history.Load) int {
	t.Helper()
	t.Logf("%-24s without retries: %s after %v; with the default: %s after %v, %.2f attempts a call", name, none.Recovery, none.Took, got.Recovery, got.Took, got.After)
	if none.Recovery != history.Recovered {
		return 0
	}
	if got.Recovery != history.Recovered {
		t.Errorf("%s: %s with the default, and without retries it recovers", name, got.Recovery)
	}
	return 1
}
