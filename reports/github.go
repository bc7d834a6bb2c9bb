package reports

import (
	"fmt"
	"io"
	"strings"
)

// maxAnnotations is how many errors, and how many warnings, GitHub shows of a step.
const maxAnnotations = 10

// WriteAnnotations writes workflow commands for GitHub Actions: an error for each finding that fails, a warning for
// each that is undecided, the worst first, and no more than GitHub shows: ten of each, of which the last says how
// many there are besides. They are read from the standard output of a step.
func WriteAnnotations(w io.Writer, r *Report) error {
	failed, undecided := r.findings()
	var b strings.Builder
	r.annotate(&b, "error", failed)
	r.annotate(&b, "warning", undecided)
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Report) annotate(b *strings.Builder, command string, list []*group) {
	for i, g := range list {
		if i == maxAnnotations-1 && len(list) > maxAnnotations {
			annotation(b, command, "retrychaos", fmt.Sprintf("%d more: see the summary of this step, or %s", len(list)-i, FileMarkdown))
			return
		}
		text := plain(g.verdict.Reason)
		if rule := g.holds(); rule != "" {
			text += "\nThe rule: " + plain(rule)
		}
		text += "\nReproduce: " + plain(r.reproduce(g))
		annotation(b, command, plain(g.title(len(r.Clients) > 1)), text)
	}
}

// WriteDiffAnnotations does the same for a comparison: an error for what broke, a warning for what is newly unknown.
func WriteDiffAnnotations(w io.Writer, c *Comparison) error {
	var b strings.Builder
	for _, x := range []struct {
		command, word string
		list          []Change
	}{{"error", "broken", c.Broken}, {"warning", "newly unknown", c.NewlyUnknown}} {
		list := grouped(x.list)
		for i, g := range list {
			if i == maxAnnotations-1 && len(list) > maxAnnotations {
				annotation(&b, x.command, "retrychaos", fmt.Sprintf("%d more differences: see the summary of this step", len(list)-i))
				break
			}
			var lines []string
			for _, d := range g.Differences {
				lines = append(lines, plain(d))
			}
			annotation(&b, x.command, plain(x.word+": "+g.title(c)), strings.Join(lines, "\n"))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// annotation writes one command. What could end a field or a line is escaped, by the rules of the runner: its only
// escapes are these.
func annotation(b *strings.Builder, command, title, text string) {
	data := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A")
	property := strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C")
	fmt.Fprintf(b, "::%s title=%s::%s\n", command, property.Replace(title), data.Replace(text))
}
