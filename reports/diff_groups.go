package reports

import (
	"fmt"
	"slices"
	"strings"

	"github.com/retrychaos/retrychaos/harness/history"
)

// alikeChanges is changes of one client and family that differ in the same way: told once.
type alikeChanges struct {
	Change
	scenarios []string
}

// grouped collects changes that are alike, in the order of their first.
func grouped(list []Change) []*alikeChanges {
	var out []*alikeChanges
	index := map[string]*alikeChanges{}
	for _, ch := range list {
		parts := []string{ch.Client.Old, ch.Client.New, ch.World, family(ch.Scenario), string(ch.Level), ch.Why}
		for _, d := range ch.Differences {
			parts = append(parts, alike(d))
		}
		key := strings.Join(parts, "\x00")
		g := index[key]
		if g == nil {
			g = &alikeChanges{Change: ch}
			index[key] = g
			out = append(out, g)
		}
		g.scenarios = append(g.scenarios, ch.Scenario)
	}
	return out
}

// title names where a change shows.
func (g *alikeChanges) title(c *Comparison) string {
	var parts []string
	if len(g.scenarios) == 1 {
		parts = append(parts, g.Scenario)
	} else {
		parts = append(parts, fmt.Sprintf("%d scenarios of %s", len(g.scenarios), family(g.Scenario)))
	}
	if g.Level != "" {
		parts = append(parts, string(g.Level))
	}
	if len(c.Clients) > 1 {
		parts = append(parts, g.Client.String())
	}
	if len(c.New.worlds()) > 1 {
		parts = append(parts, g.World+" world")
	}
	return strings.Join(parts, " · ")
}

// calls returns the call that shows the change, in both histories; nil if there is none to show.
func (ch *Change) calls() (old, new *history.Call) {
	if ch.Call == "" || ch.Old == nil || ch.New == nil || ch.Old.History == nil || ch.New.History == nil {
		return nil, nil
	}
	old, new = ch.Old.History.Call(ch.Call), ch.New.History.Call(ch.Call)
	if old == nil || new == nil {
		return nil, nil
	}
	return old, new
}

// headline says what is compared.
func (c *Comparison) headline() string {
	var pairs []string
	for _, p := range c.Clients {
		a, b := c.Old.client(p.Old), c.New.client(p.New)
		switch {
		case p.Old != p.New:
			pairs = append(pairs, strings.TrimSpace(p.Old+" "+a.Version)+" → "+strings.TrimSpace(p.New+" "+b.Version))
		case a.Version != b.Version:
			pairs = append(pairs, p.New+" "+a.Version+" → "+b.Version)
		default:
			pairs = append(pairs, strings.TrimSpace(p.New+" "+b.Version))
		}
	}
	what := strings.Join(pairs, ", ")
	if len(pairs) > 3 {
		what = count(len(pairs), "client")
	}
	if what == "" {
		what = "no client in common"
	}
	parts := []string{strings.TrimSpace(c.New.Tool.Name + " " + c.New.Tool.Version), what}
	if w := c.New.worlds(); len(w) > 0 {
		parts = append(parts, strings.Join(w, " and ")+" world")
	}
	if c.Old.Seed == c.New.Seed {
		parts = append(parts, fmt.Sprintf("seed %d", c.New.Seed))
	} else {
		parts = append(parts, fmt.Sprintf("seeds %d → %d", c.Old.Seed, c.New.Seed))
	}
	return strings.Join(append(parts, levelText(c.Level)), " · ")
}

// summary is the comparison in a line.
func (c *Comparison) summary() string {
	parts := []string{fmt.Sprintf("%d broken", len(c.Broken)), fmt.Sprintf("%d fixed", len(c.Fixed)),
		fmt.Sprintf("%d newly unknown", len(c.NewlyUnknown)), fmt.Sprintf("%d no longer unknown", len(c.NoLongerUnknown)),
		fmt.Sprintf("%d behave otherwise", len(c.Changed))}
	add := func(n int, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}
	if n := len(c.significant()); n > 0 {
		parts = append(parts, count(n, "trend")+" changed")
	}
	add(len(c.Added), "added")
	add(len(c.Removed), "removed")
	add(len(c.Incomparable), "not comparable")
	parts = append(parts, fmt.Sprintf("%d the same", c.Same))
	return strings.Join(parts, ", ")
}

// reasonsFor collects the scenarios of incomparable changes by why they are.
func (c *Comparison) reasonsFor() []reasoned {
	var out reasons
	for _, ch := range c.Incomparable {
		why := ch.Why
		if len(c.Clients) > 1 {
			why = ch.Client.String() + ": " + why
		}
		out.add(why, ch.Scenario)
	}
	return out.list
}

// lonely says which clients only one report has.
func (c *Comparison) lonely() []string {
	var out []string
	for _, x := range []struct {
		what    string
		clients []string
		r       *Report
	}{{"only in the old report", c.OldOnly, c.Old}, {"only in the new report", c.NewOnly, c.New}} {
		if len(x.clients) == 0 {
			continue
		}
		n := 0
		for i := range x.r.Results {
			if slices.Contains(x.clients, x.r.Results[i].Client) {
				n++
			}
		}
		out = append(out, fmt.Sprintf("%s: %s (%s)", x.what, strings.Join(x.clients, ", "), count(n, "result")))
	}
	return out
}

// changeGlyph is a kind of change as one character.
func changeGlyph(group string) string {
	switch group {
	case "broken":
		return "✗"
	case "fixed", "no_longer_unknown":
		return "✓"
	case "newly_unknown":
		return "?"
	case "added":
		return "+"
	case "removed":
		return "-"
	case "incomparable":
		return "~"
	}
	return "≠"
}
