package reports

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/retrychaos/retrychaos/harness/check"
)

// MarkdownOptions says how WriteMarkdown writes.
type MarkdownOptions struct {
	// MaxBytes is the most that is written; default DefaultMaxBytes, at least 4096.
	MaxBytes int
}

// DefaultMaxBytes keeps a report under the 1 MiB at which GitHub drops the summary of a step, with room for what
// others write into the same one.
const DefaultMaxBytes = 1_000_000

const (
	minBytes    = 4096
	noteReserve = 160 // for the line that says what a section left out
	mdScenarios = 40  // of one finding that are named
)

// WriteMarkdown writes the report as a page fit for the summary of a CI step: counts, findings with the worst
// first, the matrix, notes, and what was skipped. What does not fit is cut at whole rows, and the page says how
// many. All text of clients is escaped.
func WriteMarkdown(w io.Writer, r *Report, o MarkdownOptions) error {
	limit := o.MaxBytes
	if limit == 0 {
		limit = DefaultMaxBytes
	}
	p := &page{max: max(limit, minBytes)}
	failed, undecided := r.findings()
	further := r.furtherText()
	if further != "" {
		further = mdText(further) + "\n"
	}
	several := len(r.Clients) > 1

	matrixHead, matrixRows := r.mdMatrix()
	p.sections = 7
	p.section(mdTop(r), mdClientRows(r), "client", further, 1)
	p.section("\n## Broken rules\n\n| rule | level | results |\n| --- | --- | ---: |\n", mdRules(failed), "rule", "", 0.6)
	p.section("\n## Failures\n\n", r.mdFindings(failed, several), "finding", "", 0.6)
	p.section("\n## Undecided\n\nUnknown is not a pass and not the client's fault: a check lacked data or crashed, or the harness itself is at fault.\n\n",
		r.mdFindings(undecided, several), "finding", "", 0.6)
	p.section("\n## Matrix\n\n"+matrixHead, matrixRows, "row", "\n"+legend+"\n", 0.7)
	p.section("\n## Notes\n\n", mdLists(r.notes()), "note", "", 0.7)
	p.section("\n## Skipped\n\n", mdLists(r.skipped()), "reason", "", 1)
	_, err := w.Write(p.buf.Bytes())
	return err
}

// A page collects sections up to a limit.
type page struct {
	buf      bytes.Buffer
	max      int
	sections int // still to come
}

// section writes a head, then rows as long as they fit into the given share of what is left, then a line that
// says how many did not, then a foot. A section without rows, other than the first, is left out. Rows are made
// only when there is room for them.
func (p *page) section(head string, rows []func() string, noun, foot string, share float64) {
	first := p.buf.Len() == 0
	p.sections--
	if len(rows) == 0 && !first {
		return
	}
	left := p.max - p.buf.Len() - p.sections*noteReserve
	room := int(float64(left)*share) - noteReserve - len(foot)
	if len(head) > room {
		if noteReserve < left {
			fmt.Fprintf(&p.buf, "\n_%s cut to keep this page under %d bytes: see %s._\n", count(len(rows), noun), p.max, FileJSON)
		}
		return
	}
	p.buf.WriteString(head)
	room -= len(head)
	written := 0
	for _, row := range rows {
		s := row()
		if len(s) > room {
			break
		}
		room -= len(s)
		p.buf.WriteString(s)
		written++
	}
	if n := len(rows) - written; n > 0 {
		fmt.Fprintf(&p.buf, "\n_%s cut to keep this page under %d bytes: see %s._\n", count(n, "more "+noun), p.max, FileJSON)
	}
	p.buf.WriteString(foot)
}

func mdTop(r *Report) string {
	c := r.Counts()
	return fmt.Sprintf("# %s retrychaos: %s\n\n%s\n\n%s\n\n| client | version | ✓ passed | ✗ failed | ? unknown | – skipped |\n| --- | --- | ---: | ---: | ---: | ---: |\n",
		glyph(c.worst()), resultText(c), mdText(clip(plain(headline(r)), 300)), mdText(summary(r)))
}

func mdClientRows(r *Report) []func() string {
	tallies := map[string]*tally{}
	for _, t := range r.tally(func(i int) string { return r.Results[i].Client }) {
		tallies[t.name] = t
	}
	var rows []func() string
	for _, info := range r.Clients {
		rows = append(rows, func() string {
			var c Counts
			if t := tallies[info.Name]; t != nil {
				c = t.counts
			}
			return fmt.Sprintf("| %s | %s | %d | %d | %d | %d |\n", mdText(info.Name), mdText(info.Version), c.Passed, c.Failed, c.Unknown, c.Skipped)
		})
	}
	return append(rows, func() string { return "\n" })
}

