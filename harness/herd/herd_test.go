package herd

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

func TestParseIncident(t *testing.T) {
	got, err := ParseIncident("restart at=1m for=2s factor=1.5 count=100")
	want := scenarios.Incident{At: time.Minute, For: 2 * time.Second, Do: scenarios.Restart, Factor: 1.5, Count: 100}
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for text, part := range map[string]string{
		"":               "written like",
		"stall 5s":       `"5s" is no parameter`,
		"stall form=5s":  `unknown parameter "form" (did you mean "for"?)`,
		"stall for=5":    `for="5" is no value`,
		"burst count=x":  `count="x" is no value`,
		"slow factor=1x": `factor="1x" is no value`,
	} {
		if _, err := ParseIncident(text); err == nil || !strings.Contains(err.Error(), strings.Split(part, " (")[0]) {
			t.Errorf("%q: %v, want %s", text, err, part)
		}
	}
}

func TestFindPolicies(t *testing.T) {
	list, err := FindPolicies("none", "wide")
	if err != nil || len(list) != 2 || list[1].Name != "wide" {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := FindPolicies("ful"); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("%v", err)
	}
	for _, p := range Policies() {
		if err := p.retry.Validate(); err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
}

func TestSettingNeedsALoad(t *testing.T) {
	s := Setting{Name: "x", Capacity: scenarios.Capacity{Workers: 1, Service: time.Second}}
	if _, err := s.Scenario(); err == nil {
		t.Error("neither clients nor load")
	}
	s.Clients = 10
	s.Incidents = []scenarios.Incident{{Do: "stal"}}
	if _, err := s.Scenario(); err == nil || !strings.Contains(err.Error(), "stall") {
		t.Errorf("%v", err)
	}
}

// What cannot be run says why.
func TestNotRun(t *testing.T) {
	s := Crowd(50)
	s.Clients = 20
	if _, err := Do(t, harness.Client{Name: "curl", Declared: history.Declared{Process: true}}, s, 1); err == nil || !strings.Contains(err.Error(), "a process cannot enter the virtual world") {
		t.Errorf("%v", err)
	}
}

// A crowd that nobody spreads, and one that is spread as wide as the server needs, as a table and as CSV.
func TestCrowd(t *testing.T) {
	s := Crowd(50)
	s.Clients = 200
	var rows []Row
	var all []Run
	for _, p := range CrowdPolicies()[:4] {
		r, err := Do(t, p.Client(s.Timeout, s.Attempts), s, 1)
		if err != nil {
			t.Fatal(err)
		}
		if r.Load.Recovery != history.Recovered || len(r.Waves) == 0 || len(r.Waves[0].Gaps) != 200 {
			t.Errorf("%s: %+v", p.Name, r.Load)
		}
		rows, all = append(rows, Sum([]Run{r})), append(all, r)
	}
	if constant, wide := rows[0], rows[3]; constant.After < wide.After+0.3 || wide.After > 2.1 {
		t.Errorf("constant waits cost %.2f attempts a call, the right width %.2f", constant.After, wide.After)
	}
	var text, lines bytes.Buffer
	if err := WriteTable(&text, rows); err != nil || !strings.Contains(text.String(), "constant") {
		t.Errorf("%v\n%s", err, text.String())
	}
	if err := WriteCSV(&lines, all); err != nil {
		t.Fatal(err)
	}
	got, err := csv.NewReader(&lines).ReadAll()
	if err != nil || len(got) != 5 || len(got[0]) != len(got[1]) || got[1][0] != "crowd" || got[1][9] != "200" {
		t.Errorf("%v: %v", err, got)
	}
}

// The same seed gives the same run.
func TestRunsCanBeReplayed(t *testing.T) {
	s := Outages(true)[0]
	s.For, s.Load = 20*time.Second, 0.5
	p := Policies()[3]
	a, err := Do(t, p.Client(s.Timeout, 0), s, 5)
	if err != nil {
		t.Fatal(err)
	}
	b, err := Do(t, p.Client(s.Timeout, 0), s, 5)
	if err != nil {
		t.Fatal(err)
	}
	if a.Load.Attempts != b.Load.Attempts || a.Load.Wasted != b.Load.Wasted || a.Took != b.Took || a.Verdict.Status == "" {
		t.Errorf("%+v\n%+v", a.Load, b.Load)
	}
}

func TestSum(t *testing.T) {
	run := func(recovery history.Recovery, took time.Duration, after float64) Run {
		return Run{Client: "c", Setting: Setting{Name: "s"}, Took: time.Minute, Verdict: check.Verdict{Status: check.Pass},
			Load: history.Load{Calls: 2, Recovery: recovery, Took: took, After: after, PeakRate: 10, Worked: 4 * time.Second, Wasted: time.Second,
				Seconds: []history.Second{{Good: 1}}}}
	}
	got := Sum([]Run{run(history.Recovered, 4*time.Second, 1), run(history.Collapsed, time.Hour, 3)})
	want := Row{Client: "c", Setting: "s", Runs: 2, Recovered: 1, Took: 4 * time.Second, After: 2, AfterRecovered: 1, AfterCollapsed: 3, Peak: 10, Good: 0.5, Wasted: 0.25, Done: time.Minute}
	if got != want {
		t.Errorf("%+v", got)
	}
	if got.Verdict() != "in 1 of 2" || (Row{Runs: 2}).Verdict() != "never" || (Row{Runs: 2, Recovered: 2}).Verdict() != "yes" {
		t.Error(got.Verdict())
	}
}

// The page holds every row, and what is outside of a margin is told.
func TestPage(t *testing.T) {
	x := Tables{Seeds: 1, Runs: 1, Queues: []int{50, 500}}
	for _, w := range OutageReference() {
		row := Row{Client: w.Policy, Setting: w.Setting, Runs: 20, Recovered: w.Recovers, After: w.Attempts, AfterRecovered: w.Attempts, AfterCollapsed: w.Attempts}
		x.Outages = append(x.Outages, OutageRow{row, w})
	}
	for _, w := range ContentionReference() {
		x.Contention = append(x.Contention, Contention{w.Clients, w.Policy, 1, w.Time, w.Writes})
	}
	x.Crowds = make([]Row, 2*len(CrowdPolicies()))
	if m := x.Misses(); len(m) != 0 {
		t.Errorf("the reference misses itself: %v", m)
	}
	var page bytes.Buffer
	if err := x.WriteMarkdown(&page); err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"| no retries | stall | yes |", "| in 7 of 20 | 2.94 | +0.0 % |", "| full jitter over 1, 2, 4 s | stall | never |", "| 150 | 2876 / 5135 (2876 / 5135) |"} {
		if !strings.Contains(page.String(), part) {
			t.Errorf("the page lacks %q:\n%s", part, page.String())
		}
	}
	x.Outages[2].Recovered, x.Outages[4].After, x.Contention[3].Writes, x.Contention[1].Time = 20, 3, 90, time.Second
	if m := x.Misses(); len(m) != 4 {
		t.Errorf("%q", m)
	}
}
