package reports

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
)

// A Comparison is what changed between two reports. Diff makes one; it is read-only afterwards. The changes of a
// group come worst first: by the most binding rule that changed, then by client and scenario.
type Comparison struct {
	Old, New *Report
	Level    check.Level  // the least level whose verdicts count
	Clients  []ClientPair // that were compared
	// OldOnly and NewOnly are the clients that only one report has. Their results are not listed.
	OldOnly, NewOnly []string
	Notes            []string // what to know of the comparison as a whole

	Broken          []Change // a rule that held, did not apply or was undecided fails now
	NewlyUnknown    []Change // what was judged is undecided or not run now, or fails a rule that was not judged before
	Fixed           []Change // a rule that failed holds now, or no longer applies
	NoLongerUnknown []Change // what was undecided is judged now, and does not fail
	Changed         []Change // the same verdicts by other behaviour
	Added, Removed  []Change // scenarios that only one report has
	// Incomparable results differ, and need not by the client's doing; each says Why.
	Incomparable []Change
	// Trends are what only many scenarios show: waits and attempts of a client that draws its waits. The
	// significant ones are changed behaviour.
	Trends []Trend
	Same   int // results without a difference
}

// A ClientPair is a client with its name in either report.
type ClientPair struct {
	Old, New string
}

// String names the pair.
func (p ClientPair) String() string {
	if p.Old == p.New {
		return p.New
	}
	return p.Old + " → " + p.New
}

// A Change is a result that differs.
type Change struct {
	Client   ClientPair
	Scenario string
	World    string
	// Level is of the most binding verdict that made it this kind of change; "" where none did.
	Level check.Level
	// Old and New are the results, in the reports that were compared; Old is nil in Added, New in Removed.
	Old, New *harness.Result
	// Differences says in words and numbers what differs, what matters most first. It holds hostile text.
	Differences []string
	// Why says why results are Incomparable; "" for all others.
	Why string
	// Call is the call that shows it best, by its id in both histories; "" if there is none to show.
	Call string
}

// A Group is the changes of one kind.
type Group struct {
	Name    string // "broken", stable: for JSON, and for anchors of a page
	Title   string // for people
	Changes []Change
}

// Groups returns the changes by kind, the worst first. Empty groups are among them.
func (c *Comparison) Groups() []Group {
	return []Group{
		{"broken", "Broken", c.Broken},
		{"newly_unknown", "Newly unknown", c.NewlyUnknown},
		{"changed", "Changed behaviour", c.Changed},
		{"fixed", "Fixed", c.Fixed},
		{"no_longer_unknown", "No longer unknown", c.NoLongerUnknown},
		{"incomparable", "Not comparable", c.Incomparable},
		{"added", "Added", c.Added},
		{"removed", "Removed", c.Removed},
	}
}

// Empty reports whether nothing differs that two runs of one client would not differ in.
func (c *Comparison) Empty() bool {
	for _, g := range c.Groups() {
		if len(g.Changes) > 0 && g.Name != "incomparable" {
			return false
		}
	}
	return len(c.OldOnly)+len(c.NewOnly)+len(c.significant()) == 0
}

// DiffOptions says how reports are compared. The zero value is ready.
type DiffOptions struct {
	// Clients pairs clients whose names differ. Every other client is paired with its own name.
	Clients []ClientPair
	// Level is the least level whose verdicts count; default the new report's.
	Level check.Level
}

// Diff compares two reports: Compare without options.
func Diff(old, new *Report) *Comparison { return Compare(old, new, DiffOptions{}) }