func mdRules(failed []*group) []func() string {
	if len(failed) < manyFindings {
		return nil
	}
	var rows []func() string
	for _, c := range byRule(failed) {
		rows = append(rows, func() string {
			return fmt.Sprintf("| %s | %s | %d |\n", mdText(c.check), mdText(string(c.level)), c.results)
		})
	}
	return rows
}

func (r *Report) mdFindings(list []*group, several bool) []func() string {
	var rows []func() string
	for _, g := range list {
		rows = append(rows, func() string { return r.mdFinding(g, several) })
	}
	return rows
}

func (r *Report) mdFinding(g *group, several bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s %s\n\n%s\n\n", glyph(g.verdict.Status), mdText(g.title(several)), mdText(g.verdict.Reason))
	item := func(label, text string) {
		if text != "" {
			fmt.Fprintf(&b, "- %s: %s\n", label, text)
		}
	}
	for i, e := range g.verdict.Evidence {
		if i == 20 {
			item("evidence", fmt.Sprintf("… %d more lines", len(g.verdict.Evidence)-i))
			break
		}
		item("evidence", mdText(e))
	}
	item("rule", mdText(g.holds()))
	item("source", mdSource(g.source()))
	if len(g.results) == 1 {
		item("scenario", mdText(g.results[0].Summary))
	} else {
		var names []string
		for _, res := range g.results[:min(len(g.results), mdScenarios)] {
			names = append(names, mdCode(res.Scenario))
		}
		if n := len(g.results) - len(names); n > 0 {
			names = append(names, fmt.Sprintf("… and %d more", n))
		}
		item("scenarios", strings.Join(names, ", "))
	}
	for _, n := range g.verdict.Notes {
		item("note", mdText(n))
	}
	if !g.harness {
		for _, f := range g.results[0].Findings {
			item("harness", mdText(f.Kind+": "+f.Text))
		}
	}
	if h, c := g.shown(); c != nil {
		fmt.Fprintf(&b, "\nTimeline of call %s in %s:\n\n", mdCode(c.ID), mdCode(g.results[0].Scenario))
		b.WriteString(mdBlock("text", timelineText(h, c)))
	}
	b.WriteString("\nReproduce:\n\n" + mdBlock("sh", []string{r.reproduce(g)}) + "\n")
	return b.String()
}

// mdMatrix is one row a family for one client, one row a scenario for several.
func (r *Report) mdMatrix() (head string, rows []func() string) {
	if len(r.Clients) < 2 {
		for _, t := range r.tallyFamilies() {
			rows = append(rows, func() string {
				var glyphs strings.Builder
				for _, s := range t.statuses {
					glyphs.WriteString(glyph(s))
				}
				return fmt.Sprintf("| %s | %d | %d | %d | %d | %s |\n", mdText(t.name), t.counts.Passed, t.counts.Failed,
					t.counts.Unknown, t.counts.Skipped, glyphs.String())
			})
		}
		return "| family | ✓ | ✗ | ? | – | scenarios |\n| --- | ---: | ---: | ---: | ---: | --- |\n", rows
	}
	g := r.grid()
	var names, rule strings.Builder
	for _, c := range g.clients {
		names.WriteString(" " + mdText(c.Name) + " |")
		rule.WriteString(" :---: |")
	}
	// The worst rows first, since the last ones are cut; within a rank by name, as they came.
	for worst := severity(check.Fail); worst >= 0; worst-- {
		for _, row := range g.rows {
			if row.worst != worst {
				continue
			}
			rows = append(rows, func() string {
				var b strings.Builder
				b.WriteString("| " + mdText(row.scenario) + " |")
				for _, s := range row.cells {
					mark := " "
					if s != "" {
						mark = glyph(s)
					}
					b.WriteString(" " + mark + " |")
				}
				return b.String() + "\n"
			})
		}
	}
	return "| scenario |" + names.String() + "\n| --- |" + rule.String() + "\n", rows
}

func mdLists(list []reasoned) []func() string {
	var rows []func() string
	for _, x := range list {
		rows = append(rows, func() string {
			var names []string
			for _, s := range x.scenarios[:min(len(x.scenarios), mdScenarios)] {
				names = append(names, mdCode(s))
			}
			if n := len(x.scenarios) - len(names); n > 0 {
				names = append(names, fmt.Sprintf("… and %d more", n))
			}
			return fmt.Sprintf("- %s (%d): %s\n", mdText(x.reason), len(x.scenarios), strings.Join(names, ", "))
		})
	}
	return rows
}
