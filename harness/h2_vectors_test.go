package harness_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/scenarios"
)

// safeRetry is testdata/http2-safe-retry.json, a table of which failed requests may be sent again without
// knowing the method. It is drawn from RFC 9113 and from the tests of undici and curl: its field "sources" has the
// sections and commits.
type safeRetry struct {
	Cases []struct {
		ID     string `json:"id"`
		Stream int    `json:"request_stream"`
		Want   string `json:"want"`
	} `json:"cases"`
}

// vectorFaults says which faults a case is. What they put on the wire is shown by faults.TestH2Wire; the faults'
// streams here are those of the case: 1 on a fresh connection, 3 behind one request.
var vectorFaults = map[string][]string{
	"refused-stream":          {"h2_rst_stream code=REFUSED_STREAM"},
	"goaway-below":            {"h2_goaway last=below", "h2_goaway last=below then=open"},
	"goaway-zero":             {"h2_goaway last=below", "h2_goaway last=below then=open"},
	"goaway-below-with-error": {"h2_goaway last=below code=INTERNAL_ERROR"},
	"goaway-equal-then-close": {"h2_goaway@after_commit last=at", "h2_goaway@after_commit last=above"},
	"goaway-equal-still-open": {"h2_goaway@after_commit last=at then=open", "h2_goaway@after_commit last=above then=open"},
	"goaway-max":              {"h2_goaway@after_commit last=max then=open"},
	"goaway-twice-lower":      {"h2_goaway last=twice_lower"},
	"goaway-twice-higher":     {"h2_goaway last=raised"},
	"close-without-goaway":    {"h2_connection_closed@after_commit", "h2_connection_closed@after_commit end=rst"},
	"rst-other": {
		"h2_rst_stream@after_commit code=CANCEL", "h2_rst_stream@after_commit code=INTERNAL_ERROR",
		"h2_rst_stream@after_commit code=ENHANCE_YOUR_CALM", "h2_rst_stream@after_commit code=PROTOCOL_ERROR",
	},
	"rst-no-error-after-response": {"h2_rst_stream@after_commit code=NO_ERROR at=answer"},
	"headers-then-refused":        {"h2_rst_stream code=REFUSED_STREAM at=headers"},
	// The server's answer to too many streams is none of a fault: h2.TestMaxStreams and, with a real client,
	// h2.TestMaxStreamsQueue.
	"settings-max-streams": nil,
}

func TestHTTP2SafeRetryVectors(t *testing.T) {
	data, err := os.ReadFile("testdata/http2-safe-retry.json")
	if err != nil {
		t.Fatal(err)
	}
	var table safeRetry
	if err := json.Unmarshal(data, &table); err != nil {
		t.Fatal(err)
	}
	if len(table.Cases) != len(vectorFaults) {
		t.Errorf("%d cases, and proofs for %d", len(table.Cases), len(vectorFaults))
	}
	for _, c := range table.Cases {
		list, ok := vectorFaults[c.ID]
		if !ok {
			t.Errorf("%s: there is no proof", c.ID)
		}
		for _, fault := range list {
			t.Run(c.ID+" "+fault, func(t *testing.T) {
				conn := faults.Fresh
				if c.Stream > 1 {
					conn = faults.Reused
				}
				proveVector(t, c.Want, conn, fault)
			})
		}
	}
}

// proveVector holds the catalogue, the checks and the bundled client against what the table wants.
func proveVector(t *testing.T, want string, conn faults.ConnState, fault string) {
	run := func(c harness.Client, g scenarios.Group) *harness.Result {
		g.Deadline = 20 * time.Second
		return harness.Runner{}.One(t, c, h2Scenario(t, conn, g, fault))
	}
	f := mustParse(t, fault)
	good := harness.Bundled("retry", retry.Policy{})
	post, put := run(good, scenarios.Group{}), run(good, scenarios.Group{Method: "PUT"})
	for _, res := range []*harness.Result{post, put} {
		if res.Status != check.Pass {
			t.Errorf("the bundled client: %s", res.Explain(check.May))
		}
	}
	call := post.History.Calls[0]
	careless := verdict(run(blind(), scenarios.Group{}), "attempts.unsafe-not-repeated").Status
	switch want {
	case "any_method_may_retry":
		if !f.Unprocessed() || f.Category() != faults.Transport {
			t.Errorf("%s: unprocessed %v, %s", f, f.Unprocessed(), f.Category())
		}
		for _, phase := range []faults.Phase{faults.AfterCommit, faults.CommitLate} {
			lie := f
			if lie.Phase = phase; lie.Validate() == nil {
				t.Errorf("%s: a server that has committed may say so", lie)
			}
		}
		if !call.Outcome.OK || len(call.Attempts) != 2 || len(post.History.Effects) != 1 {
			t.Errorf("the POST was not repeated: %s", post.Explain(check.May))
		}
		if careless == check.Fail {
			t.Error("a repeat is held against its client")
		}
	case "idempotent_only":
		if f.Unprocessed() || f.Category() != faults.Transport {
			t.Errorf("%s: unprocessed %v, %s", f, f.Unprocessed(), f.Category())
		}
		if len(call.Attempts) != 1 || len(post.History.Effects) != 1 {
			t.Errorf("the POST was repeated: %s", post.Explain(check.May))
		}
		if p := put.History.Calls[0]; !p.Outcome.OK || len(p.Attempts) != 2 {
			t.Errorf("the PUT was not repeated: %s", put.Explain(check.May))
		}
		if careless != check.Fail {
			t.Errorf("a client that repeats a POST passes: %s", careless)
		}
	case "wait_for_response", "success":
		if f.Unprocessed() || f.Category() != faults.None {
			t.Errorf("%s: unprocessed %v, %s", f, f.Unprocessed(), f.Category())
		}
		if !call.Outcome.OK || len(call.Attempts) != 1 || len(post.History.Effects) != 1 {
			t.Errorf("the answer was not taken: %s", post.Explain(check.May))
		}
	case "server_is_broken":
		// Nothing is asked of the client but an end and one effect at most, and nothing held against it.
		if n := len(post.History.Effects); n > 1 || careless == check.Fail {
			t.Errorf("%d effects, a blind client gets %s", n, careless)
		}
	default:
		t.Errorf("the table wants %q, which this test does not know", want)
	}
}
