package herd

import (
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
)

// seedsEnv is the number of seeds of the tests that reproduce tables; unset, they are cut short.
const seedsEnv = "RETRYCHAOS_HERD_SEEDS"

func seeds(t *testing.T) (n int, short bool) {
	t.Helper()
	text := os.Getenv(seedsEnv)
	if text == "" {
		return 1, true
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want a number of seeds", seedsEnv, text)
	}
	return n, false
}

// quick are the rows that are always held: one of each kind.
var quick = []string{"none stall", "immediate stall", "full stall", "exponential refuse", "wide refuse", "success-budget stall", "request-budget refuse"}

// TestOutages holds real clients against the simulated table. Rows in which the simulation recovers in some runs
// only have no verdict of their own, and a mean that a few seeds do not show.
func TestOutages(t *testing.T) {
	n, short := seeds(t)
	for _, want := range OutageReference() {
		mixed := want.Recovers > 0 && want.Recovers < 20
		if short && (mixed || !slices.Contains(quick, want.Policy+" "+want.Setting)) {
			continue
		}
		p, err := FindPolicies(want.Policy)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range Outages(short) {
			if s.Name != want.Setting {
				continue
			}
			var runs []Run
			for seed := range n {
				r, err := Do(t, p[0].Client(s.Timeout, 0), s, uint64(seed+1))
				if err != nil {
					t.Fatal(err)
				}
				runs = append(runs, r)
			}
			got := Sum(runs)
			t.Logf("%-12s %-7s recovered %d of %d in %v, %.2f attempts a call (%d, %.2f)", want.Policy, s.Name, got.Recovered, n, got.Took, got.After, want.Recovers, want.Attempts)
			if !mixed && (got.Recovered != 0) != (want.Recovers == 20) || !mixed && got.Recovered != 0 && got.Recovered != n {
				t.Errorf("%s, %s: recovered in %d of %d runs, want %d of 20", want.Policy, s.Name, got.Recovered, n, want.Recovers)
			}
			// After a trigger that the server survives, what the mean of a shorter load is has not been simulated.
			if short && want.Recovers == 20 || mixed && n < 10 {
				continue
			}
			if math.Abs(got.After/want.Attempts-1) > 0.10 {
				t.Errorf("%s, %s: %.2f attempts a call, want %.2f ± 10 %%", want.Policy, s.Name, got.After, want.Attempts)
			}
		}
	}
}
