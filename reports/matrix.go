package reports

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/retrychaos/retrychaos/harness/check"
)

// glyph is a status as one character.
func glyph(s check.Status) string {
	switch s {
	case check.Pass:
		return "✓"
	case check.Fail:
		return "✗"
	case check.Skipped:
		return "–"
	}
	return "?"
}

const legend = "✓ pass   ✗ fail   ? unknown   – skipped"

// A tally is the results of one family, or of one client.
type tally struct {
	name     string
	counts   Counts
	statuses []check.Status
}

func (r *Report) tally(name func(i int) string) []*tally {
	var out []*tally
	index := map[string]*tally{}
	for i := range r.Results {
		n := name(i)
		t := index[n]
		if t == nil {
			t = &tally{name: n}
			index[n] = t
			out = append(out, t)
		}
		s := StatusAt(&r.Results[i], r.Level)
		t.counts.add(s)
		t.statuses = append(t.statuses, s)
	}
	return out
}

// tallyFamilies counts by family of scenarios.
func (r *Report) tallyFamilies() []*tally {
	return r.tally(func(i int) string { return family(r.Results[i].Scenario) })
}

// A grid is scenarios × clients. A cell without a result is "".
type grid struct {
	clients []ClientInfo
	rows    []gridRow
}

type gridRow struct {
	scenario string
	cells    []check.Status
	worst    int // the severest cell
}

// grid lays the results out, scenarios in order of their names. Where a client ran a scenario more than once
// the cell holds the worst.
func (r *Report) grid() grid {
	g := grid{clients: r.Clients}
	column := map[string]int{}
	for i, c := range r.Clients {
		column[c.Name] = i
	}
	index := map[string]int{}
	for i := range r.Results {
		res := &r.Results[i]
		n, ok := index[res.Scenario]
		if !ok {
			n = len(g.rows)
			index[res.Scenario] = n
			g.rows = append(g.rows, gridRow{scenario: res.Scenario, cells: make([]check.Status, len(r.Clients))})
		}
		row := &g.rows[n]
		s := StatusAt(res, r.Level)
		if c := column[res.Client]; row.cells[c] == "" || severity(s) > severity(row.cells[c]) {
			row.cells[c] = s
		}
		row.worst = max(row.worst, severity(s))
	}
	slices.SortFunc(g.rows, func(a, b gridRow) int { return strings.Compare(a.scenario, b.scenario) })
	return g
}

// severity orders statuses: skipped, pass, unknown, fail. What is no status is unknown.
func severity(s check.Status) int {
	switch s {
	case check.Skipped:
		return 0
	case check.Pass:
		return 1
	case check.Fail:
		return 3
	}
	return 2
}

// families writes one row a family: its counts and a glyph for every scenario.
func (t *terminal) families() {
	list := t.r.tallyFamilies()
	if len(list) == 0 {
		return
	}
	t.countHead("family", nameCells(list))
	for _, x := range list {
		t.countRow(x, nameCells(list), true)
	}
	t.line("")
	t.line("  " + t.dim(legend))
	t.line("")
}

func nameCells(list []*tally) int {
	n := len("family")
	for _, x := range list {
		n = max(n, columns(plain(x.name)))
	}
	return min(n, 40)
}

func (t *terminal) countHead(what string, cells int) {
	t.line(t.dim(fmt.Sprintf("  %s %4s %4s %4s %4s", pad(what, cells), "✓", "✗", "?", "–")))
}

func (t *terminal) countRow(x *tally, cells int, glyphs bool) {
	c := x.counts
	number := func(code string, n int) string {
		s := fmt.Sprintf(" %4d", n)
		if n == 0 {
			return t.dim(s)
		}
		return t.paint(code, s)
	}
	row := "  " + pad(clip(plain(x.name), cells), cells) + number(green, c.Passed) + number(red, c.Failed) +
		number(yellow, c.Unknown) + number("2", c.Skipped)
	if !glyphs {
		t.line(row)
		return
	}
	indent := 2 + cells + 4*5 + 2
	room := max(10, t.o.Width-indent)
	for i := 0; i < len(x.statuses); i += room {
		if i > 0 {
			row = strings.Repeat(" ", indent-2)
		}
		row += "  "
		for _, s := range x.statuses[i:min(i+room, len(x.statuses))] {
			row += t.glyph(s)
		}
		t.line(row)
	}
}

// clients writes the counts of each client, and then scenarios × clients.
func (t *terminal) clients() {
	list := t.r.tally(func(i int) string { return t.r.Results[i].Client })
	byName := map[string]*tally{}
	for _, x := range list {
		byName[x.name] = x
	}
	list = list[:0]
	for i, c := range t.r.Clients {
		x := byName[c.Name]
		if x == nil {
			x = new(tally)
		}
		x.name = strings.TrimSpace(fmt.Sprintf("%d %s %s", i+1, c.Name, c.Version))
		list = append(list, x)
	}
	cells := nameCells(list)
	t.countHead("client", cells)
	for _, x := range list {
		t.countRow(x, cells, false)
	}
	t.line("")
	t.grid(t.r.grid())
	t.line("")
	t.line("  " + t.dim(legend))
	t.line("")
}

const maxRows = 60

// grid writes scenarios × clients, in as many blocks of columns as the width needs. Unless the output is to be
// verbose, scenarios that every client passes or skips are counted and not listed.
func (t *terminal) grid(g grid) {
	var rows []gridRow
	for _, row := range g.rows {
		if t.o.Verbose || row.worst > severity(check.Pass) {
			rows = append(rows, row)
		}
	}
	quiet := len(g.rows) - len(rows)
	cut := 0
	if !t.o.Verbose && len(rows) > maxRows {
		cut = len(rows) - maxRows
		rows = rows[:maxRows]
	}
	name := len("scenario")
	for _, row := range rows {
		name = max(name, columns(plain(row.scenario)))
	}
	cell := len(strconv.Itoa(len(g.clients))) + 2
	name = min(name, max(12, t.o.Width-2-cell*min(len(g.clients), 8)))
	block := max(1, (t.o.Width-2-name)/cell)
	for from := 0; from < len(g.clients) && len(rows) > 0; from += block {
		to := min(from+block, len(g.clients))
		line := "  " + pad("scenario", name)
		for c := from; c < to; c++ {
			line += fmt.Sprintf("%*d", cell, c+1)
		}
		t.line(t.dim(line))
		for _, row := range rows {
			line := "  " + pad(clip(plain(row.scenario), name), name)
			for _, s := range row.cells[from:to] {
				mark := " "
				if s != "" {
					mark = t.glyph(s)
				}
				line += strings.Repeat(" ", cell-1) + mark
			}
			t.line(line)
		}
	}
	if cut > 0 {
		t.line("  … and " + count(cut, "more scenario") + " with a finding: see " + plain(t.where()) + ", or add --verbose")
	}
	if quiet > 0 {
		t.line("  " + count(quiet, "scenario") + " without a finding: add --verbose to see them")
	}
}
