package harness_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/scenarios"
)

// stubborn is a transport that sends everything three times if need be, which is how cards are charged twice.
type stubborn struct{ base http.RoundTripper }

func (s stubborn) RoundTrip(req *http.Request) (resp *http.Response, err error) {
	for range 3 {
		again := req.Clone(req.Context())
		if req.GetBody != nil {
			if again.Body, err = req.GetBody(); err != nil {
				return nil, err
			}
		}
		if resp, err = s.base.RoundTrip(again); err == nil {
			break
		}
	}
	return resp, err
}

func newStubborn(base http.RoundTripper) http.RoundTripper { return stubborn{base} }

// lost is a POST that is carried out, and whose answer is lost.
func lost() scenarios.Scenario {
	s, err := scenarios.Validate(scenarios.Scenario{
		Name:    "example/lost-answer",
		Summary: "A POST is carried out and its answer is lost; a good client does not repeat it.",
		Rule:    "effects.once",
		Source:  "RFC 9110 §9.2.2",
		Calls:   []scenarios.Group{{Method: http.MethodPost}},
		Faults:  []faults.Fault{{Name: "empty_response", Phase: faults.AfterCommit}},
	})
	if err != nil {
		panic(err)
	}
	return s
}

// One test function gives one subtest a scenario, in virtual time. Package example has a whole test to copy.
func ExampleRun() {
	// func TestRetries(t *testing.T) {
	testRetries := func(t *testing.T) {
		library, err := scenarios.Library()
		if err != nil {
			t.Fatal(err)
		}
		harness.Run(t, harness.RoundTripper("stubborn", newStubborn), library...)
	}
	_ = testRetries
}

// One scenario, written as a Go literal, on real sockets: there no *testing.T is needed.
func ExampleRunner_One() {
	runner := harness.Runner{World: world.Loopback, Seed: 7}
	res := runner.One(nil, harness.RoundTripper("stubborn", newStubborn), lost())

	fmt.Println(res.Status)
	for _, e := range res.History.Effects {
		fmt.Printf("effect %d by attempt %d of %s\n", e.N, e.Attempt, e.Call)
	}
	// Output:
	// fail
	// effect 1 by attempt 1 of c1
	// effect 2 by attempt 2 of c1
}

// Explain says which rule is broken, where it comes from, and how it came about.
func ExampleResult_Explain() {
	runner := harness.Runner{World: world.Loopback, Seed: 7}
	res := runner.One(nil, harness.RoundTripper("stubborn", newStubborn), lost())

	for line := range strings.Lines(res.Explain(check.Must)) {
		if strings.Contains(line, "  call c1:") {
			break // the timeline follows, with times that differ from run to run on real sockets
		}
		fmt.Print(line)
	}
	// Output:
	// example/lost-answer, stubborn in the loopback world: fail
	//   A POST is carried out and its answer is lost; a good client does not repeat it.
	//
	// fail effects.once (MUST): call c1 (POST) had 2 effects, by attempts 1, 2
	//   the rule: a non-idempotent call has at most one effect, and a call that reported success has its effect
	//   its source: RFC 9110 §9.2.2
}

// A rule of one's own is a function from the history of a run to a verdict. It is judged after the built-in
// ones.
func ExampleRunner_checks() {
	oneConnection := check.Check{
		ID: "mine.one-connection", Holds: "a call needs one connection", Level: check.Must,
		Judge: func(h *history.History) check.Verdict {
			for _, c := range h.Calls {
				conns := map[int]bool{}
				for _, a := range c.Attempts {
					conns[a.Conn] = true
				}
				if len(conns) > 1 {
					return check.Verdict{Status: check.Fail, Reason: fmt.Sprintf("%s used %d connections", c.ID, len(conns)), Calls: []string{c.ID}}
				}
			}
			return check.Verdict{Status: check.Pass, Reason: "one was enough"}
		},
	}
	runner := harness.Runner{World: world.Loopback, Seed: 7, Checks: []check.Check{oneConnection}}
	res := runner.One(nil, harness.RoundTripper("stubborn", newStubborn), lost())
	for _, v := range res.Verdicts {
		if v.Check == oneConnection.ID {
			fmt.Println(v.Status, v.Check, "-", v.Reason)
		}
	}
	// Output:
	// fail mine.one-connection - c1 used 2 connections
}
