package harness_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/controls"
	"github.com/retrychaos/retrychaos/scenarios"
)

// stored is a result as a report keeps it.
func stored(t *testing.T, res *harness.Result) harness.Result {
	t.Helper()
	text, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	var out harness.Result
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestRecheckIsTheRunner: stored histories, judged again by the same checks, give the same verdicts, of clients that
// are well and of those that are wrong on purpose.
func TestRecheckIsTheRunner(t *testing.T) {
	all, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	list, err := scenarios.Match(all, "duplicates/*", "rate-limits/*", "cancellation/*", "keys/*", "tls/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"retries-post-blindly", "ignores-retry-after", "one-key-for-all"} {
		i := slices.IndexFunc(controls.All(), func(c controls.Control) bool { return strings.HasSuffix(c.Client.Name, name) })
		client := controls.All()[i].Client
		client.Known = []scenarios.KnownFailure{{Scenario: "duplicates/*reset*", Check: "effects.once", Reason: "as documented"}}
		failed := 0
		for _, s := range list {
			res := harness.Runner{Seed: 7, Level: check.Should}.One(t, client, s)
			old := stored(t, res)
			got, ok := harness.Recheck(old, &s, check.Should)
			if ok != (old.History != nil) {
				t.Errorf("%s: judged again is %v", s.Name, ok)
			}
			if !ok {
				continue // not run
			}
			if res.Status == check.Fail {
				failed++
			}
			if d := cmp.Diff(old.Verdicts, got.Verdicts, cmpopts.EquateEmpty()); d != "" || got.Status != old.Status || got.Reason != old.Reason {
				t.Fatalf("%s, %s: %s is %s now (-old +new)\n%s", client.Name, s.Name, old.Status, got.Status, d)
			}
		}
		if failed == 0 {
			t.Errorf("%s fails nowhere, so this shows nothing", client.Name)
		}
	}
}

func TestRecheckKeeps(t *testing.T) {
	all, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(s scenarios.Scenario) bool { return s.Name == "duplicates/post-unkeyed-honour-empty-response" })
	client := controls.All()[0].Client
	old := stored(t, harness.Runner{Seed: 7}.One(t, client, all[i]))
	find := func(r harness.Result, id string) *check.Verdict {
		k := slices.IndexFunc(r.Verdicts, func(v check.Verdict) bool { return v.Check == id })
		if k < 0 {
			t.Fatalf("no verdict of %s", id)
		}
		return &r.Verdicts[k]
	}
	note := func(v *check.Verdict) string { return strings.Join(v.Notes, " ") }

	// The scenario is not known: its author's expectations stand as they were judged.
	want := find(old, harness.ExpectID).Status
	got, _ := harness.Recheck(old, nil, check.Should)
	if v := find(got, harness.ExpectID); v.Status != want || !strings.Contains(note(v), "does not know the scenario") {
		t.Errorf("%s, notes %q", v.Status, v.Notes)
	}
	// It is known, and its author expects something else by now.
	changed := all[i]
	never := 0
	changed.Expect = scenarios.Expect{MaxAttempts: &never}
	got, _ = harness.Recheck(old, &changed, check.Should)
	if v := find(got, harness.ExpectID); v.Status != check.Fail || got.Status != check.Fail {
		t.Errorf("%s: %s", v.Status, v.Reason)
	}
	// A verdict that was wrong is judged anew; one of a check that is not here is kept.
	old.Verdicts[0].Status = check.Fail
	old.Verdicts = append(old.Verdicts, check.Verdict{Check: "mine.own", Status: check.Fail, Level: check.Must, Reason: "r"})
	got, _ = harness.Recheck(old, &all[i], check.Should)
	if got.Verdicts[0].Status == check.Fail {
		t.Error("the old verdict stands")
	}
	if v := find(got, "mine.own"); got.Status != check.Fail || !strings.Contains(note(v), "no such check") {
		t.Errorf("%s: %+v", got.Status, v)
	}
	again, _ := harness.Recheck(got, &all[i], check.Should)
	if v := find(again, "mine.own"); len(v.Notes) != 1 {
		t.Errorf("notes %q: one is enough", v.Notes)
	}
	// Without a history all is kept.
	bare := old
	bare.History, bare.Status = nil, check.Fail
	got, ok := harness.Recheck(bare, &all[i], check.Should)
	if ok || got.Status != check.Fail || !strings.Contains(note(&got.Verdicts[0]), "no history was stored") || len(bare.Verdicts[0].Notes) > 0 {
		t.Errorf("%v, %s, %+v", ok, got.Status, got.Verdicts[0])
	}
}
