package reports

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
)

// An htmlIndex is what the page's script makes the matrix from. Texts in it have passed through plain; the script
// sets them as text, never as markup.
type htmlIndex struct {
	Version   int            `json:"v"`
	Level     check.Level    `json:"level"`
	Clients   []htmlClient   `json:"clients"`
	Scenarios []htmlScenario `json:"scenarios"` // in order of their names, so that families are together
	Rules     []htmlRule     `json:"rules"`
	// Status holds, by level and client, the status of each scenario when verdicts of that level and above count:
	// p, f, u, s, or - for no result, in runs ("12p3f").
	Status map[check.Level][]string `json:"status"`
	// ByRule holds the same by rule and client, of that rule's verdicts alone.
	ByRule [][]string `json:"byRule"`
	// Reasons are why cells were skipped, by cell ("client,scenario").
	Reasons  []string          `json:"reasons,omitempty"`
	Why      map[string]int    `json:"why,omitempty"`
	Findings []htmlFinding     `json:"findings"`
	More     int               `json:"more,omitempty"` // findings that are not listed
	Seed     string            `json:"seed"`           // of all results but those in Other
	World    string            `json:"world"`
	Other    map[string]string `json:"other,omitempty"` // "--seed 1 --world loopback", by cell
	JSON     string            `json:"json"`

	column  map[string]int
	row     map[string]int
	leftOut []string
}

type htmlClient struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
	Repro   string `json:"repro"`
}

type htmlScenario struct {
	Name    string `json:"n"`
	Summary string `json:"s,omitempty"`
	Quoted  string `json:"q,omitempty"` // for a shell, where that differs
}

type htmlRule struct {
	ID     string      `json:"id"`
	Level  check.Level `json:"level,omitempty"`
	Holds  string      `json:"holds,omitempty"`
	Source string      `json:"source,omitempty"`
}

type htmlFinding struct {
	Status   string      `json:"st"`
	Check    string      `json:"check"`
	Rule     int         `json:"rule"`
	Level    check.Level `json:"level,omitempty"`
	Family   string      `json:"family"`
	Reason   string      `json:"reason"`
	Client   int         `json:"c"`
	Scenario int         `json:"s"` // the first
	Count    int         `json:"n"` // of scenarios
}

// maxListed is how many findings the page lists. The matrix has them all.
const maxListed = 400

func (r *Report) htmlIndex() *htmlIndex {
	x := &htmlIndex{Version: 1, Level: r.Level, Seed: strconv.FormatUint(r.Seed, 10), JSON: FileJSON,
		Status: map[check.Level][]string{}, Why: map[string]int{}, Other: map[string]string{},
		// A list without entries is [] in JSON, and not null.
		Clients: []htmlClient{}, Scenarios: []htmlScenario{}, Rules: []htmlRule{}, ByRule: [][]string{}, Findings: []htmlFinding{},
		column: map[string]int{}, row: map[string]int{}}
	if w := r.worlds(); len(w) > 0 {
		x.World = plain(w[0])
	}
	for i, c := range r.Clients {
		x.column[c.Name] = i
		repro := c.Repro
		if repro == "" {
			repro = "retrychaos run --client " + shellWord(c.Name)
		}
		x.Clients = append(x.Clients, htmlClient{plain(c.Name), plain(c.Version), visible(repro)})
	}
	x.addScenarios(r)
	x.addStatuses(r)
	x.addRules(r)
	reasons := map[string]int{}
	for i := range r.Results {
		res := &r.Results[i]
		if res.Seed != r.Seed || plain(res.World) != x.World {
			x.Other[x.cell(res)] = fmt.Sprintf("--seed %d --world %s", res.Seed, plain(shellWord(res.World)))
		}
		if StatusAt(res, r.Level) != check.Skipped || res.Reason == "" {
			continue
		}
		n, ok := reasons[res.Reason]
		if !ok {
			n = len(x.Reasons)
			reasons[res.Reason] = n
			x.Reasons = append(x.Reasons, plain(res.Reason))
		}
		x.Why[x.cell(res)] = n
	}
	x.addFindings(r)
	return x
}

// cell names a result's cell.
func (x *htmlIndex) cell(res *harness.Result) string {
	return strconv.Itoa(x.column[res.Client]) + "," + strconv.Itoa(x.row[res.Scenario])
}