// Compare finds what changed from one report to another. Results are matched by client, scenario and world, and
// where there are several of these by their seeds.
//
// What two runs of one client differ in is no change. How much that is, the client's own waits tell, over all its
// scenarios in either report:
//
//   - A wait of the client's own choice differs where it does by more than twice the range that the client's k-th
//     wait has in either report, or by its declared policy, and by more than the clock's resolution: 4 grains, on
//     a real clock also twice the lateness, and a tenth of the wait. With fewer than 8 samples and no declared
//     jitter, waits are not compared. So constant waits are compared closely, drawn ones by their order of
//     magnitude. A wait after a Retry-After is given a second of rounding besides.
//   - Attempts, effects and outcome are compared exactly, unless a client with jitter ran against time: a storm,
//     a capacity, the expiry of a key, a cancellation, a late commit, several calls, its own limit on time, or a
//     deadline that its next wait could have passed. They are not compared either where the runs differ in what
//     was sent of an attempt before they differ in anything else: that is a race.
//   - Where the machine was late for its own timers, as below, behaviour is not compared at all, and a note says so.
//   - How long the first attempt went on is compared by a tenth; on a real clock by a factor of three and a second.
//   - Of several calls the sums are compared; they differ by more than 2 and a tenth.
//   - eof, unexpected_eof and reset are one kind of error, and so is what shows no trait where the last attempt's
//     connection broke: which of them a client sees is a race in its transport.
//   - What is left to chance so is compared over all scenarios of the client, in the manner of benchstat: the
//     k-th wait, and the attempts of scenarios against time, paired by scenario, by Wilcoxon's signed-rank test at
//     1e-6. These are the Trends. They need draws that are independent from scenario to scenario, which those of
//     a client with a seed of its own are not.
//
// A verdict that differs is a change, with these exceptions, which are Incomparable: the scenario draws from the
// seed and the seeds differ; on a real clock the harness was late for its own timers, by 100 ms in this scenario or in
// one of twenty, and the rule can be turned by that, which those of effects, keys, bodies, permanent answers and unsafe
// repeats cannot; what differs is a race, as above; a client with jitter ran against time, and over such scenarios the
// verdict of that check goes both ways in both reports, and changes about as often for the better as for the
// worse (sign test at 1e-3); a client with jitter in 30 scenarios or more draws two waits of next to nothing, or one
// above what Retry-After asks, in fewer than 6 scenarios one way; or all that differs is whether a connection was used again, in fewer than 6 scenarios
// one way, which is a race inside net/http for clients that do not drain bodies.
//
// To compare all there is, run both with one --seed in the virtual world.
func Compare(old, new *Report, o DiffOptions) *Comparison {
	c := &Comparison{Old: old, New: new, Level: cmp.Or(o.Level, new.Level, check.Should)}
	c.pairClients(o.Clients)
	c.note()
	for _, p := range c.Clients {
		c.client(p)
	}
	for _, g := range c.Groups() {
		slices.SortStableFunc(g.Changes, func(a, b Change) int { return rank(b.Level) - rank(a.Level) })
	}
	return c
}

// pairClients matches the clients by name, but for those that are named.
func (c *Comparison) pairClients(named []ClientPair) {
	paired := map[string]string{}
	taken := map[string]bool{}
	for _, p := range named {
		paired[p.Old] = p.New
		taken[p.New] = true
	}
	for _, info := range c.Old.Clients {
		to, ok := paired[info.Name]
		if !ok && taken[info.Name] {
			c.OldOnly = append(c.OldOnly, info.Name)
			continue
		}
		if !ok {
			to = info.Name
		}
		if !c.New.has(to) {
			c.OldOnly = append(c.OldOnly, info.Name)
			continue
		}
		taken[to] = true
		c.Clients = append(c.Clients, ClientPair{info.Name, to})
	}
	for _, info := range c.New.Clients {
		if !taken[info.Name] {
			c.NewOnly = append(c.NewOnly, info.Name)
		}
	}
}

func (r *Report) has(client string) bool {
	return slices.ContainsFunc(r.Clients, func(c ClientInfo) bool { return c.Name == client })
}

