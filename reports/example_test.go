package reports_test

import (
	"fmt"
	"os"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/reports"
)

// ExampleDiff compares two reports as a gate does.
func ExampleDiff() {
	version := func(v string, status check.Status) *reports.Report {
		return reports.New(reports.Run{
			Version: "1.0.0", Started: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Seed: 7, World: "virtual",
			Clients: []reports.ClientInfo{{Name: "mine", Version: v}},
		}, []harness.Result{{
			Scenario: "duplicates/post-unkeyed-reset", Client: "mine", World: "virtual", Seed: 7, Status: status,
			Verdicts: []check.Verdict{{Check: "effects.once", Level: check.Must, Status: status, Reason: "call c1 (POST) had 2 effects, by attempts 1, 2"}},
		}})
	}
	c := reports.Diff(version("1.4.0", check.Pass), version("1.5.0", check.Fail))
	if err := reports.WriteDiffTerminal(os.Stdout, c, reports.DiffTerminalOptions{}); err != nil {
		fmt.Println(err)
	}
	fmt.Println("exit", c.ExitCode(reports.FailOnBroken))
	//
	// Output:
	// retrychaos 1.0.0 · mine 1.4.0 → 1.5.0 · virtual world · seed 7 · rules of level SHOULD and above
	//
	// Broken
	//
	//   ✗ duplicates/post-unkeyed-reset · MUST
	//     · effects.once (MUST): pass → fail: call c1 (POST) had 2 effects, by
	//       attempts 1, 2
	//
	// ✗ 1 broken, 0 fixed, 0 newly unknown, 0 no longer unknown, 0 behave otherwise, 0
	//   the same
	// exit 1
}
