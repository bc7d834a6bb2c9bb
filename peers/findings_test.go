package peers_test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/peers"
	"github.com/retrychaos/retrychaos/scenarios"
)

var update = flag.Bool("update", false, "rewrite the recorded findings, and fail, so that nobody does it unseen")

// seed makes the recorded findings repeatable.
const seed = 20260101

// TestFindings runs every peer through the whole library in the virtual world and holds the rules that it breaks,
// against what is recorded. A difference is news: about the client, or about a check.
// The account in findings/ is for people; its numbers come from one run, since clients draw their jitter
// from generators that cannot be seeded.
func TestFindings(t *testing.T) {
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	for _, client := range peers.All() {
		t.Run(client.Name, func(t *testing.T) {
			began := time.Now()
			results := make([]*harness.Result, 0, len(library))
			var simulated time.Duration
			for _, s := range library {
				res := harness.Runner{Seed: seed}.One(t, client, s)
				simulated += res.Simulated
				results = append(results, res)
				for _, f := range res.Findings {
					t.Errorf("%s: a finding of the harness itself: %s: %s", s.Name, f.Kind, f.Text)
				}
			}
			t.Logf("%d scenarios: %v of virtual time in %v", len(library), simulated.Round(time.Second), time.Since(began).Round(time.Millisecond))
			got := brokenRules(client, results)
			file := filepath.Join("testdata", client.Name+".txt")
			want, err := os.ReadFile(file)
			if err != nil && !*update {
				t.Fatal(err)
			}
			if *update && os.Getenv("CI") == "" {
				for name, data := range map[string][]byte{file: merged(want, got), filepath.Join("findings", client.Name+".md"): record(client, results)} {
					if err := os.WriteFile(name, data, 0o644); err != nil {
						t.Fatal(err)
					}
				}
				t.Fatalf("%s was rewritten: read what changed", file)
			}
			d := difference(string(want), string(got))
			if d != "" {
				// News is what shows twice: some clients race with their own transport.
				var again []*harness.Result
				for _, s := range library {
					again = append(again, harness.Runner{Seed: seed}.One(t, client, s))
				}
				d = both(d, difference(string(want), string(brokenRules(client, again))))
			}
			if d != "" {
				t.Errorf("%s is not what was found; go test . -update rewrites it\n%s", file, d)
			}
		})
	}
}

// sometimes marks a recorded line that some runs show and others do not: it hangs on a race inside the client,
// or on the jitter that it drew.
const sometimes = "~ "

// difference lists what is recorded and was not found, and what was found and is not recorded.
func difference(want, got string) string {
	var b strings.Builder
	recorded, found := map[string]bool{}, map[string]bool{}
	for line := range strings.Lines(got) {
		found[line] = true
	}
	for line := range strings.Lines(want) {
		rule, may := strings.CutPrefix(line, sometimes)
		recorded[rule] = true
		if !may && !found[rule] {
			b.WriteString("- " + line)
		}
	}
	for line := range strings.Lines(got) {
		if !recorded[line] {
			b.WriteString("+ " + line)
		}
	}
	return b.String()
}

// both returns the lines that a and b share.
func both(a, b string) string {
	var out strings.Builder
	for line := range strings.Lines(a) {
		if strings.Contains("\n"+b, "\n"+line) {
			out.WriteString(line)
		}
	}
	return out.String()
}

// merged is the new record: what only one of the old one and this run has is seen sometimes.
func merged(want, got []byte) []byte {
	if len(want) == 0 {
		return got
	}
	state := map[string]string{}
	for line := range strings.Lines(string(got)) {
		state[line] = sometimes
	}
	for line := range strings.Lines(string(want)) {
		rule, may := strings.CutPrefix(line, sometimes)
		if _, found := state[rule]; found && !may {
			state[rule] = ""
		} else {
			state[rule] = sometimes
		}
	}
	var lines []string
	for rule, mark := range state {
		lines = append(lines, mark+rule)
	}
	slices.Sort(lines)
	return []byte(strings.Join(lines, ""))
}

// brokenRules lists the rules that a client breaks, and the families of scenarios in which it does where the
// client has no jitter: with jitter, a wait may or may not run into a deadline, from run to run.
func brokenRules(client harness.Client, results []*harness.Result) []byte {
	steady := client.Declared.Jitter == history.JitterNone || client.Declared.MaxAttempts == 1
	var lines []string
	for _, r := range results {
		family, _, _ := strings.Cut(r.Scenario, "/")
		for _, v := range r.Verdicts {
			if v.Status != check.Fail || v.Check == harness.ExpectID {
				continue
			}
			line := fmt.Sprintf("%s %s", v.Check, v.Level)
			if steady {
				line += " " + family
			}
			lines = append(lines, line+"\n")
		}
	}
	slices.Sort(lines)
	return []byte(strings.Join(slices.Compact(lines), ""))
}

// record writes what was found of one client: per broken rule one account from the first scenario that shows
// it, and the names of all.
func record(client harness.Client, results []*harness.Result) []byte {
	type broken struct {
		check   string
		level   check.Level
		reason  string
		in      []string
		command string
	}
	byCheck := map[string]*broken{}
	var order []*broken
	passed := 0
	for _, r := range results {
		clean := true
		for _, v := range r.Verdicts {
			if v.Status != check.Fail || v.Check == harness.ExpectID {
				continue
			}
			clean = false
			key := v.Check + string(v.Level)
			b := byCheck[key]
			if b == nil {
				b = &broken{check: v.Check, level: v.Level, reason: v.Reason,
					command: fmt.Sprintf("go run ./cmd/peers run --world virtual --client %s --scenario %s --seed %d", client.Name, r.Scenario, r.Seed)}
				byCheck[key] = b
				order = append(order, b)
			}
			b.in = append(b.in, r.Scenario)
		}
		if clean {
			passed++
		}
	}
	slices.SortFunc(order, func(a, b *broken) int {
		if a.level != b.level {
			return cmp.Compare(a.level, b.level) // MUST before SHOULD
		}
		return cmp.Compare(a.check, b.check)
	})
	var b bytes.Buffer
	fmt.Fprintf(&b, "# What the library finds of %s %s\n\n", client.Name, client.Version)
	fmt.Fprintf(&b, "Made by `go test . -update` in this module, in the virtual world, with seed %d for the server. The client's own jitter differs from run to run, and a few numbers with it. ", seed)
	fmt.Fprintf(&b, "Of %d scenarios %d broke no rule.\n", len(results), passed)
	for _, x := range order {
		c, _ := check.Lookup(x.check)
		fmt.Fprintf(&b, "\n## %s (%s), %s\n\n", x.check, x.level, inScenarios(len(x.in)))
		fmt.Fprintf(&b, "The rule: %s.\n\n", c.Holds)
		fmt.Fprintf(&b, "In %s: %s.\n\n    %s\n\n", x.in[0], x.reason, x.command)
		for _, s := range x.in {
			fmt.Fprintf(&b, "- %s\n", s)
		}
	}
	return b.Bytes()
}

func inScenarios(n int) string {
	if n == 1 {
		return "in 1 scenario"
	}
	return fmt.Sprintf("in %d scenarios", n)
}
