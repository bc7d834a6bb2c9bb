package reports

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
)

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
