package reports

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
)

// A readPage is a page as a browser reads it.
type readPage struct {
	doc      *html.Node
	index    htmlIndex
	words    map[string]string
	pictures map[string]string
	scripts  []string // that run
}

func readHTML(t *testing.T, r *Report, o HTMLOptions) *readPage {
	t.Helper()
	p := new(readPage)
	p.read(t, func(w io.Writer) error { return WriteHTML(w, r, o) },
		map[string]any{"data-index": &p.index, "data-words": &p.words, "data-pictures": &p.pictures})
	return p
}

func readDiffHTML(t *testing.T, c *Comparison, o HTMLOptions) *readPage {
	t.Helper()
	p := new(readPage)
	p.read(t, func(w io.Writer) error { return WriteDiffHTML(w, c, o) }, map[string]any{"data-pictures": &p.pictures})
	return p
}

// read parses a page, and the blocks of data in it.
func (p *readPage) read(t *testing.T, write func(io.Writer) error, data map[string]any) {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	var err error
	if p.doc, err = html.Parse(&b); err != nil {
		t.Fatal(err)
	}
	for n := range p.doc.Descendants() {
		if n.Type != html.ElementNode || n.DataAtom != atom.Script {
			continue
		}
		if into, ok := data[attribute(n, "id")]; ok && attribute(n, "type") == "application/json" {
			if err := json.Unmarshal([]byte(text(n)), into); err != nil {
				t.Fatalf("%s: %v", attribute(n, "id"), err)
			}
			delete(data, attribute(n, "id"))
			continue
		}
		p.scripts = append(p.scripts, text(n))
	}
	if len(data) > 0 {
		t.Fatalf("the page lacks %v", slices.Collect(maps.Keys(data)))
	}
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

func text(n *html.Node) string {
	var b strings.Builder
	for d := range n.Descendants() {
		if d.Type == html.TextNode {
			b.WriteString(d.Data)
		}
	}
	return b.String()
}

// fragments are the insides of cells, parsed.
func fragments(t *testing.T, list map[string]string) map[string][]*html.Node {
	t.Helper()
	out := map[string][]*html.Node{}
	for key, s := range list {
		nodes, err := html.ParseFragment(strings.NewReader(s), &html.Node{Type: html.ElementNode, Data: "div", DataAtom: atom.Div})
		if err != nil {
			t.Fatal(err)
		}
		out[key] = nodes
	}
	return out
}

// outline writes what a page says and how it is built, and leaves out its looks and its script.
func (p *readPage) outline(t *testing.T, w io.Writer) {
	shown := func(n *html.Node) bool {
		return n.DataAtom != atom.Script && n.DataAtom != atom.Style && n.DataAtom != atom.Meta
	}
	var walk func(n *html.Node, depth int)
	walk = func(n *html.Node, depth int) {
		if n.Type == html.TextNode {
			if s := strings.Join(strings.Fields(n.Data), " "); s != "" {
				fmt.Fprintf(w, "%s%s\n", strings.Repeat("  ", depth), s)
			}
			return
		}
		if n.Type == html.ElementNode {
			if !shown(n) {
				return
			}
			var attrs []string
			for _, a := range n.Attr {
				attrs = append(attrs, fmt.Sprintf(" %s=%q", a.Key, a.Val))
			}
			fmt.Fprintf(w, "%s<%s%s>\n", strings.Repeat("  ", depth), n.Data, strings.Join(attrs, ""))
			depth++
		}
		for c := range n.ChildNodes() {
			walk(c, depth)
		}
	}
	for n := range p.doc.Descendants() {
		if n.DataAtom == atom.Header || n.DataAtom == atom.Main {
			walk(n, 0)
		}
	}
	if p.index.Version > 0 {
		b, err := marshal(p.index, "  ")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(w, "\nindex: %s\n", b)
	}
	for name, list := range map[string]map[string]string{"words": p.words} {
		for _, key := range slices.Sorted(maps.Keys(list)) {
			fmt.Fprintf(w, "\n%s of cell %s\n", name, key)
			for _, n := range fragments(t, map[string]string{"": list[key]})[""] {
				walk(n, 1)
			}
		}
	}
	for i, key := range slices.Sorted(maps.Keys(p.pictures)) {
		fmt.Fprintf(w, "\npictures of cell %s\n", key)
		if i > 0 {
			fmt.Fprintf(w, "  %d bytes\n", len(p.pictures[key]))
			continue
		}
		for _, n := range fragments(t, map[string]string{"": p.pictures[key]})[""] {
			walk(n, 1)
		}
	}
}

// The index agrees with what the other formats count, at every level.
func TestHTMLIndexAgrees(t *testing.T) {
	for _, r := range []*Report{oneClient(), threeClients(), passing(), fixed(Run{}, nil)} {
		x := readHTML(t, r, HTMLOptions{}).index
		for _, level := range []check.Level{check.Must, check.Should, check.May} {
			var got Counts
			for _, runs := range x.Status[level] {
				for _, c := range unrun(t, runs) {
					if c != '-' {
						got.add(map[rune]check.Status{'p': check.Pass, 'f': check.Fail, 'u': check.Unknown, 's': check.Skipped}[c])
					}
				}
			}
			if want := r.CountsAt(level); got != want {
				t.Errorf("at %s the page has %+v, want %+v", level, got, want)
			}
		}
		for i := range r.Results {
			res := &r.Results[i]
			for _, v := range res.Verdicts {
				rule := slices.IndexFunc(x.Rules, func(h htmlRule) bool { return h.ID == v.Check })
				c := slices.IndexFunc(x.Clients, func(h htmlClient) bool { return h.Name == res.Client })
				s := slices.IndexFunc(x.Scenarios, func(h htmlScenario) bool { return h.Name == res.Scenario })
				worst := v.Status // of this check
				for _, o := range res.Verdicts {
					if o.Check == v.Check && severity(o.Status) > severity(worst) {
						worst = o.Status
					}
				}
				if got := unrun(t, x.ByRule[rule][c])[s]; string(worst)[0] != got {
					t.Errorf("%s of %s in %s is %s, and the page has %c", v.Check, res.Client, res.Scenario, worst, got)
				}
			}
		}
	}
}

func unrun(t *testing.T, runs string) string {
	t.Helper()
	var b strings.Builder
	n := 0
	for _, c := range runs {
		if unicode.IsDigit(c) {
			n = 10*n + int(c-'0')
			continue
		}
		b.WriteString(strings.Repeat(string(c), n))
		n = 0
	}
	return b.String()
}

// Every finding has its words, and its timeline where its result has a history; nothing else has.
func TestHTMLCells(t *testing.T) {
	r := threeClients()
	p := readHTML(t, r, HTMLOptions{})
	x := r.htmlIndex()
	for i := range r.Results {
		res := &r.Results[i]
		key := x.cell(res)
		wrong := len(findingsOf(res, check.May)) > 0
		if _, ok := p.words[key]; ok != wrong {
			t.Errorf("%s of %s: words are %v, want %v", res.Scenario, res.Client, ok, wrong)
		}
		_, ok := p.pictures[key]
		if want := wrong && res.History != nil; ok != want {
			t.Errorf("%s of %s: a picture is %v, want %v", res.Scenario, res.Client, ok, want)
		}
	}
	key := x.cell(&r.Results[slices.IndexFunc(r.Results, func(h harness.Result) bool { return h.Scenario == "rate-limits/429-seconds" && h.Status == check.Fail })])
	for _, want := range []string{"timing.retry-after", "RFC 9110 §10.2.3", "1.5s before Retry-After allowed",
		"retrychaos run --client careless --scenario rate-limits/429-seconds --seed 42 --world virtual"} {
		if !strings.Contains(html.UnescapeString(p.words[key]), want) {
			t.Errorf("the words lack %q:\n%s", want, p.words[key])
		}
	}
	for _, want := range []string{`class="asked"`, `class="gap"`, "waited 500ms of 2s asked: too early", "connection 1 reused", "connection 1 fresh", "429 retry-after=2s", "the call succeeds"} {
		if !strings.Contains(p.pictures[key], want) {
			t.Errorf("the picture lacks %q:\n%s", want, p.pictures[key])
		}
	}
}

// A page stays near its limit, keeps its matrix whole, and says what is not there.
func TestHTMLLimit(t *testing.T) {
	var results []harness.Result
	for i := range 300 {
		r := duplicated("big", fmt.Sprintf("f%d/s%d", i%30, i))
		r.Verdicts[1].Reason = fmt.Sprintf("reason %x", i)
		results = append(results, r)
	}
	r := fixed(Run{}, results)
	whole := readHTML(t, r, HTMLOptions{})
	if len(whole.words) != 300 || len(whole.pictures) != 300 || strings.Contains(text(whole.doc), "to keep this page small.") {
		t.Fatalf("%d words and %d pictures of 300", len(whole.words), len(whole.pictures))
	}
	for _, limit := range []int{1, 150_000, 400_000, 700_000} {
		p := readHTML(t, r, HTMLOptions{MaxBytes: limit})
		size := 0
		for _, m := range []map[string]string{p.words, p.pictures} {
			for key, s := range m {
				size += embeddedLen(key, s)
			}
		}
		if size > limit {
			t.Errorf("limit %d: %d bytes of words and pictures", limit, size)
		}
		if len(p.index.Scenarios) != 300 || len(unrun(t, p.index.Status[check.Must][0])) != 300 {
			t.Errorf("limit %d: the matrix is cut", limit)
		}
		said := text(p.doc)
		for noun, n := range map[string]int{"The verdicts of %s with a finding": 300 - len(p.words), "The timelines and histograms of %s": 300 - len(p.pictures)} {
			if want := fmt.Sprintf(noun, count(n, "cell")); strings.Contains(said, want) != (n > 0) {
				t.Errorf("limit %d: %q is on the page: %v", limit, want, n == 0)
			}
		}
		if len(p.pictures) > 0 && len(p.words) < 300 {
			t.Errorf("limit %d: pictures come before words", limit)
		}
	}
}
