// Package harness runs a client through scenarios against a fake server that breaks on purpose, and
// judges what happened.
//
// With plain go test, one line gives one subtest a scenario, in virtual time:
//
//	func TestRetries(t *testing.T) {
//		library, err := scenarios.Library()
//		if err != nil {
//			t.Fatal(err)
//		}
//		harness.Run(t, harness.HTTPClient("mine", func(base http.RoundTripper) *http.Client {
//			return &http.Client{Transport: mylib.NewTransport(base)}
//		}), library...)
//	}
package harness

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/scenarios"
)

// SeedEnv is the environment variable that replays a run of go test.
const SeedEnv = "RETRYCHAOS_SEED"

// A Runner says how scenarios are run. The zero value is ready: virtual world, a random seed that is
// printed, findings of level SHOULD and above. A Runner is safe for concurrent use.
type Runner struct {
	World world.Kind  // default world.Virtual
	Seed  uint64      // 0: from RETRYCHAOS_SEED, else random
	Level check.Level // the least level that makes a scenario fail; default check.Should
	// Checks are further rules, judged after the built-in ones.
	Checks []check.Check
	// RealCap bounds the real time of one scenario; default 60s.
	RealCap time.Duration
	// AttemptCap bounds the attempts of one call; default server.DefaultAttemptCap.
	AttemptCap int
	// HeaderTimeout is the ResponseHeaderTimeout of the transports that clients are given, as an application sets it
	// that does not wait for ever; 0: none.
	HeaderTimeout time.Duration
}

// Run runs each scenario as a subtest of t, in the virtual world, and fails those with findings. It
// returns the results for those who want to look further.
func Run(t *testing.T, client Client, list ...scenarios.Scenario) []*Result {
	t.Helper()
	return Runner{}.Run(t, client, list...)
}

// Run is Run with the runner's settings.
func (r Runner) Run(t *testing.T, client Client, list ...scenarios.Scenario) []*Result {
	t.Helper()
	r = r.withDefaults()
	results := make([]*Result, 0, len(list))
	for _, s := range list {
		t.Run(s.Name, func(t *testing.T) {
			res := r.One(t, client, s)
			results = append(results, res)
			r.Report(t, res)
		})
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	return results
}

// Report ends a test with a result of One: it fails t with all that there is to say if there are findings at
// the runner's level, and skips it if the scenario was skipped. t must be the one of the calling goroutine.
func (r Runner) Report(t *testing.T, res *Result) {
	t.Helper()
	switch res.Status {
	case check.Pass:
	case check.Skipped:
		t.Skip(res.Reason)
	default:
		name := "^" + strings.ReplaceAll(t.Name(), "/", "$/^") + "$"
		t.Error(res.Explain(r.withDefaults().Level) + fmt.Sprintf("\nreplay: %s=%d go test -run '%s'", SeedEnv, res.Seed, name))
	}
}

func (r Runner) withDefaults() Runner {
	if r.World == "" {
		r.World = world.Virtual
	}
	if r.Seed == 0 {
		r.Seed = Seed()
	}
	if r.Level == "" {
		r.Level = check.Should
	}
	if r.RealCap == 0 {
		r.RealCap = time.Minute
	}
	return r
}

// Seed returns the seed of RETRYCHAOS_SEED, or a new one where that is not set to a number above zero.
func Seed() uint64 {
	if n, err := strconv.ParseUint(os.Getenv(SeedEnv), 10, 64); err == nil && n != 0 {
		return n
	}
	return NewSeed()
}

// NewSeed returns a random seed that is short enough to be typed.
func NewSeed() uint64 { return 1 + rand.Uint64N(1<<32) }

// One runs one scenario and judges it; it never fails t. t is needed in the virtual world only, whose
// bubbles are made by testing/synctest.
func (r Runner) One(t *testing.T, client Client, s scenarios.Scenario) *Result {
	r = r.withDefaults()
	res := &Result{
		Scenario: s.Name, Summary: s.Summary, Rule: s.Rule, Source: s.Source,
		Client: client.Name, World: string(r.World), Seed: r.Seed, Drawn: draws(s),
	}
	client, err := client.Meet()
	if res.Client == "" {
		res.Client = client.Name
	}
	if err != nil {
		res.Fault(err, r.Level)
		return res
	}
	if why := unfit(client, s, r.World); why != "" {
		res.Status, res.Reason = check.Skipped, why
		return res
	}
	if why := tooLarge(s, available()); why != "" {
		res.Status, res.Reason = check.Unknown, why
		return res
	}
	began := time.Now()
	d := newDrive(client, s, r.Seed)
	d.attemptCap, d.headerTimeout = r.AttemptCap, r.HeaderTimeout
	r.drive(t, d)
	res.Real = time.Since(began)
	res.History = d.history()
	res.Simulated = res.History.End
	res.Decisions = decisions(res.History)
	rules := append(check.All(), expectations(s))
	res.decide(append(rules, r.Checks...), func(res *Result) { res.excuse(client.Known) }, r.Level)
	return res
}

// drive runs what d has to, in the runner's world.
func (r Runner) drive(t *testing.T, d *drive) {
	defer paced(d.scenario, r.World)()
	switch {
	case r.World == world.Loopback:
		d.loopback(r.RealCap)
	case t == nil:
		d.finding(history.FindingHarness, "the virtual world needs a *testing.T")
	default:
		d.virtual(t, r.RealCap)
	}
}

// draws reports whether the scenario draws something from the seed that a client can tell.
func draws(s scenarios.Scenario) bool {
	return s.Draw != nil || s.Server.Capacity != nil ||
		slices.ContainsFunc(s.Calls, func(g scenarios.Group) bool { return g.Arrivals == scenarios.Poisson })
}

func decisions(h *history.History) []Decision {
	var out []Decision
	for _, c := range h.Calls {
		for _, a := range c.Attempts {
			out = append(out, Decision{Call: c.ID, Attempt: a.N, Fault: a.Fault})
		}
	}
	return out
}
