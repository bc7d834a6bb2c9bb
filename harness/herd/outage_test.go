package herd

import (
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
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

// TestOutages holds real clients against the simulated table.
func TestOutages(t *testing.T) {
	n, short := seeds(t)
	for _, want := range OutageReference() {
		if short && !slices.Contains(quick, want.Policy+" "+want.Setting) {
			continue
		}
		p := findOutagePolicy(want.Policy)
		for _, s := range Outages(short) {
			if s.Name != want.Setting {
				continue
			}
			var runs []Run
			for seed := range n {
				r, err := Do(t, p.Client(s.Timeout, 0), s, uint64(seed+1))
				if err != nil {
					t.Fatal(err)
				}
				runs = append(runs, r)
			}
			got := OutageRow{Sum(runs), want}
			t.Logf("%-14s %-6s recovered %d of %d in %v, %.2f attempts a call (%d, %.2f)", want.Policy, s.Name, got.Recovered, n, got.Took, got.After, want.Recovers, want.Attempts)
			if short && want.Recovers == ReferenceRuns {
				got.After = want.Attempts // after a trigger that the server survives, what the mean of a shorter load is has not been simulated
			}
			if miss := got.Miss(); miss != "" {
				t.Error(miss)
			}
		}
	}
}

// TestMixedRows: where chance decides, neither a number of recoveries that it explains is a miss, nor the mean that follows.
func TestMixedRows(t *testing.T) {
	want := Expected{Policy: "full", Setting: "refuse", Recovers: 7, Attempts: 2.94}
	row := func(recovered int, after, collapsed float64) OutageRow {
		return OutageRow{Row{Runs: 20, Recovered: recovered, AfterRecovered: after, AfterCollapsed: collapsed}, want}
	}
	for name, c := range map[string]struct {
		row  OutageRow
		miss string
	}{
		"the same":           {row(7, 1.08, 3.94), ""},
		"more, by chance":    {row(12, 1.08, 3.94), ""},
		"always":             {row(20, 1.08, 0), "recovers in 20 of 20"},
		"never":              {row(0, 0, 3.94), "recovers in 0 of 20"},
		"collapse is cheap":  {row(7, 1.08, 3), "attempts a call, want 2.94"},
		"recovery is costly": {row(8, 2.5, 3.94), "attempts a call, want 2.94"},
	} {
		if got := c.row.Miss(); got == "" != (c.miss == "") || !strings.Contains(got, c.miss) {
			t.Errorf("%s: %q, want %q", name, got, c.miss)
		}
	}
	// Fisher's own example, the lady tasting tea: three of four cups against one of four.
	if p := fisher(3, 4, 1, 4); math.Abs(p-34.0/70) > 1e-9 {
		t.Errorf("the lady's p-value is %v", p)
	}
}
