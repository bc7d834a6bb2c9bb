package reports

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
)

// A group is one finding, with all scenarios of one family in which one client shows it: said once, so that a
// report stays readable.
type group struct {
	client  string
	world   string
	family  string
	verdict check.Verdict // of the first
	harness bool          // a finding of the harness, not a verdict
	results []*harness.Result
}

// findings collects what counts at the report's level, the worst first: by level, then every client's most
// frequent finding of each check, so that a list that is cut shows as many rules as it can, then what shows in
// the most scenarios. Failures and what is undecided come apart.
func (r *Report) findings() (failed, undecided []*group) {
	var all []*group
	index := map[string]*group{}
	add := func(res *harness.Result, v check.Verdict, own bool) {
		key := strings.Join([]string{res.Client, res.World, family(res.Scenario), v.Check, string(v.Status),
			string(v.Level), strconv.FormatBool(own), alike(v.Reason)}, "\x00")
		g := index[key]
		if g == nil {
			g = &group{client: res.Client, world: res.World, family: family(res.Scenario), verdict: v, harness: own}
			index[key] = g
			all = append(all, g)
		}
		if n := len(g.results); n == 0 || g.results[n-1] != res {
			g.results = append(g.results, res)
		}
	}
	for i := range r.Results {
		for _, f := range findingsOf(&r.Results[i], r.Level) {
			add(&r.Results[i], f.Verdict, f.own)
		}
	}
	slices.SortStableFunc(all, func(a, b *group) int {
		return cmp.Or(rank(b.verdict.Level)-rank(a.verdict.Level), len(b.results)-len(a.results))
	})
	seen := map[[2]string]int{}
	place := map[*group]int{}
	for _, g := range all {
		key := [2]string{g.client, g.verdict.Check}
		place[g] = seen[key]
		seen[key]++
	}
	slices.SortStableFunc(all, func(a, b *group) int {
		return cmp.Or(rank(b.verdict.Level)-rank(a.verdict.Level), place[a]-place[b])
	})
	for _, g := range all {
		if g.verdict.Status == check.Fail {
			failed = append(failed, g)
		} else {
			undecided = append(undecided, g)
		}
	}
	return failed, undecided
}

// alike is a reason without its numbers, which are what tells the same reason in two scenarios apart.
func alike(reason string) string {
	return numbers.ReplaceAllString(reason[:min(len(reason), maxText)], "#")
}

var numbers = regexp.MustCompile(`\d+(\.\d+)?`)

func rank(l check.Level) int {
	return slices.Index([]check.Level{check.May, check.Should, check.Must}, l)
}

// An item is one thing that is wrong with one result: a verdict, or what the harness found, in that form.
type item struct {
	check.Verdict
	own bool
}

// findingsOf lists what makes a result fail or leaves it undecided.
func findingsOf(res *harness.Result, level check.Level) []item {
	var out []item
	for _, v := range res.Verdicts {
		if (v.Status == check.Fail || v.Status == check.Unknown) && v.Level.AtLeast(level) {
			out = append(out, item{Verdict: v})
		}
	}
	for _, f := range res.Findings {
		v := check.Verdict{Check: f.Kind, Status: check.Unknown, Reason: f.Text}
		if f.Call != "" {
			v.Calls = []string{f.Call}
		}
		out = append(out, item{Verdict: v, own: true})
	}
	status := StatusAt(res, level)
	if len(out) == 0 && (status == check.Fail || status == check.Unknown) {
		reason := res.Reason
		if reason == "" {
			reason = "no reason was recorded"
		}
		out = append(out, item{own: true, Verdict: check.Verdict{Check: "result", Status: status, Reason: reason}})
	}
	return out
}

// A ruleCount is in how many results a check fails.
type ruleCount struct {
	check   string
	level   check.Level
	results int
}

// byRule sums up failures by check, in their order.
func byRule(failed []*group) []ruleCount {
	var out []ruleCount
	for _, g := range failed {
		i := slices.IndexFunc(out, func(c ruleCount) bool { return c.check == g.verdict.Check && c.level == g.verdict.Level })
		if i < 0 {
			i = len(out)
			out = append(out, ruleCount{check: g.verdict.Check, level: g.verdict.Level})
		}
		out[i].results += len(g.results)
	}
	slices.SortStableFunc(out, func(a, b ruleCount) int { return cmp.Or(rank(b.level)-rank(a.level), b.results-a.results) })
	return out
}

// manyFindings is how many make a summary by rule worth its lines.
const manyFindings = 4

// further counts failed verdicts below the report's level, by level.
func (r *Report) further() (should, may int) {
	for i := range r.Results {
		for _, v := range r.Results[i].Verdicts {
			if v.Status != check.Fail || v.Level.AtLeast(r.Level) {
				continue
			}
			if v.Level == check.Should {
				should++
			} else {
				may++
			}
		}
	}
	return should, may
}

