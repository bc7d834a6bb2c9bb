package reports

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
)

// htmlCells are the inside of the cells that have more to tell than their status: markup made by html/template,
// by cell. Words are verdicts and commands, pictures are timelines and histograms.
type htmlCells struct {
	words, pictures     map[string]string
	noWords, noPictures int // cells without, for want of room
	limit               int
}

const (
	maxPictures = 2  // timelines of one result
	maxEvidence = 20 // lines of one verdict
)

// htmlCells fills the room in order of importance: the words of every finding, worst first, then the pictures of
// one result of each finding, then those of the others, then histograms of what passed.
func (r *Report) htmlCells(x *htmlIndex, room int) *htmlCells {
	cells := &htmlCells{words: map[string]string{}, pictures: map[string]string{}, limit: max(0, room)}
	byCell := map[string][]*harness.Result{}
	for i := range r.Results {
		res := &r.Results[i]
		key := x.cell(res)
		byCell[key] = append(byCell[key], res)
	}
	order := r.htmlOrder(x)
	for _, key := range order {
		s := ""
		for _, res := range byCell[key] {
			s += r.words(res, len(byCell[key]) > 1)
		}
		size := embeddedLen(key, s)
		if size > room {
			cells.noWords++
			continue
		}
		room -= size
		cells.words[key] = s
	}
	told := map[string]bool{}
	for _, key := range order {
		told[key] = true
	}
	for i := range r.Results {
		res := &r.Results[i]
		if key := x.cell(res); !told[key] && hasPicture(res) {
			told[key] = true
			order = append(order, key)
		}
	}
	full := false // once one does not fit no smaller one is looked for: what is left out is the least important
	for _, key := range order {
		s := ""
		if !full {
			for _, res := range byCell[key] {
				s += r.pictures(res)
			}
			if s == "" {
				continue
			}
			room -= embeddedLen(key, s)
			full = room < 0
		}
		if full {
			cells.noPictures++
			continue
		}
		cells.pictures[key] = s
	}
	return cells
}

// htmlOrder lists the cells with something wrong: first one of each finding, then the rest, then what fails below
// the report's level.
func (r *Report) htmlOrder(x *htmlIndex) []string {
	failed, undecided := r.findings()
	seen := map[string]bool{}
	var out []string
	add := func(res *harness.Result) {
		if key := x.cell(res); !seen[key] {
			seen[key] = true
			out = append(out, key)
		}
	}
	groups := append(failed, undecided...)
	for _, g := range groups {
		add(g.results[0])
	}
	for _, g := range groups {
		for _, res := range g.results[1:] {
			add(res)
		}
	}
	for i := range r.Results {
		if len(toTell(&r.Results[i])) > 0 {
			add(&r.Results[i])
		}
	}
	return out
}

// toTell lists what a cell tells in words: what is wrong at any level, and what is known to fail.
func toTell(res *harness.Result) []item {
	out := findingsOf(res, check.May)
	for _, v := range res.Verdicts {
		if v.Known {
			out = append(out, item{Verdict: v})
		}
	}
	return out
}

// hasPicture reports whether a result that passes has something to draw.
func hasPicture(res *harness.Result) bool {
	return slices.ContainsFunc(res.Verdicts, func(v check.Verdict) bool {
		return v.Waits != nil || v.Check == amplificationID && v.Status != check.Skipped
	})
}

func (c *htmlCells) leftOut() []string {
	var out []string
	if c.noWords > 0 {
		out = append(out, fmt.Sprintf("The verdicts of %s with a finding, to keep this page small.", count(c.noWords, "cell")))
	}
	if c.noPictures > 0 {
		out = append(out, fmt.Sprintf("The timelines and histograms of %s, to keep this page small.", count(c.noPictures, "cell")))
	}
	return out
}

// A said is one finding in a cell.
type said struct {
	item
	Name  string
	Rule  string
	From  string
	More  int  // lines of evidence left out
	Below bool // of a level that does not count
	Lines []string
}

// words tells what is wrong with a result.
func (r *Report) words(res *harness.Result, several bool) string {
	var list []said
	level := check.Must
	for _, f := range toTell(res) {
		g := group{verdict: f.Verdict, harness: f.own}
		s := said{item: f, Name: plain(f.Check), Rule: g.holds(), From: g.source(), Lines: f.Evidence,
			Below: !f.own && !f.Known && !f.Level.AtLeast(r.Level)}
		if f.own {
			s.Name = harnessID(f.Check)
		} else if f.Level != "" && !f.Level.AtLeast(level) {
			level = f.Level
		}
		if n := len(s.Lines) - maxEvidence; n > 1 {
			s.Lines, s.More = s.Lines[:maxEvidence], n
		}
		if f.Waits != nil { // its bars are drawn, and wrap badly as text
			s.Lines = slices.Clone(s.Lines)
			for i, l := range s.Lines {
				s.Lines[i] = strings.TrimRight(l, "# ")
			}
		}
		list = append(list, s)
	}
	in := ""
	if several {
		in = fmt.Sprintf("%s world, seed %d", res.World, res.Seed)
	}
	return fragment("words", map[string]any{"In": in, "Said": list, "Command": visible(r.command(res, level))})
}

// pictures draws a result: the histogram of its waits, the course of its load, and the timelines of the calls that
// its verdicts name.
func (r *Report) pictures(res *harness.Result) string {
	var b strings.Builder
	verdicts := slices.Clone(res.Verdicts)
	slices.SortStableFunc(verdicts, func(a, b check.Verdict) int { return severity(b.Status) - severity(a.Status) })
	for _, v := range verdicts {
		if v.Waits != nil {
			if f := drawWaits(v.Waits); f != nil {
				b.WriteString(fragment("waits", f))
			}
		}
		if v.Check == amplificationID && v.Status != check.Skipped && res.History != nil {
			if f := drawLoad(res.History); f != nil {
				b.WriteString(fragment("load", f))
			}
		}
	}
	if res.History == nil {
		return b.String()
	}
	shown := map[string]bool{}
	for _, f := range toTell(res) {
		g := group{verdict: f.Verdict, results: []*harness.Result{res}}
		if h, c := g.shown(); c != nil && !shown[c.ID] && len(shown) < maxPictures {
			shown[c.ID] = true
			b.WriteString(fragment("timeline", drawTimeline(h, c, f.Check)))
		}
	}
	return b.String()
}

// fragment executes one of the page's templates. They can only fail by a mistake in them.
func fragment(name string, data any) string {
	var b bytes.Buffer
	if err := pageTemplate.ExecuteTemplate(&b, name, data); err != nil {
		panic(fmt.Sprintf("page template %s: %v", name, err))
	}
	return b.String()
}
