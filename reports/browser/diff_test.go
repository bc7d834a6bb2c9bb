package browser

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/retrychaos/retrychaos/reports"
)

func TestDiff(t *testing.T) {
	chromium := findChromium(t)
	c := compared()
	var b bytes.Buffer
	if err := reports.WriteDiffHTML(&b, c, reports.HTMLOptions{}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "diff.html")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	p := openFile(t, chromium, path)
	const shown = `document.querySelectorAll(".change:not([hidden])").length`
	if s := eval[string](p, `document.body.innerText`); !strings.Contains(s, fmt.Sprintf("%d results broken", len(c.Broken))) || !strings.Contains(s, "effects.once (MUST)") {
		t.Errorf("the page says %s", s)
	}
	p.expect("changes at first", "2", eval[int](p, shown)) // one a family
	p.expect("timelines before one is opened", "0", eval[int](p, `document.querySelectorAll(".timeline").length`))

	p.do(chromedp.SendKeys(chromedp.ID("f-q"), "broken scenario-014"))
	p.expect("changes that hold both words", "1", eval[int](p, shown))
	p.expect("and it is said", "Showing 1 of 2 different changes.", eval[string](p, `document.getElementById("changes-count").textContent`))
	p.expect("the text in the address", "#q=broken+scenario-014", eval[string](p, "location.hash"))

	p.do(chromedp.Focus(chromedp.CSS(".change:not([hidden]) .sides > summary")), chromedp.KeyEvent("\r"))
	run(p, chromedp.Poll[bool](`document.querySelectorAll(".two svg[role=img][aria-label]").length === 2`))
	p.expect("attempts on either side", "1 3", eval[string](p, `[...document.querySelectorAll(".two > div")].map(d => d.querySelectorAll("line.at").length).join(" ")`))
	const beside = `(([a, b]) => a.top === b.top && a.right <= b.left)([...document.querySelectorAll(".two > div")].map(d => d.getBoundingClientRect()))`
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390} {
			p.size(width, 800, scheme)
			p.expect(fmt.Sprintf("side by side at %d px", width), fmt.Sprint(width > 640), eval[bool](p, beside))
			if got := eval[int64](p, `document.documentElement.scrollWidth`); got > width {
				t.Errorf("%d px: the page is %d wide", width, got)
			}
			for _, low := range eval[[]string](p, contrast) {
				t.Errorf("%d px, %s: %s", width, scheme, low)
			}
		}
	}
	p.quiet()
}
