package reports

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/retrychaos/retrychaos/harness/check"
)

// TerminalOptions says how WriteTerminal writes. The zero value is ready.
type TerminalOptions struct {
	Color   bool // see ColorWanted; glyphs and words say everything without it
	Width   int  // columns; default 80
	Verbose bool // no caps, every row, and the notes of checks
	// Dir is where WriteAll puts the whole report, to be named where something is left out.
	Dir string
	// MaxFindings is how many findings are told in full; default 12. Verbose tells all.
	MaxFindings int
}

const maxScenarios = 6 // of one finding that are named

// terminal is one writing of a report.
type terminal struct {
	w *bufio.Writer
	r *Report
	o TerminalOptions
	painter
}

// WriteTerminal writes the report for a person at a terminal: what was run, the matrix, every finding with its
// rule, evidence, timeline and the command that reproduces it, and what to do next.
func WriteTerminal(w io.Writer, r *Report, o TerminalOptions) error {
	o.Width = max(40, cmp.Or(o.Width, 80))
	o.MaxFindings = cmp.Or(o.MaxFindings, 12)
	t := &terminal{w: bufio.NewWriter(w), r: r, o: o, painter: painter(o.Color)}
	t.line(t.bold(plain(headline(r))))
	t.line("")
	if len(r.Clients) > 1 {
		t.clients()
	} else {
		t.families()
	}
	failed, undecided := r.findings()
	t.rules(failed)
	t.findings("Failures", failed)
	t.findings("Undecided", undecided)
	if len(undecided) > 0 {
		t.text("  ", "  ", "Unknown is not a pass and not the client's fault: a check lacked data or crashed, or the harness itself is at fault.")
		t.line("")
	}
	t.lists("Skipped", r.skipped())
	if o.Verbose {
		t.lists("Notes", r.notes())
	}
	t.end(len(failed) > 0, len(undecided) > 0)
	return t.w.Flush()
}

// headline says what was run: tool, client, world, seed, level.
func headline(r *Report) string {
	parts := []string{strings.TrimSpace(r.Tool.Name + " " + r.Tool.Version)}
	switch len(r.Clients) {
	case 0:
	case 1:
		parts = append(parts, "client "+strings.TrimSpace(r.Clients[0].Name+" "+r.Clients[0].Version))
	default:
		parts = append(parts, count(len(r.Clients), "client"))
	}
	if w := r.worlds(); len(w) > 0 {
		parts = append(parts, strings.Join(w, " and ")+" world")
	}
	return strings.Join(append(parts, fmt.Sprintf("seed %d", r.Seed), levelText(r.Level)), " · ")
}

func levelText(l check.Level) string {
	if l == check.Must {
		return "rules of level MUST"
	}
	return fmt.Sprintf("rules of level %s and above", l)
}

func (t *terminal) line(s string) {
	t.w.WriteString(strings.TrimRight(s, " "))
	t.w.WriteByte('\n')
}

// text wraps hostile text behind a label.
func (t *terminal) text(label, hang, s string) {
	for i, l := range wrap(plain(s), t.o.Width-columns(hang)) {
		if i > 0 {
			label = hang
		}
		t.line(label + l)
	}
}

// field writes one labelled part of a finding.
func (t *terminal) field(label, s string) {
	if s != "" {
		t.text("    "+t.dim(pad(label, 10)), strings.Repeat(" ", 14), s)
	}
}

func (t *terminal) glyph(s check.Status) string {
	switch s {
	case check.Pass:
		return t.paint(green, glyph(s))
	case check.Fail:
		return t.paint(red, glyph(s))
	case check.Skipped:
		return t.dim(glyph(s))
	}
	return t.paint(yellow, glyph(s))
}

// rules says in how many places each rule is broken, where that is a lot to read.
func (t *terminal) rules(failed []*group) {
	if len(failed) < manyFindings {
		return
	}
	t.line(t.bold("Broken rules"))
	t.line("")
	list := byRule(failed)
	cells := 0
	for _, c := range list {
		cells = max(cells, min(columns(plain(c.check)), 40))
	}
	for _, c := range list {
		t.line(fmt.Sprintf("  %s  %-6s  in %s", pad(clip(plain(c.check), cells), cells), plain(string(c.level)), t.countResults(c.results)))
	}
	t.line("")
}

func (t *terminal) countResults(n int) string {
	if len(t.r.Clients) > 1 {
		return count(n, "result")
	}
	return count(n, "scenario")
}

func (t *terminal) findings(head string, list []*group) {
	if len(list) == 0 {
		return
	}
	t.line(t.bold(head))
	t.line("")
	shown := list
	if !t.o.Verbose {
		shown = list[:min(len(list), t.o.MaxFindings)]
	}
	for _, g := range shown {
		t.finding(g)
	}
	if n := len(list) - len(shown); n > 0 {
		t.line("  " + count(n, "more finding") + ": see " + plain(t.where()) + ", or add --verbose")
		t.line("")
	}
}

// where names what holds everything.
func (t *terminal) where() string {
	if t.o.Dir == "" {
		return FileMarkdown + " or " + FileJSON
	}
	return inDir(t.o.Dir, FileMarkdown) + " or " + inDir(t.o.Dir, FileJSON)
}

