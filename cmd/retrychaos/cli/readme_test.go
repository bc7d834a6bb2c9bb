package cli

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/retrychaos/retrychaos/scenarios"
)

var (
	familyLine = regexp.MustCompile(`(?m)^  ([a-z0-9-]+) +(\d+) +0 +0 +(\d+)  [✓–]`)
	totalLine  = regexp.MustCompile(`(?m)^✓ (\d+) scenarios: (\d+) passed, 0 failed, 0 unknown, (\d+) skipped`)
)

// TestReadmeCounts: the run that README shows has the scenarios that there are.
func TestReadmeCounts(t *testing.T) {
	text, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	type counts struct{ run, skipped int }
	families := map[string]counts{}
	var all counts
	for _, s := range library {
		family, _, _ := strings.Cut(s.Name, "/")
		c := families[family]
		if s.RunsIn(scenarios.Loopback) {
			c.run, all.run = c.run+1, all.run+1
		} else {
			c.skipped, all.skipped = c.skipped+1, all.skipped+1
		}
		families[family] = c
	}
	number := func(s string) int {
		n, err := strconv.Atoi(s)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	shown := familyLine.FindAllStringSubmatch(string(text), -1)
	if len(shown) == 0 {
		t.Error("README shows no family")
	}
	for _, m := range shown {
		if got, want := (counts{number(m[2]), number(m[3])}), families[m[1]]; got != want {
			t.Errorf("README shows %+v of family %s, and there are %+v: show a new run", got, m[1], want)
		}
	}
	m := totalLine.FindStringSubmatch(string(text))
	if m == nil {
		t.Fatal("README shows no sum of a run")
	}
	if number(m[1]) != len(library) || (counts{number(m[2]), number(m[3])}) != all {
		t.Errorf("README shows %q, and there are %d scenarios, %+v: show a new run", m[0], len(library), all)
	}
}
