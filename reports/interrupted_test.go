package reports

import (
	"testing"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
)

// A run that was interrupted is never a clean one, but what it had found is found.
func TestInterruptedIsUndecided(t *testing.T) {
	left := harness.Result{Scenario: "a/left", Status: check.Skipped, Reason: ReasonInterrupted}
	other := harness.Result{Scenario: "a/other", Status: check.Skipped, Reason: "it lasts an hour"}
	for _, c := range []struct {
		name   string
		status check.Status
		also   harness.Result
		want   int
	}{
		{"whole", check.Pass, other, ExitOK},
		{"interrupted", check.Pass, left, ExitUndecided},
		{"interrupted after a finding", check.Fail, left, ExitFindings},
	} {
		r := &Report{Results: []harness.Result{{Scenario: "a/one", Status: c.status}, c.also}}
		if got := r.ExitCode(check.Must); got != c.want {
			t.Errorf("%s: exit status %d, want %d", c.name, got, c.want)
		}
	}
}
