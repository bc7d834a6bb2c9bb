package harness_test

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/scenarios"
)

// storageCase is one case of testdata/google-storage-retry.json, which names its sources.
type storageCase struct {
	ID       string
	Success  bool `json:"want_operation_success"`
	Consumed bool `json:"want_all_faults_consumed"`
	Attempts int  `json:"derived_want_attempts"` // 0: not said
}

// storageScenarios says which scenarios of the family google-storage each case is, as globs. A class of operations
// is there with those of its operations that HTTP does not know to be idempotent by their method alone, and with
// one of each method that it does: a DELETE or PUT without a precondition, which Google's clients do not
// repeat, may be repeated by HTTP's rules (RFC 9110 §9.2.2), and is left out.
var storageScenarios = map[string][]string{
	"always_idempotent/1":                {"google-storage/always-*-503-503"},
	"always_idempotent/2":                {"google-storage/always-*-reset-reset"},
	"always_idempotent/3":                {"google-storage/always-*-reset-503"},
	"conditional_with_precondition/1":    {"google-storage/conditional-*-503-503"},
	"conditional_with_precondition/2":    {"google-storage/conditional-*-reset-reset"},
	"conditional_with_precondition/3":    {"google-storage/conditional-*-reset-503"},
	"conditional_without_precondition/1": {"google-storage/unconditional-*-503"},
	"conditional_without_precondition/2": {"google-storage/unconditional-*-reset"},
	"never_idempotent/1":                 {"google-storage/never-*-503"},
	"never_idempotent/2":                 {"google-storage/never-*-reset"},
	"non_retryable_status/1":             {"google-storage/permanent-*-400"},
	"non_retryable_status/2":             {"google-storage/permanent-*-401"},
	"retryable_then_non_retryable/1":     {"google-storage/then-permanent-*-503-400"},
	"retryable_then_non_retryable/2":     {"google-storage/then-permanent-*-reset-401"},
	"resumable_upload/1":                 {"google-storage/resumable-chunk-reset-503"},
	"resumable_upload/2":                 {"google-storage/resumable-chunk-408"},
	"download/1":                         {"google-storage/download-cut-early-twice"},
	"download/2":                         {"google-storage/download-cut-late"},
}

// beyondScenarios are the cases that no scenario can be, and why.
var beyondScenarios = map[string]string{
	"resumable_upload/3": "the client asks the session how many bytes have arrived and goes on from there: a call of several requests",
	"resumable_upload/4": "as 3, and with an upload of 8 MiB",
}

// TestGoogleStorageCases runs the bundled client through every case and holds it to what the case wants, beyond
// what the checks say: success or not, the number of attempts, and every fault met.
func TestGoogleStorageCases(t *testing.T) {
	text, err := os.ReadFile("testdata/google-storage-retry.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Scenarios []storageCase }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	client := harness.Bundled("retry", retry.Policy{})
	used := map[string]bool{}
	for _, c := range file.Scenarios {
		t.Run(c.ID, func(t *testing.T) {
			globs, ok := storageScenarios[c.ID]
			if why := beyondScenarios[c.ID]; (why == "") != ok {
				t.Fatalf("the case is %v, and beyond scenarios because %q", globs, why)
			} else if !ok {
				t.Skip(why)
			}
			list, err := scenarios.Match(library, globs...)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range list {
				used[s.Name] = true
				res := harness.Runner{}.One(t, client, s)
				if res.Status != check.Pass {
					t.Error(res.Explain(check.Should))
				}
				call := res.History.Calls[0]
				if call.Outcome.OK != c.Success || c.Attempts != 0 && len(call.Attempts) != c.Attempts {
					t.Errorf("%s: success %v in %d attempts, want %v in %d", s.Name, call.Outcome.OK, len(call.Attempts), c.Success, c.Attempts)
				}
				for _, f := range res.History.Faults {
					if c.Consumed && (f.Delivered == 0 || f.Planned > 0 && f.Delivered != f.Planned) {
						t.Errorf("%s: %+v", s.Name, f)
					}
				}
			}
		})
	}
	if len(storageScenarios)+len(beyondScenarios) != len(file.Scenarios) {
		t.Errorf("%d cases, of which the tables know %d", len(file.Scenarios), len(storageScenarios)+len(beyondScenarios))
	}
	for _, s := range library {
		if s.Family() == "google-storage" && !used[s.Name] {
			t.Errorf("%s is no case", s.Name)
		}
	}
	if len(used) < 50 {
		t.Errorf("only %d scenarios were run", len(used))
	}
}