func (x *htmlIndex) addScenarios(r *Report) {
	summaries := map[string]string{}
	var names []string
	for i := range r.Results {
		res := &r.Results[i]
		if _, ok := summaries[res.Scenario]; !ok {
			names = append(names, res.Scenario)
			summaries[res.Scenario] = res.Summary
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		if d := strings.Compare(family(a), family(b)); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for i, n := range names {
		x.row[n] = i
		s := htmlScenario{Name: plain(n), Summary: plain(summaries[n])}
		if q := visible(ShellQuote(n)); q != s.Name {
			s.Quoted = q
		}
		x.Scenarios = append(x.Scenarios, s)
	}
}

// A letters is one character a cell of a client's column.
type letters []byte

func (x *htmlIndex) blank() []letters {
	out := make([]letters, len(x.Clients))
	for i := range out {
		out[i] = []byte(strings.Repeat("-", len(x.Scenarios)))
	}
	return out
}

// mark sets a cell, unless a worse status is there from the same scenario in another world or with another seed.
func (l letters) mark(i int, s check.Status) {
	const order = "-spuf"
	c := order[1+severity(s)]
	if strings.IndexByte(order, c) > strings.IndexByte(order, l[i]) {
		l[i] = c
	}
}

// runs writes the letters as runs: 12p3f.
func (l letters) runs() string {
	var b strings.Builder
	for i := 0; i < len(l); {
		n := 1
		for i+n < len(l) && l[i+n] == l[i] {
			n++
		}
		fmt.Fprintf(&b, "%d%c", n, l[i])
		i += n
	}
	return b.String()
}

func allRuns(ls []letters) []string {
	var out []string
	for _, l := range ls {
		out = append(out, l.runs())
	}
	return out
}

func (x *htmlIndex) addStatuses(r *Report) {
	for _, level := range []check.Level{check.Must, check.Should, check.May} {
		cells := x.blank()
		for i := range r.Results {
			res := &r.Results[i]
			cells[x.column[res.Client]].mark(x.row[res.Scenario], StatusAt(res, level))
		}
		x.Status[level] = allRuns(cells)
	}
}

// addRules adds the checks in order of their ids, and after them what the harness found.
func (x *htmlIndex) addRules(r *Report) {
	cells := map[string][]letters{}
	of := func(id string) []letters {
		if cells[id] == nil {
			cells[id] = x.blank()
		}
		return cells[id]
	}
	rules := map[string]htmlRule{}
	for i := range r.Results {
		res := &r.Results[i]
		for _, v := range res.Verdicts {
			id := plain(v.Check)
			of(id)[x.column[res.Client]].mark(x.row[res.Scenario], v.Status)
			if _, ok := rules[id]; !ok {
				g := group{verdict: v}
				rules[id] = htmlRule{id, v.Level, g.holds(), plain(g.source())}
			}
		}
		for _, f := range res.Findings {
			id := harnessID(f.Kind)
			of(id)[x.column[res.Client]].mark(x.row[res.Scenario], check.Unknown)
			rules[id] = htmlRule{ID: id}
		}
	}
	for _, rule := range rules {
		x.Rules = append(x.Rules, rule)
	}
	slices.SortFunc(x.Rules, func(a, b htmlRule) int { return strings.Compare(a.ID, b.ID) })
	for _, rule := range x.Rules {
		x.ByRule = append(x.ByRule, allRuns(cells[rule.ID]))
	}
}

// harnessID is how the page names a finding of the harness among the rules.
func harnessID(kind string) string { return "harness: " + plain(kind) }

func (x *htmlIndex) addFindings(r *Report) {
	failed, undecided := r.findings()
	all := append(failed, undecided...)
	for _, g := range all[:min(len(all), maxListed)] {
		id := plain(g.verdict.Check)
		if g.harness {
			id = harnessID(g.verdict.Check)
		}
		res := g.results[0]
		x.Findings = append(x.Findings, htmlFinding{
			Status: string(g.verdict.Status), Check: id, Level: g.verdict.Level, Family: plain(g.family), Reason: plain(g.verdict.Reason),
			Rule:   slices.IndexFunc(x.Rules, func(h htmlRule) bool { return h.ID == id }),
			Client: x.column[res.Client], Scenario: x.row[res.Scenario], Count: len(g.results),
		})
	}
	if x.More = len(all) - len(x.Findings); x.More > 0 {
		x.leftOut = append(x.leftOut, fmt.Sprintf("%s beyond the first %d are not in the list of findings; the matrix has them all.",
			count(x.More, "finding"), maxListed))
	}
}
