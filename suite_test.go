package retrychaos_test

import (
	"fmt"
	"net/http"
	"os"
	"runtime/debug"
	"slices"
	"sync"
	"testing"

	"github.com/h2non/gock"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	"golang.org/x/sync/errgroup"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/controls"
	"github.com/retrychaos/retrychaos/harness/gockworld"
	"github.com/retrychaos/retrychaos/harness/matchers"
	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/scenarios"
)

// onLoopback are the scenarios that the suite also runs over real sockets and the real clock: one of each
// kind of fault, and short.
var onLoopback = []string{
	"duplicates/post-keyed-honour-*",
	"duplicates/post-unkeyed-*",
	"malformed-json/*",
	"permanent/*",
	"connection/refused-*-post",
	"connection/dns-*",
	"connection/accept-hang-*",
	"tls/certificate-*",
	"tls/*-keyed-post",
}

func TestRetrychaos(t *testing.T) {
	RegisterFailHandler(Fail)
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	seed := harness.Seed()
	// The specs are made here and not in package variables: the bubbles of the virtual world need this t.
	bundledInVirtualTime(t, seed, library)
	bundledOnLoopback(t, seed, library)
	controlsAreCaught(t, seed, library)
	hostBuiltIn(t, seed, library)

	suite, reporter := GinkgoConfiguration()
	if os.Getenv("NO_COLOR") != "" {
		reporter.NoColor = true
	}
	fmt.Fprintf(os.Stderr, "replay: %s=%d go test .\n", harness.SeedEnv, seed)
	RunSpecs(t, "retrychaos", suite, reporter)
}

// entries makes a table entry of each scenario.
func entries(list []scenarios.Scenario) []TableEntry {
	out := make([]TableEntry, 0, len(list))
	for _, s := range list {
		out = append(out, Entry(s.Name, Label(s.Family()), s))
	}
	return out
}

func bundledInVirtualTime(t *testing.T, seed uint64, library []scenarios.Scenario) {
	runner := harness.Runner{Seed: seed}
	client := harness.Bundled("retry", retry.Policy{})
	DescribeTable("the bundled client in virtual time", Label("bundled", "virtual"),
		func(s scenarios.Scenario) { expectPass(runner.One(t, client, s)) },
		entries(library))
}

func bundledOnLoopback(t *testing.T, seed uint64, library []scenarios.Scenario) {
	list, err := scenarios.Match(library, onLoopback...)
	if err != nil {
		t.Fatal(err)
	}
	runner := harness.Runner{Seed: seed, World: world.Loopback}
	client := harness.Bundled("retry", retry.Policy{})
	// They wait on a real clock, so they wait side by side; each spec then looks at its own result.
	results := sync.OnceValue(func() map[string]*harness.Result {
		out := make(map[string]*harness.Result, len(list))
		var mu sync.Mutex
		run := func(list []scenarios.Scenario, parallel int) (again []scenarios.Scenario) {
			var group errgroup.Group
			group.SetLimit(parallel)
			for _, s := range list {
				group.Go(func() error {
					res := runner.One(nil, client, s)
					mu.Lock()
					defer mu.Unlock()
					out[s.Name] = res
					if res.Doubtful() {
						again = append(again, s)
					}
					return nil
				})
			}
			_ = group.Wait()
			return again
		}
		// A machine that was late for its own timers, as with the tests of other packages beside these, is no client's fault.
		if again := run(list, len(list)); len(again) > 0 {
			fmt.Fprintf(os.Stderr, "%d scenarios once more, fewer at a time: this machine was late for its own timers\n", len(again))
			run(again, 8)
		}
		return out
	})
	DescribeTable("the bundled client on loopback", Label("bundled", "loopback"),
		func(s scenarios.Scenario) { expectPass(results()[s.Name]) },
		entries(list))
}

// expectPass fails the spec with everything that there is to say about the run. A scenario that does not
// run in this world is skipped, and says why.
func expectPass(res *harness.Result) {
	GinkgoHelper()
	if res.Status == check.Skipped {
		Skip(res.Reason)
	}
	Expect(res.Status).To(Equal(check.Pass), res.Explain(check.Should))
}

// raceDetector reports whether it is built in. Everything takes several times as long then, and it has seen all of the
// harness's code in the other specs.
func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-race" && s.Value == "true" })
}

func controlsAreCaught(t *testing.T, seed uint64, library []scenarios.Scenario) {
	runner := harness.Runner{Seed: seed}
	var table []TableEntry
	for _, c := range controls.All() {
		table = append(table, Entry(c.Client.Name, Label(c.Breaks), c))
	}
	DescribeTable("a client that is wrong on purpose is caught by the check meant for it, and by no other", Label("controls", "virtual"),
		func(c controls.Control) {
			if raceDetector() {
				Skip("the race detector is on: package controls runs what is near to each rule; the whole library is run without it")
			}
			var results []*harness.Result
			for _, s := range library {
				if c.Meets(s) {
					results = append(results, runner.One(t, c.Client, s))
				}
			}
			k := c.Review(results)
			Expect(c.Caught(k)).To(BeTrue(), "%s was not seen by %s in %d scenarios", c.Client.Name, c.Breaks, len(results))
			Expect(k.Strays).To(BeEmpty())
			for _, id := range c.Consequences {
				Expect(k.By).To(HaveKey(id), "a listed consequence does not follow")
			}
		}, table)
}

// hostBuiltIn judges clients that cannot be pointed at the fake server. gock is one per process, so its specs
// are Serial.
func hostBuiltIn(t *testing.T, seed uint64, library []scenarios.Scenario) {
	place := gockworld.World{Origin: "https://api.example.com/v1", Runner: harness.Runner{Seed: seed}}
	good := harness.Bundled("retry", retry.Policy{})
	blind := controls.Good()
	for _, c := range controls.All() {
		if c.Client.Name == "control/retries-post-blindly" {
			blind = c
		}
	}
	Describe("a client with its host built in", Serial, Label("gock", "virtual"), func() {
		var fit []TableEntry
		for _, s := range library {
			if gockworld.Fit(s) == nil {
				fit = append(fit, Entry(s.Name, Label(s.Family()), s))
			}
		}
		DescribeTable("is judged like any other", func(s scenarios.Scenario) {
			res, err := place.One(t, good, s)
			Expect(err).NotTo(HaveOccurred())
			expectPass(res)
			Expect(http.DefaultTransport).To(BeIdenticalTo(gock.NativeTransport))
		}, fit)

		It("is caught when it charges twice", func() {
			list, err := scenarios.Match(library, "duplicates/post-unkeyed-*")
			Expect(err).NotTo(HaveOccurred())
			failed := 0
			for _, s := range list {
				res, err := place.One(t, blind.Client, s)
				if err != nil {
					Expect(err).To(BeAssignableToTypeOf(&gockworld.NeedsWireError{}))
					continue
				}
				if res.Status == check.Fail {
					failed++
					Expect(res).NotTo(matchers.HaveNoDuplicateEffects())
				}
			}
			Expect(failed).To(BeNumerically(">", 0), "it was never seen to charge twice")
		})
	})
}
