package reports

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"github.com/retrychaos/retrychaos/harness"
)

// compared is a comparison with something in most groups.
func comparedSamples() *Comparison {
	old := sample("example")
	for i := range old[:5] {
		old[i] = result("example", old[i].Scenario)
		if h := duplicated("example", old[i].Scenario).History; i < 2 {
			old[i].History = h
		}
	}
	old[7] = duplicated("example", old[7].Scenario)
	old = append(old, result("example", "gone/one"))
	return Diff(fixed(Run{Clients: []ClientInfo{{Name: "example", Version: "1.1.0"}}}, old), oneClient())
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
