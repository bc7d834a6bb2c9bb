package reports

import (
	"fmt"
	"io"
	"strings"
)

// CommentMaxBytes keeps a page under the 65,536 characters that GitHub takes for a comment.
const CommentMaxBytes = 60_000

// WriteDiffMarkdown writes what changed as a page fit for the summary of a CI step or, with CommentMaxBytes, for the
// comment of a pull request, the worst first. What does not fit is cut at whole rows, and the page says how many. All
// text of clients is escaped.
func WriteDiffMarkdown(w io.Writer, c *Comparison, o MarkdownOptions) error {
	limit := o.MaxBytes
	if limit == 0 {
		limit = DefaultMaxBytes
	}
	p := &page{max: max(limit, minBytes)}
	groups := c.Groups()
	p.sections = len(groups) + 3
	p.section(c.mdDiffTop(), mdNotes(append(c.Notes, c.lonely()...)), "note", "", 1)
	for _, g := range groups {
		switch g.Name {
		case "incomparable":
			p.section("\n## Over all scenarios\n\n", c.mdTrends(), "trend", "", 1)
			p.section("\n## Not comparable\n\n", mdLists(c.reasonsFor()), "reason", "", 0.7)
		case "added", "removed":
			var list reasons
			for _, ch := range g.Changes {
				list.add(ch.Client.String()+": "+ch.Differences[0], ch.Scenario)
			}
			p.section("\n## "+g.Title+"\n\n", mdLists(list.list), "reason", "", 0.8)
		default:
			var rows []func() string
			for _, x := range grouped(g.Changes) {
				rows = append(rows, func() string { return c.mdChange(g.Name, x) })
			}
			p.section("\n## "+g.Title+"\n\n", rows, "difference", "", 0.7)
		}
	}
	_, err := w.Write(p.buf.Bytes())
	return err
}

func (c *Comparison) mdDiffTop() string {
	worst, result := c.ended()
	return fmt.Sprintf("# %s retrychaos: %s\n\n%s\n\n%s\n\n", glyph(worst), result, mdText(c.headline()), mdText(c.summary()))
}

func mdNotes(notes []string) []func() string {
	var rows []func() string
	for _, n := range notes {
		rows = append(rows, func() string { return "- " + mdText(n) + "\n" })
	}
	return rows
}

func (c *Comparison) mdTrends() []func() string {
	var rows []func() string
	for _, t := range c.Trends {
		rows = append(rows, func() string {
			mark := "\\~"
			if t.Significant {
				mark = "**changed**"
			}
			return fmt.Sprintf("- %s, %s: %s → %s %s (p=%.2g, n=%d)\n", mdText(t.Client.String()), mdText(t.What), mdText(t.Old), mdText(t.New), mark, t.P, t.Scenarios)
		})
	}
	return rows
}

func (c *Comparison) mdChange(group string, g *alikeChanges) string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s %s\n\n", changeGlyph(group), mdText(g.title(c)))
	for _, d := range g.Differences {
		b.WriteString("- " + mdText(d) + "\n")
	}
	if len(g.scenarios) > 1 {
		var names []string
		for _, s := range g.scenarios[:min(len(g.scenarios), mdScenarios)] {
			names = append(names, mdCode(s))
		}
		if n := len(g.scenarios) - len(names); n > 0 {
			names = append(names, fmt.Sprintf("… and %d more", n))
		}
		b.WriteString("- scenarios: " + strings.Join(names, ", ") + "\n")
	}
	if old, new := g.calls(); old != nil {
		fmt.Fprintf(&b, "\n<details><summary>Both timelines</summary>\n\nOld, call %s in %s:\n\n", mdCode(old.ID), mdCode(g.Scenario))
		b.WriteString(mdBlock("text", timelineText(g.Old.History, old)))
		b.WriteString("\nNew:\n\n" + mdBlock("text", timelineText(g.New.History, new)) + "\n</details>\n")
	}
	return b.String() + "\n"
}
