package reports

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
)

// comparedSamples is a comparison with something in most groups.
func comparedSamples() *Comparison {
	once := func(name string) harness.Result { // as duplicated, and given up in time
		r := result("example", name)
		r.History = duplicated("example", name).History
		c := r.History.Calls[0]
		c.Attempts, r.History.Effects = c.Attempts[:1], r.History.Effects[:1]
		c.Ended, c.Outcome = 3*ms, history.Outcome{Error: "connection reset", Traits: []string{history.TraitReset}}
		return r
	}
	unjudged := func(name string) harness.Result {
		r := result("example", name)
		r.Status, r.Verdicts = check.Unknown, []check.Verdict{{Check: "effects.once", Status: check.Unknown, Level: check.Must, Reason: "the check crashed"}}
		return r
	}
	twice := func(name string) harness.Result { // and it may
		r := duplicated("example", name)
		r.Status, r.Reason, r.Verdicts = check.Pass, "", r.Verdicts[:1]
		return r
	}
	report := func(version string, list ...harness.Result) *Report {
		return fixed(Run{Clients: []ClientInfo{{Name: "example", Version: version}}}, list)
	}
	return Diff(
		report("1.0", once("a/breaks"), once("b/breaks-too"), once("b/breaks-as-well"), duplicated("example", "c/fixed"), once("d/otherwise"),
			result("example", "e/crashes"), unjudged("f/judged"), result("example", "g/gone"), result("example", "i/same")),
		report("2.0", duplicated("example", "a/breaks"), duplicated("example", "b/breaks-too"), duplicated("example", "b/breaks-as-well"), once("c/fixed"),
			twice("d/otherwise"), unjudged("e/crashes"), result("example", "f/judged"), result("example", "h/new"), result("example", "i/same")))
}

func TestDiffHTML(t *testing.T) {
	c := comparedSamples()
	p := readDiffHTML(t, c, HTMLOptions{})
	golden(t, "diff.html.txt", func(w io.Writer) error { p.outline(t, w); return nil })

	said := map[string]string{} // by group
	for n := range p.doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == "section" {
			said[attribute(n, "id")] = text(n)
		}
	}
	for _, g := range c.Groups() {
		if _, ok := said[g.Name]; ok != (len(g.Changes) > 0) {
			t.Errorf("%s: on the page %v, with %d changes", g.Name, ok, len(g.Changes))
		}
		if want := map[string]int{"broken": 3}; g.Name != "incomparable" && len(g.Changes) != cmp.Or(want[g.Name], 1) {
			t.Errorf("%s: %d changes", g.Name, len(g.Changes))
		}
		for _, ch := range g.Changes {
			if !strings.Contains(said[g.Name], ch.Scenario) {
				t.Errorf("%s lacks %s", g.Name, ch.Scenario)
			}
		}
	}
}

// Both timelines have one scale, whichever of the calls lasted longer.
func TestSidesHaveOneScale(t *testing.T) {
	a, b := duplicated("c", "f/x"), duplicated("c", "f/x")
	b.History.Calls[0].Ended *= 4
	call := func(r harness.Result) string {
		scale := max(lasts(a.History, a.History.Calls[0]), lasts(b.History, b.History.Calls[0]))
		return drawTimelineOver(r.History, r.History.Calls[0], "", scale).Lanes[1].From
	}
	if call(a) != call(b) {
		t.Errorf("attempt 2 came at one time and stands at %s and %s", call(a), call(b))
	}
}

func TestDiffHTMLLimit(t *testing.T) {
	var old, new []harness.Result
	for i := range 200 {
		name := fmt.Sprintf("f%d/s", i)
		o := result("big", name)
		o.History = duplicated("big", name).History
		o.History.Calls[0].Attempts, o.History.Effects = o.History.Calls[0].Attempts[:1], o.History.Effects[:1]
		old, new = append(old, o), append(new, duplicated("big", name))
	}
	c := Diff(fixed(Run{}, old), fixed(Run{}, new))
	if len(c.Broken) != 200 {
		t.Fatalf("%d broken", len(c.Broken))
	}
	for _, limit := range []int{0, 1, 100_000, 400_000} {
		p := readDiffHTML(t, c, HTMLOptions{MaxBytes: limit})
		changes, cut := 0, 0
		for n := range p.doc.Descendants() {
			if strings.HasPrefix(attribute(n, "class"), "change") && n.Data == "article" {
				changes++
			}
		}
		said := text(p.doc)
		if n := 200 - changes; n > 0 {
			cut++
			if !strings.Contains(said, count(n, "change")+", to keep this page small") {
				t.Errorf("limit %d: %d changes are left out without a word", limit, n)
			}
		}
		if n := changes - len(p.pictures); n > 0 && !strings.Contains(said, fmt.Sprintf("The timelines of %s", count(n, "change"))) {
			t.Errorf("limit %d: %d timelines are left out without a word", limit, n)
		}
		if limit == 0 && (changes != 200 || len(p.pictures) != 200) || limit == 1 && changes > 0 || limit == 100_000 && cut == 0 && len(p.pictures) == 200 {
			t.Errorf("limit %d: %d changes with %d pictures", limit, changes, len(p.pictures))
		}
	}
}
