package harness_test

import (
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/scenarios"
)

// BenchmarkVirtualHerd has clients of their own meet an outage in virtual time, by turns with one processor and with all
// that there are. It reports the time of an attempt with one, checks included, and how many times as long it takes with
// all (all-processors): the command line, and harness for large fleets, go down to one for that. Medians over the turns.
func BenchmarkVirtualHerd(b *testing.B) {
	const clients = 500
	s, err := scenarios.Validate(scenarios.Scenario{
		Name: "bench/outage", Summary: "Clients meet an outage.", Rule: "timing.spread", Source: "gRFC A6",
		Worlds: []scenarios.World{scenarios.Virtual}, Why: "it is a matter of virtual time",
		Calls:  []scenarios.Group{{Method: "GET", Count: clients, Fleet: true, Deadline: 10 * time.Minute}},
		Storms: []faults.Storm{{To: 28 * time.Second, Fault: faults.Fault{Name: "status", Phase: faults.BeforeCommit, Status: 503}}},
	})
	if err != nil {
		b.Fatal(err)
	}
	client := harness.Bundled("retry", retry.Policy{})
	attempts := 0
	timed := func(processors int) (took time.Duration) {
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(processors))
		runtime.GC()
		// A bubble needs a *testing.T, and a benchmark has none: testing.RunTests lends one, and says nothing of a test that passes.
		ok := testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "bubble", F: func(t *testing.T) {
			start := time.Now()
			res := harness.Runner{Seed: 1}.One(t, client, s)
			took = time.Since(start)
			if res.Status != check.Pass {
				t.Error(res.Explain(check.Should))
			}
			attempts = len(res.Decisions)
		}}})
		if !ok {
			b.FailNow()
		}
		return took
	}
	var ones, ratios []float64
	for b.Loop() {
		all, one := timed(runtime.NumCPU()), timed(1)
		ones = append(ones, float64(one.Nanoseconds())/float64(attempts))
		ratios = append(ratios, float64(all)/float64(one))
	}
	slices.Sort(ones)
	slices.Sort(ratios)
	b.ReportMetric(ones[len(ones)/2], "ns/attempt")
	b.ReportMetric(ratios[len(ratios)/2], "all-processors")
	b.ReportMetric(0, "ns/op") // of both together: says nothing
}
