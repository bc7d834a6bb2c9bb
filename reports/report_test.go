package reports

import (
	"slices"
	"testing"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
)

var belowLevel = check.Verdict{Check: "timing.spread", Level: check.Should, Reason: "no spread"}

func TestExitCode(t *testing.T) {
	ok := result("a", "f/ok")
	fail := failing(result("a", "f/fail"), check.Verdict{Check: "effects.once", Reason: "two effects"})
	should := failing(result("a", "f/should"), belowLevel)
	may := failing(result("a", "f/may"), check.Verdict{Check: "x", Level: check.May, Reason: "r"})
	verdict := func(s check.Status, l check.Level) harness.Result {
		r := result("a", "f/v")
		r.Status = s
		r.Verdicts = append(r.Verdicts, check.Verdict{Check: "x", Status: s, Level: l, Reason: "r"})
		return r
	}
	found := func(r harness.Result, kind string) harness.Result {
		r.Findings = []history.Finding{{Kind: kind, Text: "t"}}
		if r.Status == check.Pass {
			r.Status = check.Unknown
		}
		return r
	}
	bare := func(s check.Status) harness.Result {
		r := result("a", "f/bare")
		r.Status, r.Verdicts = s, nil
		return r
	}
	broken := bare(check.Unknown)
	broken.Findings = []history.Finding{{Kind: history.FindingHarness, Text: "no listener"}}
	aside := verdict(check.Skipped, check.Must)
	aside.Verdicts = aside.Verdicts[1:]

	for _, c := range []struct {
		name              string
		results           []harness.Result
		must, should, may int
	}{
		{"nothing judged", nil, 3, 3, 3},
		{"pass", []harness.Result{ok}, 0, 0, 0},
		{"fail at MUST", []harness.Result{ok, fail}, 1, 1, 1},
		{"fail at SHOULD", []harness.Result{ok, should}, 0, 1, 1},
		{"fail at MAY", []harness.Result{ok, may}, 0, 0, 1},
		{"unknown at MUST", []harness.Result{ok, verdict(check.Unknown, check.Must)}, 3, 3, 3},
		{"unknown at SHOULD", []harness.Result{ok, verdict(check.Unknown, check.Should)}, 0, 3, 3},
		{"fail wins over unknown", []harness.Result{fail, verdict(check.Unknown, check.Must)}, 1, 1, 1},
		{"undelivered", []harness.Result{found(ok, history.FindingUndelivered)}, 3, 3, 3},
		{"unmatched", []harness.Result{found(ok, history.FindingUnmatched)}, 3, 3, 3},
		{"unclaimed", []harness.Result{found(ok, history.FindingUnclaimed)}, 3, 3, 3},
		{"world cap", []harness.Result{found(ok, history.FindingWorldCap)}, 3, 3, 3},
		{"harness", []harness.Result{found(ok, history.FindingHarness)}, 3, 3, 3},
		{"world cap and fail", []harness.Result{found(fail, history.FindingWorldCap)}, 1, 1, 1},
		{"world cap and fail at SHOULD", []harness.Result{found(should, history.FindingWorldCap)}, 3, 1, 1},
		{"harness without verdicts", []harness.Result{ok, broken}, 3, 3, 3},
		{"skipped beside pass", []harness.Result{ok, bare(check.Skipped)}, 0, 0, 0},
		{"only skipped", []harness.Result{bare(check.Skipped), aside}, 3, 3, 3},
		{"fail without a verdict", []harness.Result{bare(check.Fail)}, 1, 1, 1},
		{"unknown without a verdict", []harness.Result{bare(check.Unknown)}, 3, 3, 3},
		{"no status at all", []harness.Result{bare("")}, 3, 3, 3},
	} {
		r := New(Run{}, c.results)
		for level, want := range map[check.Level]int{check.Must: c.must, check.Should: c.should, check.May: c.may} {
			if got := r.ExitCode(level); got != want {
				t.Errorf("%s: ExitCode(%s) = %d, want %d", c.name, level, got, want)
			}
		}
	}
}

func TestNewSortsAndCounts(t *testing.T) {
	results := []harness.Result{
		result("stranger", "a/1"), result("b", "z/1"), result("a", "a/2"), result("a", "a/1"), result("b", "a/1"),
	}
	slices.Reverse(results)
	before := results[0].Scenario
	r := New(Run{Clients: []ClientInfo{{Name: "b"}, {Name: "a"}}}, results)
	var got []string
	for _, res := range r.Results {
		got = append(got, res.Client+" "+res.Scenario)
	}
	want := []string{"b a/1", "b z/1", "a a/1", "a a/2", "stranger a/1"}
	if !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
	if len(r.Clients) != 3 || r.Clients[2].Name != "stranger" {
		t.Errorf("clients %+v: the client of a result must be listed", r.Clients)
	}
	if results[0].Scenario != before {
		t.Error("New changed the caller's results")
	}
	if r.Level != check.Should || r.Simulated != 5*3e9 || r.Real == 0 {
		t.Errorf("level %s, simulated %s, real %s", r.Level, r.Simulated, r.Real)
	}
	if got, want := oneClient().Counts(), (Counts{Total: 21, Passed: 12, Failed: 5, Unknown: 2, Skipped: 2}); got != want {
		t.Errorf("counts %+v, want %+v", got, want)
	}
	if w := oneClient().Worst(); w != check.Fail {
		t.Errorf("worst is %s", w)
	}
}

func TestGroups(t *testing.T) {
	failed, undecided := oneClient().findings()
	if len(failed) != 2 || len(undecided) != 2 {
		t.Fatalf("%d failures and %d undecided, want 2 and 2", len(failed), len(undecided))
	}
	if n := len(failed[0].results); n != 4 {
		t.Errorf("the first group has %d scenarios, want 4: the most first", n)
	}
	cmd := oneClient().reproduce(failed[0])
	want := `retrychaos run --client example --scenario duplicates/post-unkeyed-hung-server-ignore --seed 42 --world virtual`
	if cmd != want {
		t.Errorf("reproduce\n%s\nwant\n%s", cmd, want)
	}
	r := New(Run{Clients: []ClientInfo{{Name: "c", Repro: "retrychaos run --exec 'curl {url}'"}}},
		[]harness.Result{failing(result("c", "herd/x"), belowLevel)})
	failed, _ = r.findings()
	want = `retrychaos run --exec 'curl {url}' --scenario herd/x --seed 42 --world virtual --level should`
	if got := r.reproduce(failed[0]); got != want {
		t.Errorf("reproduce\n%s\nwant\n%s", got, want)
	}
}

// A list that is cut after as many findings as there are rules shows each of them.
func TestEveryRuleComesEarly(t *testing.T) {
	var results []harness.Result
	for i, n := range []int{5, 4, 3, 2, 1} {
		for j := range n {
			name := string(rune('a'+i)) + "/" + string(rune('0'+j))
			results = append(results, failing(result("c", name), check.Verdict{Check: "common", Reason: "r"}))
		}
	}
	results = append(results, failing(result("c", "z/rare"), check.Verdict{Check: "rare", Reason: "r"}))
	failed, _ := New(Run{}, results).findings()
	var got []string
	for _, g := range failed[:3] {
		got = append(got, g.verdict.Check+" "+g.family)
	}
	if want := []string{"common a", "rare z", "common b"}; !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
	if got, want := byRule(failed), []ruleCount{{"common", check.Must, 15}, {"rare", check.Must, 1}}; !slices.Equal(got, want) {
		t.Errorf("by rule %v, want %v", got, want)
	}
}
