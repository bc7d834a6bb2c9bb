package herd

import (
	"math"
	"testing"
)

// TestContention holds the bundled client's waits against the published table: in full, means of 100 runs, where
// seedsEnv is set; otherwise fewer clients and runs, with margins that allow for that.
func TestContention(t *testing.T) {
	_, short := seeds(t)
	runs, slack := 100, 1.0
	if short {
		runs, slack = 8, 2.5
	}
	for _, want := range ContentionReference() {
		if short && (want.Clients > 50 || want.Clients > 10 && want.Policy != "full") {
			continue
		}
		for _, p := range ContentionPolicies() {
			if p.Name != want.Policy {
				continue
			}
			got, err := Contend(t, p, want.Clients, runs)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%3d %-12s %6d ms (%6d), %6.0f writes (%6.0f)", want.Clients, p.Name, got.Time.Milliseconds(), want.Time.Milliseconds(), got.Writes, want.Writes)
			if d := math.Abs(got.Time.Seconds()/want.Time.Seconds() - 1); d > slack*want.TimeMargin() {
				t.Errorf("%d clients, %s: %v, want %v ± %.0f %%", want.Clients, p.Name, got.Time, want.Time, 100*want.TimeMargin())
			}
			if d := math.Abs(got.Writes/want.Writes - 1); d > slack*want.WritesMargin() {
				t.Errorf("%d clients, %s: %.0f writes, want %.0f ± %.0f %%", want.Clients, p.Name, got.Writes, want.Writes, 100*want.WritesMargin())
			}
		}
	}
}
