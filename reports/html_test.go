package reports

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
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

// A timeline has a place for everything that happened in a call.
func TestDrawTimeline(t *testing.T) {
	h := &history.History{Grain: ms, Effects: []history.Effect{{N: 1, At: 2 * time.Second, Call: "c", Attempt: 1, Late: true}}}
	c := &history.Call{ID: "c", Method: "POST", Path: "/", Started: time.Second, Ended: 11 * time.Second, Returned: true,
		Deadline: 11 * time.Second, CancelAt: 6 * time.Second, Outcome: history.Outcome{Error: "late"},
		Attempts: []*history.Attempt{
			{N: 1, At: time.Second, Ended: 2 * time.Second, Conn: 1, Fault: "503", Category: "status", Status: 503, Delivered: true},
			{N: 2, At: 3 * time.Second, Ended: 3 * time.Second, Conn: 1, Reused: true, Fault: "connection_reset", Category: "transport", Delivered: true},
			{N: 3, At: 3 * time.Second, Ended: 4 * time.Second, Conn: 2, Hidden: true, Fault: "429 retry-after=60s", Category: "status", Status: 429,
				Delivered: true, RetryAfter: []string{"60"}, NotBefore: 64 * time.Second},
		}}
	d := drawTimeline(h, c, "timing.deadline")
	at := func(seconds float64) string { return percent(axisFrom + axisSpan*(seconds-1)/10) }
	want := []htmlLane{
		{From: at(1), To: at(2), Effects: []string{at(2)}},
		{From: at(3), To: at(3), Reused: true, Gaps: []htmlSpan{{at(2), at(3)}}},
		{From: at(3), To: at(4), Hidden: true, Gaps: []htmlSpan{{at(4), at(11)}}, Asked: []htmlSpan{{at(4), at(11)}}},
	}
	for i, l := range d.Lanes {
		w := want[i]
		if l.From != w.From || l.To != w.To || l.Hidden != w.Hidden || l.Reused != w.Reused || !slices.Equal(l.Effects, w.Effects) ||
			!slices.Equal(l.Gaps, w.Gaps) || !slices.Equal(l.Asked, w.Asked) {
			t.Errorf("lane %d is %+v, want %+v", i+1, l, w)
		}
		if l.Bar <= l.Y2 || l.Bar >= d.Bottom || i > 0 && l.Y <= d.Lanes[i-1].Bar {
			t.Errorf("lane %d lies at %d to %d, of %d", i+1, l.Y, l.Bar, d.Bottom)
		}
	}
	if got := d.Lanes[2].Wait; got != "then nothing for 7s of 1m0s asked" {
		t.Errorf("the last wait is %q", got)
	}
	var marks []string
	for _, m := range d.Marks {
		marks = append(marks, m.Class+" "+m.X)
	}
	if want := []string{"cancel " + at(6), "deadline " + at(11), "end " + at(11)}; !slices.Equal(marks, want) {
		t.Errorf("marks %q, want %q", marks, want)
	}
	if len(d.Rows) != len(h.Timeline(c)) {
		t.Errorf("%d lines of text for %d", len(d.Rows), len(h.Timeline(c)))
	}
	for range 100 {
		c.Attempts = append(c.Attempts, &history.Attempt{N: len(c.Attempts) + 1, At: 4 * time.Second, Ended: 4 * time.Second})
	}
	if d = drawTimeline(h, c, ""); len(d.Lanes) != timelineHead+1+timelineTail || d.Lanes[timelineHead].LeftOut != 103-timelineHead-timelineTail {
		t.Errorf("%d lanes for 103 attempts", len(d.Lanes))
	}
}