// note says what bears on the comparison as a whole.
func (c *Comparison) note() {
	add := func(format string, args ...any) { c.Notes = append(c.Notes, fmt.Sprintf(format, args...)) }
	if a, b := c.Old.worlds(), c.New.worlds(); !slices.Equal(a, b) && len(a) > 0 && len(b) > 0 {
		add("the reports are of different worlds (%s, and %s): only results of one world are compared", strings.Join(a, " and "), strings.Join(b, " and "))
	}
	if c.Old.Seed != c.New.Seed {
		add("the seeds differ (%d, and %d): scenarios that draw from the seed are not comparable; run both with one --seed", c.Old.Seed, c.New.Seed)
	}
	if c.Old.Tool.Version != c.New.Tool.Version {
		add("the reports are of different versions of retrychaos (%s, and %s): retrychaos report recheck judges the old histories by today's rules", c.Old.Tool.Version, c.New.Tool.Version)
	}
	if c.Old.Level != c.Level {
		add("the old report was made at level %s; both are compared at %s", c.Old.Level, c.Level)
	}
}

// client compares the results of one client.
func (c *Comparison) client(p ClientPair) {
	type key struct{ scenario, world string }
	olds := map[key][]*harness.Result{}
	for i := range c.Old.Results {
		if r := &c.Old.Results[i]; r.Client == p.Old {
			k := key{r.Scenario, r.World}
			olds[k] = append(olds[k], r)
		}
	}
	var pairs []pair
	for i := range c.New.Results {
		r := &c.New.Results[i]
		if r.Client != p.New {
			continue
		}
		k := key{r.Scenario, r.World}
		list := olds[k]
		if len(list) == 0 {
			c.Added = append(c.Added, Change{Client: p, Scenario: r.Scenario, World: r.World, New: r, Differences: []string{statusText(r, c.Level)}})
			continue
		}
		at := max(0, slices.IndexFunc(list, func(o *harness.Result) bool { return o.Seed == r.Seed }))
		pairs = append(pairs, pair{list[at], r})
		olds[k] = slices.Delete(list, at, at+1)
	}
	for i := range c.Old.Results { // in their order
		r := &c.Old.Results[i]
		if r.Client == p.Old && slices.Contains(olds[key{r.Scenario, r.World}], r) {
			c.Removed = append(c.Removed, Change{Client: p, Scenario: r.Scenario, World: r.World, Old: r, Differences: []string{statusText(r, c.Level)}})
		}
	}
	byWorld := map[string][]pair{}
	var worlds []string
	for _, x := range pairs {
		if byWorld[x.new.World] == nil {
			worlds = append(worlds, x.new.World)
		}
		byWorld[x.new.World] = append(byWorld[x.new.World], x)
	}
	for _, w := range worlds {
		n := learn(byWorld[w])
		var list []*compared
		for _, x := range byWorld[w] {
			list = append(list, n.compare(x, c.Level))
		}
		chance := chances(list)
		for _, x := range list {
			c.result(p, x, chance)
		}
		c.Trends = append(c.Trends, n.trends(p, w)...)
		if n.skipped > 0 {
			c.Notes = append(c.Notes, fmt.Sprintf("%s: the machine was late for its own timers, so behaviour is not compared in %s: run it on a machine with less to do, or in the virtual world", p, count(n.skipped, "scenario")))
		}
		if n.unclear > 0 {
			c.Notes = append(c.Notes, fmt.Sprintf("%s: waits differ in %s, and nothing tells whether that is jitter: declare the client's, or run more scenarios", p, count(n.unclear, "scenario")))
		}
	}
}

// pair is two results of one scenario.
type pair struct{ old, new *harness.Result }

func statusText(r *harness.Result, level check.Level) string {
	s := StatusAt(r, level)
	if r.Reason != "" && s != check.Pass {
		return string(s) + ": " + r.Reason
	}
	return string(s)
}

// compared is one pair and what differs in it.
type compared struct {
	pair
	verdicts  verdictChange
	behaviour []string
	call      string
	against   bool // a client that has jitter, or may, ran against time
	draws     bool // and it has
	late      bool // the machine was late for its own timers
	many      bool // it draws its waits, and has in many scenarios
	race      bool
}

