package example_test

import (
	"testing"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/gockworld"
	. "github.com/retrychaos/retrychaos/harness/matchers"
	"github.com/retrychaos/retrychaos/scenarios"
)

// TestSuite is the bootstrap of a Ginkgo suite. The specs are made in here, and not in package variables,
// because the bubbles of virtual time need this t.
func TestSuite(t *testing.T) {
	RegisterFailHandler(Fail)
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	specs(t, library)
	RunSpecs(t, "example client")
}

func specs(t *testing.T, library []scenarios.Scenario) {
	runner := harness.Runner{Seed: harness.Seed()}
	client := adapter("example", false)

	// A table entry a scenario, with its family as a label: -ginkgo.label-filter rate-limits.
	var entries []TableEntry
	for _, s := range library {
		switch s.Family() {
		case "rate-limits", "keys":
			entries = append(entries, Entry(s.Name, Label(s.Family()), s))
		}
	}
	DescribeTable("the client in virtual time", func(s scenarios.Scenario) {
		res := runner.One(t, client, s)
		if res.Status == check.Skipped {
			Skip(res.Reason)
		}
		Expect(res.Status).To(Equal(check.Pass), res.Explain(check.Should))
	}, entries)

	// Where one rule is meant, a matcher says which. Its message has the rule, its source and the timeline.
	Describe("a POST whose answer is lost", func() {
		It("is not repeated", func() {
			res := runner.One(t, client, lostAnswer(t))
			Expect(res).To(And(HaveNoDuplicateEffects(), RepeatOnlyWhatIsSafe(), TellTheLastRealFailure()))
			Expect(res).To(HoldEvery(check.Must))
			Expect(res).To(HoldCheck(quick(time.Second)))
		})
		It("is repeated by a careless client, which is caught", func() {
			Expect(runner.One(t, adapter("careless", true), lostAnswer(t))).NotTo(HaveNoDuplicateEffects())
		})
	})

	// A client with its host built in: see package gockworld. gock is one per process, so the spec is Serial.
	Describe("with its host built in", Serial, func() {
		It("obeys Retry-After", func() {
			list, err := scenarios.Match(library, "rate-limits/*")
			Expect(err).NotTo(HaveOccurred())
			place := gockworld.World{Origin: "https://api.example.com", Runner: runner}
			judged := 0
			for _, s := range list {
				if gockworld.Fit(s) != nil {
					continue // it needs a wire
				}
				res, err := place.One(t, client, s)
				Expect(err).NotTo(HaveOccurred())
				Expect(res.Status).To(Equal(check.Pass), res.Explain(check.Should))
				judged++
			}
			Expect(judged).To(BeNumerically(">", 10))
		})
	})
}
