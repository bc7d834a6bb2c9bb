package controls_test

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/controls"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

var runner = harness.Runner{Seed: 20260101}

func library(t *testing.T) []scenarios.Scenario {
	t.Helper()
	list, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// run runs the control through the core of the library and what is about its rule. The suite at the root of
// the module runs it through the whole.
func run(t *testing.T, c controls.Control, list []scenarios.Scenario) []*harness.Result {
	var results []*harness.Result
	for _, s := range list {
		near := slices.Contains(s.Labels, "core") || s.Rule == c.Breaks || slices.Contains(c.Consequences, s.Rule)
		if c.Meets(s) && near {
			results = append(results, runner.One(t, c.Client, s))
		}
	}
	return results
}

// The loop without a defect passes everything, so that what the others fail is their defect's doing.
func TestGoodPassesEverything(t *testing.T) {
	for _, res := range run(t, controls.Good(), library(t)) {
		failed := len(res.Findings) > 0
		for _, v := range res.Verdicts {
			failed = failed || v.Status == check.Fail || v.Status == check.Unknown
		}
		if failed {
			t.Error(res.Explain(check.May))
		}
	}
}

// Every control is caught by the check of the rule that it breaks, and by no unrelated one.
func TestEachControlIsCaught(t *testing.T) {
	list := library(t)
	var table table
	for _, c := range controls.All() {
		// Not in parallel: a virtual world is many times faster alone.
		t.Run(strings.TrimPrefix(c.Client.Name, "control/"), func(t *testing.T) {
			began := time.Now()
			results := run(t, c, list)
			k := c.Review(results)
			table.add(c, k, time.Since(began))
			if !c.Caught(k) {
				t.Errorf("%s (%s) was not caught by %s in any of %d scenarios", c.Client.Name, c.Doc, c.Breaks, len(results))
			}
			for _, s := range k.Strays {
				t.Errorf("%s breaks %s, and an unrelated rule as well: %s", c.Client.Name, c.Breaks, s)
			}
		})
	}
	t.Log("\n" + table.String())
}

// A pattern in Shown that names no herd would leave its control out of the one scenario that it is for.
func TestShownNamesHerds(t *testing.T) {
	list := library(t)
	for _, c := range append(controls.All(), controls.Good()) {
		for _, pattern := range c.Shown {
			if !slices.ContainsFunc(list, func(s scenarios.Scenario) bool {
				ok, err := path.Match(pattern, s.Name)
				return err == nil && ok && controls.Herd(s)
			}) {
				t.Errorf("%s: Shown has %q, and no herd of the library is called so", c.Client.Name, pattern)
			}
		}
	}
}

// Each check that the library can make fail has a control that it must catch.
func TestEveryCheckHasAControl(t *testing.T) {
	broken := map[string]bool{}
	names := map[string]bool{}
	for _, c := range controls.All() {
		if _, ok := check.Lookup(c.Breaks); !ok {
			t.Errorf("%s breaks %q, which is no check", c.Client.Name, c.Breaks)
		}
		for _, id := range c.Consequences {
			if _, ok := check.Lookup(id); !ok || !strings.Contains(c.Doc, id) {
				t.Errorf("%s: the consequence %q is no check, or its reason is not in Doc", c.Client.Name, id)
			}
		}
		if names[c.Client.Name] {
			t.Errorf("two controls are called %s", c.Client.Name)
		}
		names[c.Client.Name], broken[c.Breaks] = true, true
		if c.Client.Declared.MaxAttempts == 0 || c.Client.Declared.Jitter == history.JitterUndeclared {
			t.Errorf("%s does not declare what a good client would", c.Client.Name)
		}
	}
	for _, c := range check.All() {
		if !broken[c.ID] {
			t.Errorf("no control breaks %s: a pass of it proves nothing", c.ID)
		}
	}
}

// table is which control was caught by which checks, in how many scenarios.
type table struct {
	rows []string
}

func (t *table) add(c controls.Control, k controls.Catch, took time.Duration) {
	var by []string
	for _, id := range slices.Sorted(maps.Keys(k.By)) {
		mark := ""
		if id == c.Breaks {
			mark = "*"
		}
		by = append(by, fmt.Sprintf("%s%s %d", mark, id, len(k.By[id])))
	}
	t.rows = append(t.rows, fmt.Sprintf("%-36s %6s  %s", c.Client.Name, took.Round(time.Millisecond), strings.Join(by, ", ")))
}

// String lists the controls in their order; the check that each breaks is starred.
func (t *table) String() string { return strings.Join(t.rows, "\n") }
