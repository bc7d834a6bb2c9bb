package example_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/example"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

// adapter tells the harness how to make an instance of the client, and how its application uses it. Declared
// is what its author promises; the checks hold it to that.
func adapter(name string, careless bool) harness.Client {
	return harness.Client{
		Name: name,
		Declared: history.Declared{
			MaxAttempts: 4, Jitter: history.JitterFull,
			BaseDelay: 200 * time.Millisecond, MaxDelay: 10 * time.Second, MaxRetryAfter: time.Hour,
		},
		New: func(env harness.Env) (harness.Caller, error) {
			client := &example.Client{HTTP: &http.Client{Transport: env.Transport}, Careless: careless}
			return harness.CallerFunc(func(ctx context.Context, call harness.Call) harness.Outcome {
				if call.KeyHonoured {
					ctx = example.Repeatable(ctx)
				}
				req, err := call.Request(ctx)
				if err != nil {
					return harness.Outcome{Err: err}
				}
				resp, err := client.Do(req)
				return harness.Receive(call, resp, err)
			}), nil
		},
	}
}

// TestLibrary is all that it takes: each scenario is a subtest, in virtual time.
func TestLibrary(t *testing.T) {
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := scenarios.Match(library, "duplicates/*", "malformed-json/*", "permanent/*", "bodies/*")
	if err != nil {
		t.Fatal(err)
	}
	harness.Run(t, adapter("example", false), chosen...)
}

// lostAnswer is a scenario as a Go literal. It says what the YAML says.
func lostAnswer(t *testing.T) scenarios.Scenario {
	once := 1
	s, err := scenarios.Validate(scenarios.Scenario{
		Name:    "example/lost-answer",
		Summary: "A POST without a key is carried out and its answer is lost; a good client tells, and does not repeat.",
		Rule:    "effects.once",
		Source:  "RFC 9110 §9.2.2",
		Calls:   []scenarios.Group{{Method: http.MethodPost, Deadline: 12 * time.Second}},
		Faults:  []faults.Fault{{Name: "connection_reset", Phase: faults.AfterCommit}},
		Expect:  scenarios.Expect{MaxEffects: &once},
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestMistakeIsSeen looks at a result: its verdicts, what the server's ledger knows, and the explanation for
// people, which is what a failing subtest of harness.Run prints.
func TestMistakeIsSeen(t *testing.T) {
	res := harness.Runner{Seed: 7}.One(t, adapter("careless", true), lostAnswer(t))
	if res.Status != check.Fail {
		t.Fatalf("%s: %s", res.Status, res.Reason)
	}
	if n := len(res.History.Effects); n != 2 {
		t.Errorf("the card was charged %d times", n)
	}
	text := res.Explain(check.Must)
	for _, want := range []string{
		"fail effects.once (MUST): call c1 (POST) had 2 effects, by attempts 1, 2",
		"its source: RFC 9110 §9.2.2",
		"connection_reset@after_commit, commits effect 1, no status",
		"attempt 2: connection 2 fresh, ok, commits effect 2, status 200",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

// quick is a rule of one's own: a pure function from the history of a run to a verdict.
func quick(limit time.Duration) check.Check {
	return check.Check{
		ID: "example.quick", Holds: "every call is over within " + limit.String(), Level: check.Should,
		Judge: func(h *history.History) check.Verdict {
			for _, c := range h.Calls {
				if took := c.Ended - c.Started; took > limit {
					return check.Verdict{Status: check.Fail, Reason: c.ID + " took " + took.String(), Calls: []string{c.ID}}
				}
			}
			return check.Verdict{Status: check.Pass, Reason: "every call was quick"}
		},
	}
}

// TestRuleOfOnesOwn is judged with the built-in ones. Virtual time makes its verdict exact.
func TestRuleOfOnesOwn(t *testing.T) {
	s := lostAnswer(t)
	s.Calls[0].Method = http.MethodGet
	s.Faults = []faults.Fault{{Name: "latency", Delay: 3 * time.Second}}
	s, err := scenarios.Validate(s)
	if err != nil {
		t.Fatal(err)
	}
	for limit, want := range map[time.Duration]check.Status{2 * time.Second: check.Fail, 3 * time.Second: check.Pass} {
		res := harness.Runner{Checks: []check.Check{quick(limit)}}.One(t, adapter("example", false), s)
		if res.Status != want {
			t.Errorf("within %v: %s, want %s: %s", limit, res.Status, want, res.Reason)
		}
	}
}