func (n *noise) compare(x pair, level check.Level) *compared {
	d := &compared{pair: x, verdicts: compareVerdicts(x, level)}
	n.behaviour(d)
	return d
}

// why says why a difference need not be the client's doing; "" if it must be.
func (d *compared) why(chance func(*compared) bool) string {
	switch {
	case d.old.History != nil && d.old.History == d.new.History:
		return "" // one run, judged twice
	case drawn(d.pair):
		return fmt.Sprintf("drawn from the seed, and the seeds differ (%d, and %d)", d.old.Seed, d.new.Seed)
	case len(d.verdicts.words) == 0:
		return ""
	case d.late && d.verdicts.timed:
		return "the machine was late for its own timers, which can turn these rules: run it again"
	case d.race:
		return "a race: what was sent of an attempt differs, or which error its transport saw first"
	case chance(d):
		if d.draws || d.many {
			return "chance: the client draws its waits, and the verdict depends on the draw"
		}
		return "a race: whether a body that is closed unread leaves its connection fit for use"
	}
	return ""
}

// result puts one pair where it belongs.
func (c *Comparison) result(p ClientPair, d *compared, chance func(*compared) bool) {
	v := d.verdicts
	ch := Change{Client: p, Scenario: d.new.Scenario, World: d.new.World, Old: d.old, New: d.new, Level: v.level,
		Differences: append(slices.Clone(v.words), d.behaviour...), Call: cmp.Or(v.call(d.pair), d.call)}
	if len(ch.Differences) == 0 {
		c.Same++
		return
	}
	ch.Why = d.why(chance)
	switch {
	case ch.Why != "":
		c.Incomparable = append(c.Incomparable, ch)
	case v.broken:
		c.Broken = append(c.Broken, ch)
	case v.unknown:
		c.NewlyUnknown = append(c.NewlyUnknown, ch)
	case v.fixed:
		c.Fixed = append(c.Fixed, ch)
	case v.known:
		c.NoLongerUnknown = append(c.NoLongerUnknown, ch)
	default:
		c.Changed = append(c.Changed, ch)
	}
}

// significant returns the trends that are no chance.
func (c *Comparison) significant() []Trend {
	return slices.DeleteFunc(slices.Clone(c.Trends), func(t Trend) bool { return !t.Significant })
}

// A FailOn says which changes make a comparison fail.
type FailOn string

const (
	FailOnBroken  FailOn = "broken"  // the default
	FailOnUnknown FailOn = "unknown" // and what is newly unknown
	FailOnChanged FailOn = "changed" // and every other change, for the better too, but not what is added
	FailOnNever   FailOn = "never"
)

// ExitCode decides how a comparison ends: ExitFindings if there is a change of the kinds that fail; else
// ExitUndecided if something is newly unknown, if nothing was compared, or, for FailOnUnknown, if a result fails that
// did not and is not comparable; else ExitOK. FailOnNever is always ExitOK.
func (c *Comparison) ExitCode(on FailOn) int {
	if on == FailOnNever {
		return ExitOK
	}
	fails := len(c.Broken) > 0
	if on == FailOnUnknown || on == FailOnChanged {
		fails = fails || len(c.NewlyUnknown) > 0
	}
	if on == FailOnChanged {
		fails = fails || len(c.Changed)+len(c.Fixed)+len(c.NoLongerUnknown)+len(c.Removed)+len(c.OldOnly)+len(c.significant()) > 0
	}
	compared := c.Same
	for _, g := range c.Groups() {
		for _, ch := range g.Changes {
			if ch.Old != nil && ch.New != nil {
				compared++
			}
		}
	}
	undecided := len(c.NewlyUnknown) > 0 || compared == 0
	for _, ch := range c.Incomparable {
		undecided = undecided || on == FailOnUnknown && StatusAt(ch.New, c.Level) == check.Fail && StatusAt(ch.Old, c.Level) != check.Fail
	}
	switch {
	case fails:
		return ExitFindings
	case undecided:
		return ExitUndecided
	}
	return ExitOK
}
