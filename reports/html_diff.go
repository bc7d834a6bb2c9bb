package reports

import (
	"cmp"
	"fmt"
	"html/template"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
)

// htmlDiff is what the template of a comparison sees.
type htmlDiff struct {
	Policy   string
	Style    template.CSS
	Script   template.JS
	Title    string
	Worst    check.Status
	Mark     string
	Result   string
	Summary  string
	Facts    [][2]string
	Notes    []string
	Groups   []htmlGroup
	Trends   []Trend
	LeftOut  []string
	Pictures template.JS
}

type htmlGroup struct {
	Name, Title, Mark string
	Results           int
	Changes           []htmlChange
	Lists             []htmlReason
}

type htmlChange struct {
	Key         string // of its pictures
	Title       string
	Scenarios   []string // where there are several
	Differences []string
	Old, New    string // commands
	Drawn       bool
	Cut         bool // its pictures are left out
}

// WriteDiffHTML writes what changed between two reports as one page that needs nothing beside it: the worst first,
// each change with what differs and both timelines side by side, drawn to one scale. Changes of one client and family
// that are alike are told once. All text of clients is escaped.
func WriteDiffHTML(w io.Writer, c *Comparison, o HTMLOptions) error {
	script := "'use strict';\n" + baseJS + diffJS
	p := &htmlDiff{Policy: policy(script, pageCSS), Style: template.CSS(pageCSS), Script: template.JS(script),
		Summary: c.summary(), Notes: append(append([]string{}, c.Notes...), c.lonely()...), Trends: c.Trends,
		Facts: [][2]string{
			{"old", c.Old.identity()}, {"new", c.New.identity()},
			{"level", levelText(c.Level)}, {"clients", clientPairs(c.Clients)},
		}}
	p.Worst, p.Result = c.ended()
	p.Mark = glyph(p.Worst)
	p.Title = p.Result + " · " + c.headline()

	limit := cmp.Or(o.MaxBytes, DefaultMaxHTML)
	room := limit - limit/64
	pictures := map[string]string{}
	cut, noPictures := 0, 0
	for _, g := range c.Groups() {
		group := htmlGroup{Name: g.Name, Title: g.Title, Mark: changeGlyph(g.Name), Results: len(g.Changes)}
		switch g.Name {
		case "incomparable":
			group.Lists = htmlList(c.reasonsFor())
		case "added", "removed":
			var list reasons
			for _, ch := range g.Changes {
				list.add(ch.Client.String()+": "+ch.Differences[0], ch.Scenario)
			}
			group.Lists = htmlList(list.list)
		default:
			for _, x := range grouped(g.Changes) {
				change := c.htmlChange(x, len(pictures))
				size := len(fragment("change", change))
				if size > room {
					cut += len(x.scenarios)
					continue
				}
				room -= size
				if change.Drawn {
					s := c.sideBySide(x)
					if size := embeddedLen(change.Key, s); size <= room {
						room -= size
						pictures[change.Key] = s
					} else {
						change.Drawn, change.Cut = false, true
						noPictures++
					}
				}
				group.Changes = append(group.Changes, change)
			}
		}
		p.Groups = append(p.Groups, group)
	}
	if cut > 0 {
		p.LeftOut = append(p.LeftOut, count(cut, "change")+", to keep this page small.")
	}
	if noPictures > 0 {
		p.LeftOut = append(p.LeftOut, "The timelines of "+count(noPictures, "change")+", to keep this page small.")
	}
	var err error
	if p.Pictures, err = embedded(pictures); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	return pageTemplate.ExecuteTemplate(w, "diff", p)
}

func htmlList(list []reasoned) []htmlReason {
	var out []htmlReason
	for _, x := range list[:min(len(list), maxReasons)] {
		out = append(out, htmlReason{x.reason, x.scenarios})
	}
	if n := len(list) - len(out); n > 0 {
		out = append(out, htmlReason{Reason: fmt.Sprintf("… and %d more", n)})
	}
	return out
}

// ended says in a few words how a comparison ended.
func (c *Comparison) ended() (check.Status, string) {
	switch {
	case len(c.Broken) > 0:
		return check.Fail, count(len(c.Broken), "result") + " broken"
	case len(c.Clients) == 0:
		return check.Unknown, "nothing was compared"
	case len(c.NewlyUnknown) > 0:
		return check.Unknown, fmt.Sprintf("%d newly unknown", len(c.NewlyUnknown))
	case c.Empty():
		return check.Pass, "nothing changed"
	}
	return check.Pass, "nothing broken"
}

// identity tells one report from another.
func (r *Report) identity() string {
	parts := []string{strings.TrimSpace(r.Tool.Name + " " + r.Tool.Version)}
	if !r.Started.IsZero() {
		parts = append(parts, r.Started.UTC().Format(time.DateTime)+" UTC")
	}
	return strings.Join(append(parts, fmt.Sprintf("seed %d", r.Seed), strings.Join(r.worlds(), " and ")+" world", count(len(r.Results), "result")), ", ")
}

func clientPairs(list []ClientPair) string {
	var names []string
	for _, p := range list {
		names = append(names, p.String())
	}
	return cmp.Or(strings.Join(names, ", "), "none in common")
}

func (c *Comparison) htmlChange(g *alikeChanges, n int) htmlChange {
	out := htmlChange{Key: strconv.Itoa(n), Title: g.title(c), Differences: g.Differences}
	if len(g.scenarios) > 1 {
		out.Scenarios = g.scenarios
	}
	if g.Old != nil {
		out.Old = c.Old.command(g.Old, g.Level)
	}
	if g.New != nil {
		out.New = c.New.command(g.New, g.Level)
	}
	old, new := g.calls()
	out.Drawn = old != nil && new != nil
	return out
}

// sideBySide draws the call that shows a change best, as it went in either run, to one scale.
func (c *Comparison) sideBySide(g *alikeChanges) string {
	old, new := g.calls()
	scale := max(lasts(g.Old.History, old), lasts(g.New.History, new))
	a, b := drawTimelineOver(g.Old.History, old, "", scale), drawTimelineOver(g.New.History, new, "", scale)
	a.Side, b.Side = "old: "+c.Old.called(g.Client.Old), "new: "+c.New.called(g.Client.New)
	return fragment("sides", map[string]any{"Scenario": g.Scenario, "Several": len(g.scenarios) > 1, "Sides": []*htmlTimeline{a, b}})
}

// lasts is how long a call's timeline is.
func lasts(h *history.History, c *history.Call) time.Duration {
	a := reach(h, c)
	return a.to - a.from
}

// called is a client with its version.
func (r *Report) called(client string) string {
	return strings.TrimSpace(client + " " + r.client(client).Version)
}