func TestAxisTicks(t *testing.T) {
	for _, d := range []time.Duration{0, 1, 7, 999 * time.Nanosecond, 3 * ms, time.Second, 61 * time.Second, time.Hour, 24 * time.Hour, 400 * 24 * time.Hour} {
		ticks := axis{5, 5 + d}.ticks()
		if len(ticks) == 0 || len(ticks) > 7 || d > 10 && len(ticks) < 2 {
			t.Errorf("%d ticks over %s", len(ticks), d)
		}
		for i, x := range ticks[1:] {
			if x.X == ticks[i].X {
				t.Errorf("two ticks at %s over %s", x.X, d)
			}
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

// A page may be hostile text from one end to the other, and holds nothing but what its template has.
func TestHostileHTML(t *testing.T) {
	r := several(hostile())
	r.Results[len(r.Results)-1].Verdicts[0].Waits = &check.Waits{Schema: check.WaitsSchema, Wave: nasty, Claim: nasty, Calls: 2, Step: 1, Width: 2, Counts: []int{1, 1}}
	p := readHTML(t, r, HTMLOptions{})
	p.holdsNothingElse(t, p.words, p.pictures)
}

func TestHostileDiffHTML(t *testing.T) {
	p := readDiffHTML(t, Diff(hostileOther(), hostile()), HTMLOptions{})
	p.holdsNothingElse(t, p.pictures)
}

// hostileOther is a report from which the hostile one differs.
func hostileOther() *Report {
	r := hostile()
	res := &r.Results[slices.IndexFunc(r.Results, func(h harness.Result) bool { return h.History != nil })]
	res.Status, res.Verdicts, res.Findings = check.Pass, res.Verdicts[:1], nil
	return r
}

// holdsNothingElse: one script, allowed by its hash, and in the markup and in the insides of cells no element and no
// attribute that does anything.
func (p *readPage) holdsNothingElse(t *testing.T, insides ...map[string]string) {
	t.Helper()
	if len(p.scripts) != 1 {
		t.Fatalf("%d scripts would run", len(p.scripts))
	}
	var policy, style string
	for n := range p.doc.Descendants() {
		switch {
		case attribute(n, "http-equiv") == "Content-Security-Policy":
			policy = attribute(n, "content")
		case n.DataAtom == atom.Style:
			style += text(n)
		}
	}
	for _, s := range []string{p.scripts[0], style} {
		sum := sha256.Sum256([]byte(s))
		if want := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; !strings.Contains(policy, want) {
			t.Errorf("the policy does not allow what the page has: %s in %s", want, policy)
		}
	}
	if !strings.HasPrefix(policy, "default-src 'none';") || strings.Contains(policy, "unsafe") {
		t.Errorf("policy %s", policy)
	}
	if strings.Contains(p.scripts[0], "evil") {
		t.Error("hostile text is in the script")
	}
	safe := []string{"section", "h3", "span", "p", "dl", "dt", "dd", "ul", "ol", "li", "div", "code", "button", "figure", "figcaption", "svg", "line", "text", "circle", "rect", "path"}
	for _, list := range insides {
		if len(list) == 0 {
			t.Error("no cell has anything to tell")
		}
		for key, nodes := range fragments(t, list) {
			for _, top := range nodes {
				for n := range allNodes(top) {
					if n.Type == html.ElementNode && !slices.Contains(safe, n.Data) {
						t.Errorf("cell %s holds <%s>", key, n.Data)
					}
					for _, a := range n.Attr {
						if strings.HasPrefix(a.Key, "on") || a.Key == "href" || a.Key == "style" || a.Key == "src" {
							t.Errorf("cell %s holds %s=%q", key, a.Key, a.Val)
						}
					}
					if n.Type == html.CommentNode {
						t.Errorf("cell %s holds a comment", key)
					}
				}
			}
		}
	}
	for n := range p.doc.Descendants() {
		for _, a := range n.Attr {
			if strings.HasPrefix(a.Key, "on") || a.Key == "src" || a.Key == "href" && !strings.HasPrefix(a.Val, "#") {
				t.Errorf("<%s %s=%q>", n.Data, a.Key, a.Val)
			}
		}
	}
}

func allNodes(n *html.Node) func(func(*html.Node) bool) {
	return func(yield func(*html.Node) bool) {
		if !yield(n) {
			return
		}
		for d := range n.Descendants() {
			if !yield(d) {
				return
			}
		}
	}
}

// What is in a block of data is the same when it is read, and cannot end the block.
func TestEmbedded(t *testing.T) {
	for _, s := range []string{nasty, "</script>", "<!--<script>", "<SCRIPT", "<Script", "a<b", "\u2028", `\u003c`, "<sub></sub>"} {
		e, err := embedded(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"</", "<!", "<s", "<S"} {
			if strings.Contains(string(e), bad) {
				t.Errorf("%q gives %s", s, e)
			}
		}
		var back string
		if err := json.Unmarshal([]byte(e), &back); err != nil || back != strings.ToValidUTF8(s, "\ufffd") && s != nasty {
			t.Errorf("%q is read as %q, %v", s, back, err)
		}
	}
}

func TestDrawWaits(t *testing.T) {
	w := check.Waits{Schema: check.WaitsSchema, Calls: 100, Step: 100 * ms, Width: time.Second, Counts: []int{0, 100, 0, 0, 0, 0, 0, 0, 0, 0},
		Window: 10 * ms, At: 150 * ms, Most: 100, Limit: 20}
	d := drawWaits(&w)
	if d.Ideal != "10.0" || d.Most != 100 || !d.Breach || d.WindowX != "15.00%" || d.WindowWidth != "1.00%" || strings.Count(d.Bars, "M") != 1 || !strings.HasPrefix(d.Bars, "M1.1 ") {
		t.Errorf("%+v", d)
	}
	for _, want := range []string{"100 calls came back between 0s and 200ms", "within 10ms", "fewer than 20 are allowed"} {
		if !strings.Contains(d.Text, want) {
			t.Errorf("the text lacks %q: %s", want, d.Text)
		}
	}
	w.Most, w.Limit = 0, 0
	if d := drawWaits(&w); d.Breach || d.WindowX != "" {
		t.Errorf("%+v", d)
	}
	w.Schema = "retrychaos.waits/v9"
	if drawWaits(&w) != nil {
		t.Error("a form that is not known is drawn")
	}
}

func TestDrawLoad(t *testing.T) {
	h := &history.History{Capacity: &history.Capacity{Workers: 1, Service: 100 * ms, Queue: 5}, Triggers: []history.Trigger{{From: 100 * time.Second, To: 200 * time.Second, What: "stall"}}}
	if drawLoad(h) != nil {
		t.Error("a run without calls is drawn")
	}
	for i := range 400 {
		c := &history.Call{ID: fmt.Sprint(i), Started: time.Duration(i) * time.Second, Ended: time.Duration(i) * time.Second}
		c.Outcome.OK = i < 100
		for range 1 + i/100 {
			c.Attempts = append(c.Attempts, &history.Attempt{At: c.Started})
		}
		h.Calls = append(h.Calls, c)
	}
	d := drawLoad(h)
	if d.Bins != 100 || d.Each == "" || len(d.Triggers) != 1 || d.Triggers[0].X != "25.0%" || d.Triggers[0].Width != "25.0%" || d.Capacity != "capacity 10 a second" {
		t.Errorf("%+v", d)
	}
	if strings.Count(d.Attempts, "h1") != 100 || !strings.Contains(d.Text, "1000 attempts for 400 calls") {
		t.Errorf("%s\n%s", d.Attempts, d.Text)
	}
	h.Capacity = nil
	if drawLoad(h) != nil {
		t.Error("a run without a capacity is drawn")
	}
}
