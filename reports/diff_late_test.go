package reports

import (
	"fmt"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
)

// TestDiffLateMachine: what a busy machine can turn is no change, what it cannot is.
func TestDiffLateMachine(t *testing.T) {
	report := func(id string, fails bool, late time.Duration, all int) *Report {
		var list []harness.Result
		for i := range 30 {
			r := ran(fmt.Sprintf("f/%02d", i), time.Second)
			r.World, r.History.World, r.History.Grain = "loopback", "loopback", 25*ms
			if i < all {
				r.History.Lateness = late
			}
			status := check.Pass
			if fails && i == 29 {
				status = check.Fail
			}
			list = append(list, judged(r, check.Verdict{Check: id, Status: status, Level: check.Must, Reason: "r"}))
		}
		return made(list...)
	}
	for _, c := range []struct {
		id     string
		late   time.Duration
		all    int
		broken int
	}{
		{"timing.deadline", 500 * ms, 30, 0},
		{"timing.deadline", 500 * ms, 2, 0}, // others show how busy it was
		{"timing.deadline", 500 * ms, 1, 1},
		{"timing.deadline", 50 * ms, 30, 1},
		{"effects.once", 500 * ms, 30, 1},
	} {
		d := Diff(report(c.id, false, c.late, c.all), report(c.id, true, c.late, c.all))
		if len(d.Broken) != c.broken || len(d.Incomparable) != 1-c.broken {
			t.Errorf("%+v: %d broken, %d not comparable", c, len(d.Broken), len(d.Incomparable))
		}
	}
}
