package matchers_test

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/onsi/gomega"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/matchers"
	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/scenarios"
)

// twice sends every request twice: the second time to make sure.
type twice struct{ base http.RoundTripper }

func (t twice) RoundTrip(req *http.Request) (*http.Response, error) {
	first := req.Clone(req.Context())
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		first.Body = body
	}
	if resp, err := t.base.RoundTrip(first); err == nil {
		_ = resp.Body.Close()
	}
	return t.base.RoundTrip(req)
}

// run runs one POST of that client. A Ginkgo suite has a *testing.T for virtual time: see package example.
func run(client harness.Client, sequence ...faults.Fault) *harness.Result {
	s, err := scenarios.Validate(scenarios.Scenario{
		Name: "example/charge", Summary: "A POST.", Rule: "effects.once", Source: "RFC 9110 §9.2.2",
		Calls: []scenarios.Group{{}}, Faults: sequence,
	})
	if err != nil {
		panic(err)
	}
	return harness.Runner{World: world.Loopback, Seed: 7}.One(nil, client, s)
}

// A matcher judges one rule. Its message has the rule, the source of the rule, and the timeline of the call.
func Example() {
	careful := harness.RoundTripper("careful", func(base http.RoundTripper) http.RoundTripper { return base })
	anxious := harness.RoundTripper("anxious", func(base http.RoundTripper) http.RoundTripper { return twice{base} })

	// In a test this is NewWithT(t), and in Ginkgo the package's Expect.
	g := gomega.NewGomega(func(message string, _ ...int) {
		before, _, _ := strings.Cut(message, "    timeline of c1:") // its times differ on real sockets
		fmt.Print(before)
	})
	g.Expect(run(careful)).To(matchers.HoldEvery(check.Must))
	g.Expect(run(anxious)).NotTo(matchers.HaveNoDuplicateEffects())
	g.Expect(run(anxious)).To(matchers.HaveNoDuplicateEffects())
	// Output:
	// Expected anxious in example/charge (loopback world, seed 7) to keep this rule:
	//     effects.once (MUST): a non-idempotent call has at most one effect, and a call that reported success has its effect
	//     source: RFC 9110 §9.2.2
	//     fail: call c1 (POST) had 2 effects, by attempts 1, 2
}

// HoldCheck judges a rule of one's own.
func ExampleHoldCheck() {
	quiet := check.Check{
		ID: "mine.quiet", Holds: "a refusal is taken for an answer", Level: check.Must,
		Judge: func(h *history.History) check.Verdict {
			if n := len(h.Calls[0].Attempts); n > 1 {
				return check.Verdict{Status: check.Fail, Reason: fmt.Sprintf("it asked %d times", n), Calls: []string{"c1"}}
			}
			return check.Verdict{Status: check.Pass, Reason: "it asked once"}
		},
	}
	plain := harness.RoundTripper("plain", func(base http.RoundTripper) http.RoundTripper { return base })
	ok, err := matchers.HoldCheck(quiet).Match(run(plain, faults.Fault{Name: "status", Status: http.StatusForbidden}))
	fmt.Println(ok, err)
	// Output: true <nil>
}