func (t *terminal) finding(g *group) {
	first := g.results[0]
	t.line("  " + t.glyph(g.verdict.Status) + " " + t.bold(plain(g.title(len(t.r.Clients) > 1))))
	if len(g.results) == 1 {
		t.field("scenario", first.Summary)
	}
	t.field("saw", g.verdict.Reason)
	t.evidence(g.verdict.Evidence)
	if rule := g.holds(); rule != "" {
		t.field("the rule", rule)
	}
	t.field("source", g.source())
	if len(g.results) > 1 {
		t.scenarios(g)
	}
	if h, c := g.shown(); c != nil {
		t.field("timeline", "call "+c.ID+" in "+first.Scenario)
		for _, row := range timeline(h, c) {
			t.text("      "+t.dim(row[0])+"  ", strings.Repeat(" ", 8+columns(row[0])), row[1])
		}
	}
	for _, n := range g.verdict.Notes {
		t.field("note", n)
	}
	if !g.harness {
		for _, f := range first.Findings {
			t.field("harness", f.Kind+": "+f.Text)
		}
	}
	// Never wrapped: it is there to be pasted.
	t.line("    " + t.dim(pad("reproduce", 10)) + visible(t.r.reproduce(g)))
	t.line("")
}

func (t *terminal) evidence(lines []string) {
	const most = 6
	shown := lines
	if !t.o.Verbose {
		shown = lines[:min(len(lines), most)]
	}
	for i, e := range shown {
		label := ""
		if i == 0 {
			label = "evidence"
		}
		t.field(label, e)
	}
	if n := len(lines) - len(shown); n > 0 {
		t.field("", "… "+count(n, "more line"))
	}
}

func (t *terminal) scenarios(g *group) {
	for i, res := range g.results {
		label := ""
		if i == 0 {
			label = "scenarios"
		}
		if i == maxScenarios && !t.o.Verbose && len(g.results) > maxScenarios+1 {
			t.field("", fmt.Sprintf("… and %d more", len(g.results)-i))
			return
		}
		t.field(label, res.Scenario)
	}
}

// lists writes scenarios under the reason that they share.
func (t *terminal) lists(head string, list []reasoned) {
	if len(list) == 0 {
		return
	}
	t.line(t.bold(head))
	for _, x := range list {
		t.text("  – ", "    ", fmt.Sprintf("%s (%d)", x.reason, len(x.scenarios)))
		names, more := x.scenarios, ""
		if n := len(names) - maxScenarios; n > 1 && !t.o.Verbose {
			names, more = names[:maxScenarios], fmt.Sprintf(" … and %d more", n)
		}
		t.text("      ", "      ", strings.Join(names, " ")+more)
	}
	t.line("")
}

// end sums up and says what to do next.
func (t *terminal) end(failed, undecided bool) {
	color, word := green, "pass"
	switch t.r.Worst() {
	case check.Fail:
		color, word = red, "fail"
	case check.Unknown, check.Skipped:
		color, word = yellow, "undecided"
	}
	interrupted := t.r.interrupted()
	if interrupted > 0 && word == "pass" {
		color, word = yellow, "undecided"
	}
	t.line(t.glyphFor(word) + " " + t.bold(t.paint(color, summary(t.r))))
	further := t.r.furtherText()
	if further != "" {
		t.line("  " + further)
	}
	var next []string
	if failed {
		next = append(next, "paste a \"reproduce\" line to run one finding alone")
	}
	if undecided {
		next = append(next, "read why under Undecided, and run it again with the same seed to see whether it stays")
	}
	if interrupted > 0 {
		next = append(next, fmt.Sprintf("the run was interrupted: %d of %d were not run; run it again", interrupted, t.r.Counts().Total))
	} else if t.r.Counts().Total == 0 || word == "undecided" && !undecided {
		next = append(next, "nothing was judged: choose other scenarios (retrychaos list scenarios) or another world")
	}
	if t.o.Dir != "" {
		next = append(next, "every result with its history is in "+t.o.Dir)
	}
	for i, n := range next {
		label := "        "
		if i == 0 {
			label = "  next: "
		}
		t.text(label, "        ", n)
	}
}

func (t *terminal) glyphFor(word string) string {
	switch word {
	case "pass":
		return t.glyph(check.Pass)
	case "fail":
		return t.glyph(check.Fail)
	}
	return t.glyph(check.Unknown)
}

// summary is the report in a line.
func summary(r *Report) string {
	c := r.Counts()
	what := "scenario"
	if len(r.Clients) > 1 {
		what = "result"
	}
	s := fmt.Sprintf("%s: %d passed, %d failed, %d unknown, %d skipped", count(c.Total, what), c.Passed, c.Failed, c.Unknown, c.Skipped)
	if slices.Equal(r.worlds(), []string{"loopback"}) {
		return s + fmt.Sprintf(" · %s of scenarios, side by side, in %s", span(r.Simulated), span(r.Real))
	}
	return s + fmt.Sprintf(" · simulated %s in %s real", span(r.Simulated), span(r.Real))
}
