package harness_test

import (
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/scenarios"
)

// scaleEnv is how many clients TestScale puts into one world. What it takes, for 100,000, is told by:
//
//	go test -c -o scale.test ./harness
//	RETRYCHAOS_SCALE=100000 /usr/bin/time -v ./scale.test -test.run 'TestScale/retry'
const scaleEnv = "RETRYCHAOS_SCALE"

// TestScale has many clients, each with a transport and a connection of its own, meet an outage of 28 s.
func TestScale(t *testing.T) {
	n := 1000
	if text := os.Getenv(scaleEnv); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	s, err := scenarios.Validate(scenarios.Scenario{
		Name: "scale/outage", Summary: "Many clients meet an outage.", Rule: "timing.spread", Source: "HERD",
		Worlds: []scenarios.World{scenarios.Virtual}, Why: "no machine has so many clients in real time",
		Calls:  []scenarios.Group{{Method: "GET", Count: n, Fleet: true, Deadline: 10 * time.Minute}},
		Storms: []faults.Storm{{To: 28 * time.Second, Fault: faults.Fault{Name: "status", Phase: faults.BeforeCommit, Status: 503}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	plain := harness.HTTPClient("plain", func(base http.RoundTripper) *http.Client { return &http.Client{Transport: base} })
	plain.Declared = history.Declared{MaxAttempts: 1}
	for _, c := range []harness.Client{plain, harness.Bundled("retry", retry.Policy{})} {
		t.Run(c.Name, func(t *testing.T) {
			res := harness.Runner{Seed: 1, RealCap: 30 * time.Minute}.One(t, c, s)
			attempts := 0
			for _, call := range res.History.Calls {
				attempts += len(call.Attempts)
			}
			t.Logf("%d clients: %d attempts, %v of virtual time in %v", n, attempts, res.Simulated, res.Real)
			if res.Status != check.Pass || len(res.Findings) > 0 {
				t.Error(res.Explain(check.Should))
			}
			if attempts < n || c.Name == "retry" && attempts != 4*n {
				t.Errorf("%d attempts of %d clients", attempts, n)
			}
		})
	}
}