// furtherText says in a line what lies below the level; "" if nothing does.
func (r *Report) furtherText() string {
	should, may := r.further()
	switch {
	case should > 0 && may > 0:
		return fmt.Sprintf("%s at SHOULD (add --level should), %d at MAY (add --level may)", count(should, "further finding"), may)
	case should > 0:
		return count(should, "further finding") + " at SHOULD: add --level should"
	case may > 0:
		return count(may, "further finding") + " at MAY: add --level may"
	}
	return ""
}

// A reasoned list is scenarios with one reason in common.
type reasoned struct {
	reason    string
	scenarios []string
}

// reasons collects scenarios by reason, in order of their first coming.
type reasons struct {
	list  []reasoned
	index map[string]int
}

// add takes the scenarios of one reason in their order.
func (r *reasons) add(reason, scenario string) {
	i, ok := r.index[reason]
	if !ok {
		if r.index == nil {
			r.index = map[string]int{}
		}
		i = len(r.list)
		r.index[reason] = i
		r.list = append(r.list, reasoned{reason: reason})
	}
	x := &r.list[i]
	if n := len(x.scenarios); n == 0 || x.scenarios[n-1] != scenario {
		x.scenarios = append(x.scenarios, scenario)
	}
}

// skipped groups the skipped results by their reason, in the order of the results.
func (r *Report) skipped() []reasoned {
	var out reasons
	for i := range r.Results {
		res := &r.Results[i]
		if StatusAt(res, r.Level) != check.Skipped {
			continue
		}
		reason := res.Reason
		if reason == "" {
			reason = "no check applies"
		}
		if len(r.Clients) > 1 {
			reason = res.Client + ": " + reason
		}
		out.add(reason, res.Scenario)
	}
	return out.list
}

// notes groups what checks thought worth telling of their verdicts.
func (r *Report) notes() []reasoned {
	var out reasons
	for i := range r.Results {
		res := &r.Results[i]
		for _, v := range res.Verdicts {
			for _, n := range v.Notes {
				text := v.Check + ": " + n
				if len(r.Clients) > 1 {
					text = res.Client + ": " + text
				}
				out.add(text, res.Scenario)
			}
		}
	}
	return out.list
}

// holds is the rule of the group's check as a sentence. A check that is not built in has none.
func (g *group) holds() string {
	if g.harness {
		return ""
	}
	return harness.Holds(g.verdict.Check)
}

// source is where the rule comes from.
func (g *group) source() string {
	if g.verdict.Source != "" || g.harness {
		return g.verdict.Source
	}
	if c, ok := check.Lookup(g.verdict.Check); ok {
		return c.Source
	}
	return ""
}

// title names the group: the check, how binding it is, and where it shows.
func (g *group) title(several bool) string {
	name := g.verdict.Check
	if g.harness {
		name = "harness: " + name
	}
	parts := []string{name}
	if g.verdict.Level != "" {
		parts = append(parts, string(g.verdict.Level))
	}
	if several {
		parts = append(parts, g.client)
	}
	if len(g.results) == 1 {
		parts = append(parts, g.results[0].Scenario)
	} else {
		parts = append(parts, fmt.Sprintf("%d scenarios of %s", len(g.results), g.family))
	}
	return strings.Join(parts, " · ")
}

// shown returns the history and the call whose timeline shows the group best; nil if there is none.
func (g *group) shown() (*history.History, *history.Call) {
	h := g.results[0].History
	if h == nil || len(h.Calls) == 0 {
		return nil, nil
	}
	for _, id := range g.verdict.Calls {
		for _, c := range h.Calls {
			if c.ID == id {
				return h, c
			}
		}
	}
	if len(h.Calls) == 1 {
		return h, h.Calls[0]
	}
	return nil, nil
}

// reproduce is the command that runs the group's first scenario again.
func (r *Report) reproduce(g *group) string { return r.command(g.results[0], g.verdict.Level) }

// command runs a result's scenario again, so that findings of a level show.
func (r *Report) command(res *harness.Result, level check.Level) string {
	cmd := r.client(res.Client).Repro
	if cmd == "" {
		cmd = "retrychaos run --client " + shellWord(res.Client)
	}
	cmd += fmt.Sprintf(" --scenario %s --seed %d", ShellQuote(res.Scenario), res.Seed)
	if res.World != "" {
		cmd += " --world " + shellWord(res.World)
	}
	if level != "" && level != check.Must {
		cmd += " --level " + strings.ToLower(shellWord(string(level)))
	}
	return cmd
}
