package reports

import (
	"bufio"
	"cmp"
	"io"
	"strings"

	"github.com/retrychaos/retrychaos/harness/history"
)

// DiffTerminalOptions says how WriteDiffTerminal writes. The zero value is ready.
type DiffTerminalOptions struct {
	Color   bool
	Width   int  // columns; default 80. From 100 on the two timelines are side by side
	Verbose bool // every change, and why results are not comparable
	// MaxChanges is how many changes of each kind are told; default 8. Verbose tells all.
	MaxChanges int
}

// sideBySide is the least width at which two timelines stand beside each other.
const sideBySide = 100

// WriteDiffTerminal writes what changed for a person at a terminal, the worst first, with both timelines of the
// call that shows it best.
func WriteDiffTerminal(w io.Writer, c *Comparison, o DiffTerminalOptions) error {
	o.Width = max(40, cmp.Or(o.Width, 80))
	o.MaxChanges = cmp.Or(o.MaxChanges, 8)
	t := &diffTerminal{
		terminal: terminal{w: bufio.NewWriter(w), r: c.New, o: TerminalOptions{Color: o.Color, Width: o.Width, Verbose: o.Verbose}, painter: painter(o.Color)},
		c:        c, most: o.MaxChanges,
	}
	t.line(t.bold(plain(c.headline())))
	for _, n := range append(c.Notes, c.lonely()...) {
		t.text("  note: ", "        ", n)
	}
	t.line("")
	for _, g := range c.Groups() {
		if g.Name == "incomparable" {
			t.trends()
			t.lists("Not comparable", c.reasonsFor())
			if !o.Verbose {
				continue
			}
		}
		t.group(g)
	}
	t.diffEnd()
	return t.w.Flush()
}

// diffTerminal is one writing of a comparison.
type diffTerminal struct {
	terminal
	c    *Comparison
	most int
}

func (t *diffTerminal) mark(group string) string {
	g := changeGlyph(group)
	switch group {
	case "broken":
		return t.paint(red, g)
	case "fixed", "no_longer_unknown":
		return t.paint(green, g)
	case "added", "incomparable":
		return t.dim(g)
	}
	return t.paint(yellow, g)
}

func (t *diffTerminal) group(g Group) {
	if len(g.Changes) == 0 {
		return
	}
	t.line(t.bold(g.Title))
	t.line("")
	if g.Name == "added" || g.Name == "removed" {
		var list reasons
		for _, ch := range g.Changes {
			what := ch.Differences[0]
			if len(t.c.Clients) > 1 {
				what = ch.Client.String() + ": " + what
			}
			list.add(what, ch.Scenario)
		}
		for _, x := range list.list {
			t.text("  "+t.mark(g.Name)+" ", "    ", x.reason)
			t.names(x.scenarios)
		}
		t.line("")
		return
	}
	all := grouped(g.Changes)
	shown := all
	if !t.o.Verbose {
		shown = all[:min(len(all), t.most)]
	}
	for _, x := range shown {
		t.change(g.Name, x)
	}
	if n := len(all) - len(shown); n > 0 {
		t.line("  … and " + count(n, "more difference") + ": add --verbose, or write them with --format json")
		t.line("")
	}
}

func (t *diffTerminal) names(scenarios []string) {
	names, more := scenarios, ""
	if n := len(names) - maxScenarios; n > 1 && !t.o.Verbose {
		names, more = names[:maxScenarios], " … and "+count(n, "more scenario")
	}
	t.text("      ", "      ", strings.Join(names, " ")+more)
}

func (t *diffTerminal) change(group string, g *alikeChanges) {
	t.line("  " + t.mark(group) + " " + t.bold(plain(g.title(t.c))))
	for _, d := range g.Differences {
		t.text("    · ", "      ", d)
	}
	if len(g.scenarios) > 1 {
		t.names(g.scenarios)
	}
	if old, new := g.calls(); old != nil {
		t.line("")
		t.timelines(g, old, new)
	}
	t.line("")
}

// timelines writes both lives of a call: side by side where there is room, else one under the other.
func (t *diffTerminal) timelines(g *alikeChanges, old, new *history.Call) {
	const indent = "    "
	heads := []string{"old, call " + old.ID + " in " + g.Scenario, "new"}
	if t.o.Width < sideBySide {
		for i, lines := range [][][2]string{timeline(g.Old.History, old), timeline(g.New.History, new)} {
			t.text(indent, indent, heads[i])
			for _, row := range lines {
				t.text(indent+"  "+t.dim(row[0])+"  ", indent+strings.Repeat(" ", 4+columns(row[0])), row[1])
			}
		}
		return
	}
	cells := (t.o.Width - len(indent) - 3) / 2
	column := func(head string, rows [][2]string) []string {
		lines := []string{clip(plain(head), cells)}
		for _, row := range rows {
			hang := strings.Repeat(" ", columns(row[0])+2)
			label := row[0] + "  "
			for _, l := range wrap(plain(row[1]), max(10, cells-columns(hang))) {
				lines = append(lines, clip(label+l, cells))
				label = hang
			}
		}
		return lines
	}
	left, right := column(heads[0], timeline(g.Old.History, old)), column(heads[1], timeline(g.New.History, new))
	for i := range max(len(left), len(right)) {
		var a, b string
		if i < len(left) {
			a = left[i]
		}
		if i < len(right) {
			b = right[i]
		}
		t.line(indent + pad(a, cells) + " " + t.dim("│") + " " + b)
	}
}

func (t *diffTerminal) trends() {
	var list []Trend
	for _, x := range t.c.Trends {
		if x.Significant || t.o.Verbose {
			list = append(list, x)
		}
	}
	if len(list) == 0 {
		return
	}
	t.line(t.bold("Over all scenarios"))
	t.line("")
	for _, x := range list {
		text := x.String()
		if len(t.c.Clients) > 1 {
			text = x.Client.String() + ": " + text
		}
		mark := t.dim("~")
		if x.Significant {
			mark = t.mark("changed")
		}
		t.text("  "+mark+" ", "    ", text)
	}
	t.line("")
}

func (t *diffTerminal) diffEnd() {
	mark, color := t.mark("fixed"), green
	switch t.c.ExitCode(FailOnBroken) {
	case ExitFindings:
		mark, color = t.mark("broken"), red
	case ExitUndecided:
		mark, color = t.mark("newly_unknown"), yellow
	}
	text := t.c.summary()
	if t.c.Empty() && t.c.Same > 0 {
		text = "nothing changed: " + text
	}
	for i, l := range wrap(text, t.o.Width-2) {
		if i > 0 {
			mark = " "
		}
		t.line(mark + " " + t.bold(t.paint(color, l)))
	}
}
