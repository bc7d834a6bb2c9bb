package reports

import (
	"cmp"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/harness/check"
)

// HTMLOptions says how WriteHTML writes. The zero value is ready.
type HTMLOptions struct {
	// MaxBytes is about the most that is written; default DefaultMaxHTML. The matrix is always whole. What else
	// does not fit is left out, the least important first, and the page says what and where it is.
	MaxBytes int
}

// DefaultMaxHTML keeps a page quick to open: it is what a browser reads in a fraction of a second.
const DefaultMaxHTML = 12 << 20

//go:embed page/page.html
var pageHTML string

//go:embed page/page.css
var pageCSS string

//go:embed page/base.js
var baseJS string

//go:embed page/state.js
var stateJS string

//go:embed page/matrix.js
var matrixJS string

//go:embed page/diff.js
var diffJS string

//go:embed page/cell.js
var cellJS string

// pageTemplate is parsed once; a broken one is a bug of this package, which its tests find.
var pageTemplate = template.Must(template.New("page").Funcs(template.FuncMap{
	"plain": plain, "visible": visible, "glyph": glyph,
	"names": func(names []string) string {
		more := ""
		if n := len(names) - maxScenarios; n > 1 {
			names, more = names[:maxScenarios], fmt.Sprintf(" … and %d more", n)
		}
		return plain(strings.Join(names, " ")) + more
	},
}).Parse(pageHTML))

// A page's script and style are allowed by their hashes, so that the policy of the page allows no other, and nothing
// may be fetched or sent.
func policy(script, style string) string {
	hash := func(s string) string {
		sum := sha256.Sum256([]byte(s))
		return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	return "default-src 'none'; script-src " + hash(script) + "; style-src " + hash(style) + "; base-uri 'none'; form-action 'none'"
}

// htmlPage is what the template of a page sees. Text in it is hostile still, and passes through plain there.
type htmlPage struct {
	Policy   string
	Style    template.CSS
	Script   template.JS
	Title    string
	Worst    check.Status
	Result   string
	Facts    [][2]string
	Counts   Counts
	Clients  []htmlClientRow
	Rules    []htmlRuleRow
	Further  string
	Notes    htmlReasons
	Skipped  htmlReasons
	LeftOut  []string
	Index    template.JS // JSON, in a block of data that no browser runs
	Words    template.JS
	Pictures template.JS
}

type htmlClientRow struct {
	Name, Version string
	Counts        Counts
}

// htmlReasons are lists of scenarios under what they have in common.
type htmlReasons struct {
	Head string
	List []htmlReason
}

type htmlReason struct {
	Reason    string
	Scenarios []string
}

// maxReasons of a kind are on the page.
const maxReasons = 300

func (p *htmlPage) reasons(head string, list []reasoned) htmlReasons {
	out := htmlReasons{Head: head}
	for _, x := range list[:min(len(list), maxReasons)] {
		out.List = append(out.List, htmlReason{x.reason, x.scenarios})
	}
	if n := len(list) - len(out.List); n > 0 {
		p.LeftOut = append(p.LeftOut, fmt.Sprintf("%d more under %s.", n, head))
	}
	return out
}

type htmlRuleRow struct {
	Check   string
	Level   check.Level
	Holds   string
	Results int
}

// WriteHTML writes the report as one page that needs nothing beside it: the matrix of clients and scenarios with
// filters, and for each cell its verdicts, evidence, command and timeline. All text of clients is escaped, and the
// page's policy lets nothing run but its own script and nothing be fetched.
func WriteHTML(w io.Writer, r *Report, o HTMLOptions) error {
	p := r.htmlPage()
	index := r.htmlIndex()
	var err error
	if p.Index, err = embedded(index); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	limit := cmp.Or(o.MaxBytes, DefaultMaxHTML)
	cells := r.htmlCells(index, limit-len(p.Index)-limit/64) // the rest of the page is small
	if p.Words, err = embedded(cells.words); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	if p.Pictures, err = embedded(cells.pictures); err != nil {
		return fmt.Errorf("page: %w", err)
	}
	p.LeftOut = slices.Concat(p.LeftOut, index.leftOut, cells.leftOut())
	return pageTemplate.ExecuteTemplate(w, "report", p)
}

// embedded is a value as JSON for a block of data within a page. Nothing in it can end the block, or open a comment
// or another script in it.
func embedded(v any) (template.JS, error) {
	data, err := marshal(v, "")
	if err != nil {
		return "", err
	}
	return template.JS(inScript.Replace(string(data))), nil
}

// embeddedLen is how many bytes an entry of an embedded object takes.
func embeddedLen(key, text string) int {
	s, err := embedded(text)
	if err != nil {
		return len(text)
	}
	return len(key) + len(s) + 4
}

// In JSON a < stands in strings only, where its escape means the same.
var inScript = strings.NewReplacer("</", `<\/`, "<!", `\u003c!`, "<s", `\u003cs`, "<S", `\u003cS`)

func (r *Report) htmlPage() *htmlPage {
	script := "'use strict';\n" + baseJS + stateJS + matrixJS + cellJS
	c := r.Counts()
	failed, _ := r.findings()
	p := &htmlPage{
		Policy: policy(script, pageCSS), Style: template.CSS(pageCSS), Script: template.JS(script),
		Worst: c.worst(), Result: resultText(c), Facts: r.facts(), Counts: c, Further: r.furtherText(),
	}
	p.Notes, p.Skipped = p.reasons("Notes", r.notes()), p.reasons("Skipped", r.skipped())
	p.Title = p.Result + " · " + headline(r)
	tallies := map[string]*tally{}
	for _, t := range r.tally(func(i int) string { return r.Results[i].Client }) {
		tallies[t.name] = t
	}
	for _, info := range r.Clients {
		row := htmlClientRow{Name: info.Name, Version: info.Version}
		if t := tallies[info.Name]; t != nil {
			row.Counts = t.counts
		}
		p.Clients = append(p.Clients, row)
	}
	for _, x := range byRule(failed) {
		g := group{verdict: check.Verdict{Check: x.check}}
		p.Rules = append(p.Rules, htmlRuleRow{Check: x.check, Level: x.level, Holds: g.holds(), Results: x.results})
	}
	return p
}

// resultText says in a few words how a report ended.
func resultText(c Counts) string {
	switch worst := c.worst(); {
	case c.Total == c.Skipped:
		return "nothing was judged"
	case worst == check.Fail:
		return fmt.Sprintf("%d of %d failed", c.Failed, c.Total)
	case worst == check.Unknown:
		return fmt.Sprintf("%d of %d undecided", c.Unknown, c.Total)
	}
	return "no finding"
}

// facts is the head of the page.
func (r *Report) facts() [][2]string {
	out := [][2]string{
		{"tool", strings.TrimSpace(r.Tool.Name + " " + r.Tool.Version + ", " + r.Tool.Go)},
		{"run", r.Started.UTC().Format(time.DateTime) + " UTC"},
		{"seed", fmt.Sprint(r.Seed)},
		{"world", cmp.Or(strings.Join(r.worlds(), " and "), "none")},
		{"level", levelText(r.Level)},
		{"clients", fmt.Sprint(len(r.Clients))},
		{"results", fmt.Sprint(len(r.Results))},
		{"scenarios' time", span(r.Simulated)},
		{"real time", span(r.Real)},
	}
	return out
}
