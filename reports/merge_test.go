package reports

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/scenarios"
)

// shards cuts a run into parts.
func shards(n int) (whole *Report, parts []Part) {
	results := append(sample("careless"), sample("careful")...)
	run := Run{Clients: []ClientInfo{{Name: "careless", Version: "1"}, {Name: "careful"}}}
	whole = fixed(run, results)
	for i := range n {
		var mine []harness.Result
		for j, r := range results {
			if j%n == i {
				mine = append(mine, r)
			}
		}
		run.Shard = &Shard{Index: i + 1, Total: n, Plan: "p", Results: len(mine), All: len(results)}
		p := fixed(run, mine)
		p.Started = p.Started.Add(time.Duration(n-i) * time.Minute)
		parts = append(parts, Part{Name: "shard" + string(rune('1'+i)), Report: p})
	}
	return whole, parts
}

func TestMerge(t *testing.T) {
	for n := 1; n <= 4; n++ {
		whole, parts := shards(n)
		parts[0], parts[n-1] = parts[n-1], parts[0]
		merged, err := Merge(parts)
		if err != nil {
			t.Fatal(err)
		}
		if merged.Real != time.Duration(n)*whole.Real || !merged.Started.After(whole.Started) {
			t.Errorf("%d shards: real %s, started %s", n, merged.Real, merged.Started)
		}
		merged.Real, merged.Started = whole.Real, whole.Started
		var a, b bytes.Buffer
		if err := whole.WriteJSON(&a); err != nil {
			t.Fatal(err)
		}
		if err := merged.WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(a.Bytes(), b.Bytes()) {
			t.Errorf("%d shards: %s", n, cmp.Diff(a.String(), b.String()))
		}
	}
}

func TestMergeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(parts []Part) []Part
		want  []string
	}{
		"none":    {func(p []Part) []Part { return nil }, []string{"no shard was given"}},
		"missing": {func(p []Part) []Part { return p[1:2] }, []string{"of 3 shards, numbers 1, 3 are missing"}},
		"double": {func(p []Part) []Part { return append(p, Part{"again", p[0].Report}) },
			[]string{"shard 1 of 3 is given twice: shard1 and again"}},
		"whole": {func(p []Part) []Part { p[1].Report.Shard = nil; return p },
			[]string{"shard2 is no shard", "number 2 is missing"}},
		"seed":    {func(p []Part) []Part { p[2].Report.Seed = 7; return p }, []string{"shard3 is a shard of another run than shard1: seed 7, not 42"}},
		"world":   {func(p []Part) []Part { p[2].Report.World = "loopback"; return p }, []string{"the loopback world, not virtual"}},
		"level":   {func(p []Part) []Part { p[2].Report.Level = check.May; return p }, []string{"level MAY, not MUST"}},
		"tool":    {func(p []Part) []Part { p[2].Report.Tool.Version = "9"; return p }, []string{"retrychaos 9, not 0.1.0"}},
		"total":   {func(p []Part) []Part { p[2].Report.Shard.Total = 4; return p }, []string{"it has 4 shards, not 3"}},
		"version": {func(p []Part) []Part { p[2].Report.Clients[0].Version = "2"; return p }, []string{"other clients, or other versions"}},
		"plan":    {func(p []Part) []Part { p[2].Report.Shard.Plan = "q"; return p }, []string{"its scenarios or the declarations"}},
		"cut":     {func(p []Part) []Part { p[2].Report.Results = p[2].Report.Results[1:]; return p }, []string{"shard3 holds 13 results, and shard 3 of 3 has 14: it is not whole"}},
		"index":   {func(p []Part) []Part { p[2].Report.Shard.Index = 4; return p }, []string{"shard3 says that it is shard 4 of 3", "number 3 is missing"}},
		"foreign results": {func(p []Part) []Part { p[2].Report.Results[0] = p[0].Report.Results[0]; return p },
			[]string{"shard1 and shard3 both hold "}},
	} {
		t.Run(name, func(t *testing.T) {
			_, parts := shards(3)
			_, err := Merge(c.spoil(parts))
			if err == nil {
				t.Fatal("it was merged")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v\nwant %q", err, w)
				}
			}
		})
	}
}

func TestPlan(t *testing.T) {
	list, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	run := Run{Version: "1", Seed: 1, World: "virtual", Level: check.Must, Clients: []ClientInfo{{Name: "a"}}}
	of := func(r Run, l ...scenarios.Scenario) string {
		p, err := Plan(r, l)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := of(run, list[0], list[1])
	if of(run, list[1], list[0]) != first {
		t.Error("the order of scenarios matters")
	}
	other := list[1]
	other.Settle = time.Hour
	seed, version := run, run
	seed.Seed, version.Clients = 2, []ClientInfo{{Name: "a", Version: "2"}}
	for name, p := range map[string]string{"scenario": of(run, list[0]), "content": of(run, list[0], other), "seed": of(seed, list[0], list[1]), "version": of(version, list[0], list[1])} {
		if p == first {
			t.Errorf("another %s gives the same plan", name)
		}
	}
}

func TestReadFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	var whole bytes.Buffer
	if err := oneClient().WriteJSON(&whole); err != nil {
		t.Fatal(err)
	}
	good := write("good/report.json", whole.String())
	for _, path := range []string{good, filepath.Join(dir, "good")} {
		r, file, err := ReadFile(path)
		if err != nil || len(r.Results) != 21 || file != good {
			t.Errorf("%s: %v, %s", path, err, file)
		}
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "nowhere"):                       "no such file",
		write("empty.json", ""):                             "empty.json: report: empty",
		write("cut.json", whole.String()[:whole.Len()/2]):   "cut.json: report: not a report: line ",
		write("other.json", `{"schema":"other/v1"}`):        `other.json: report: schema "other/v1"`,
		write("text.json", "hello"):                         "text.json: report: not a report: line 1, column 1",
		write("list.json", "[]"):                            "list.json: report: not a report",
		filepath.Dir(write("folder/junit.xml", "<junit/>")): "folder is a folder without a report.json",
	} {
		if _, _, err := ReadFile(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
