package browser

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/reports"
)

// What the tests ask the page for.
const (
	rows    = `document.querySelectorAll("#matrix-table tr.scenario").length`
	columns = `document.querySelectorAll("#matrix-table thead th").length - 1`
	counted = `document.getElementById("matrix-count").textContent`
	opened  = `document.getElementById("cell").open`
	nodes   = `document.getElementsByTagName("*").length`
	active  = `(e => e.id || (e.dataset.family ?? "") + (e.dataset.s !== undefined ? "cell " + e.dataset.c + "," + e.dataset.s : "") || e.textContent)(document.activeElement)`
)

func choose(id, value string) string {
	return fmt.Sprintf(`(() => { const e = document.getElementById(%q); e.value = %q; e.dispatchEvent(new Event("input", {bubbles: true})); return true; })()`, id, value)
}

func click(selector string) string {
	return fmt.Sprintf(`(document.querySelector(%q).click(), true)`, selector)
}

func (p *tab) expect(what, want string, got any) {
	p.t.Helper()
	if s := fmt.Sprint(got); s != want {
		p.t.Errorf("%s: %s, want %s", what, s, want)
	}
}

// failures counts what fails in a report.
type failures struct {
	results   int
	scenarios map[string]bool
	of        map[string]int // results by client
}

// failing counts the results of scenarios from, up to to, that fail by some verdict.
func failing(r *reports.Report, by func(check.Verdict) bool, from, to int) failures {
	f := failures{scenarios: map[string]bool{}, of: map[string]int{}}
	for _, res := range r.Results {
		n, _ := strconv.Atoi(res.Scenario[len(res.Scenario)-3:])
		if from <= n && n < to && slices.ContainsFunc(res.Verdicts, func(v check.Verdict) bool { return v.Status == check.Fail && by(v) }) {
			f.results++
			f.scenarios[res.Scenario] = true
			f.of[res.Client]++
		}
	}
	return f
}

func TestFilters(t *testing.T) {
	r := sample(3, 40)
	must := failing(r, func(v check.Verdict) bool { return v.Level == check.Must }, 0, 40)
	may := failing(r, func(v check.Verdict) bool { return v.Level == check.May }, 0, 40)
	any := failing(r, func(check.Verdict) bool { return true }, 0, 40)
	p := open(t, r, reports.HTMLOptions{})
	all := eval[string](p, counted)
	p.expect("at first", fmt.Sprintf("Showing 40 of 40 scenarios and 3 of 3 clients: %d fail, 0 unknown, %d pass, 0 skipped, by rules of level MUST.",
		must.results, 3*40-must.results), all)
	p.expect("rows", "40", eval[int](p, rows)) // so few are open by themselves

	p.do(chromedp.SendKeys(chromedp.ID("f-q"), "scenario-01 family-01"))
	p.expect("rows that hold both words", "10", eval[int](p, rows))
	p.expect("the text in the address", "#q=scenario-01+family-01", eval[string](p, "location.hash"))
	eval[bool](p, click("#filters button[type=reset]"))
	p.expect("after clearing", all, eval[string](p, counted))
	p.expect("the address after clearing", "", eval[string](p, "location.hash"))

	p.do(chromedp.SendKeys(chromedp.ID("f-q"), "EFFECTS.once"))
	p.expect("rows that break the rule somewhere", fmt.Sprint(len(must.scenarios)), eval[int](p, rows))
	eval[bool](p, click("#filters button[type=reset]"))

	eval[bool](p, choose("f-family", "family-02"))
	p.expect("rows of a family", "10", eval[int](p, rows))
	for _, status := range []string{"pass", "unknown", "skipped"} {
		eval[bool](p, click("[name=status][value="+status+"]"))
	}
	part := failing(r, func(v check.Verdict) bool { return v.Level == check.Must }, 20, 30)
	p.expect("failing rows of a family", fmt.Sprint(len(part.scenarios)), eval[int](p, rows))
	eval[bool](p, `(document.getElementById("f-clients").open = true)`)
	eval[bool](p, click("[name=client][value='0']"))
	eval[bool](p, click("[name=client][value='2']"))
	p.expect("columns", "1", eval[int](p, columns))
	p.expect("failing rows of a family and a client", fmt.Sprint(part.of["client-01"]), eval[int](p, rows))
	address := eval[string](p, "location.hash")
	text := eval[string](p, counted)

	p.navigate(address)
	p.expect("the view of "+address, text, eval[string](p, counted))
	p.expect("the family's control", "family-02", eval[string](p, `document.getElementById("f-family").value`))
	p.expect("the statuses' controls", "fail", eval[string](p, `[...document.querySelectorAll("[name=status]:checked")].map(b => b.value).join()`))
	eval[bool](p, click("#filters button[type=reset]"))

	eval[bool](p, choose("f-level", "MAY"))
	if s := eval[string](p, counted); !strings.Contains(s, fmt.Sprintf(": %d fail,", any.results)) {
		t.Errorf("at MAY: %s", s)
	}
	rule := eval[string](p, `[...document.getElementById("f-rule").options].find(o => o.text === "timing.backoff-grows").value`)
	eval[bool](p, choose("f-rule", rule))
	if s := eval[string](p, counted); !strings.Contains(s, fmt.Sprintf(": %d fail, 0 unknown, 0 pass", may.results)) || !strings.HasSuffix(s, "by the verdicts of timing.backoff-grows alone.") {
		t.Errorf("of one rule: %s", s)
	}
	eval[bool](p, choose("f-q", "nothing is called so"))
	p.expect("rows", "0", eval[int](p, rows))
	if s := eval[string](p, `document.querySelector("#matrix-table tbody").textContent`); s != "No scenario matches these filters." {
		t.Errorf("an empty matrix says %q", s)
	}
	p.expect("what tells of the count", "polite", eval[string](p, `document.getElementById("matrix-count").ariaLive`))
	p.quiet()
}

func TestCell(t *testing.T) {
	p := open(t, sample(2, 20), reports.HTMLOptions{})
	p.do(chromedp.Click(chromedp.CSS(`.cell[data-c="0"][data-s="7"]`)))
	p.expect("the dialog is open", "true", eval[bool](p, opened))
	p.expect("timelines", "1", eval[int](p, `document.querySelectorAll("#cell figure.timeline > svg[role=img][aria-label]").length`))
	for selector, want := range map[string]int{
		"line.at": 3, "circle.conn": 3, "circle.conn.reused": 1, "text.effect": 2, "line.gap": 1, "line.asked": 1, "text.resent": 1, "line.mark.end": 1,
	} {
		p.expect(selector, fmt.Sprint(want), eval[int](p, `document.querySelectorAll("#cell svg `+selector+`").length`))
		if box := eval[float64](p, `(b => Math.max(b.right - innerWidth, -b.left, b.width + b.height === 0 ? 1 : 0))(document.querySelector("#cell svg `+selector+`").getBoundingClientRect())`); box > 0 {
			t.Errorf("%s lies outside the window, or is not drawn (%v)", selector, box)
		}
	}
	text := eval[string](p, `document.getElementById("cell").innerText`)
	for _, want := range []string{"✗ fail family-00/scenario-007", "client-00", "effects.once", "MUST", "RFC 9110 §9.2.2", "effect 2 by attempt 3",
		"retrychaos run --client client-00 --scenario family-00/scenario-007 --seed 18446744073709551615 --world virtual",
		"attempt 3: connection 2 fresh, resent by net/http", "Attempt 2 · connection 1 reused", "waited 2.5s of 4.5s asked: too early"} {
		if !strings.Contains(text, want) {
			t.Errorf("the cell lacks %q", want)
		}
	}
	p.expect("the cell in the address", "#cell=family-00%2Fscenario-007&of=client-00", eval[string](p, "location.hash"))

	eval[bool](p, `(navigator.clipboard.writeText = (s) => { window.copied = s; return Promise.resolve(); }, true)`)
	p.do(chromedp.Click(chromedp.CSS("#cell .copy")))
	p.expect("what is copied", "retrychaos run --client client-00 --scenario family-00/scenario-007 --seed 18446744073709551615 --world virtual", eval[string](p, "window.copied"))
	p.expect("and it is said", "The command is copied.", eval[string](p, `document.getElementById("say").textContent`))

	eval[bool](p, click("#cell-next"))
	p.expect("the next finding", "#cell=family-01%2Fscenario-013&of=client-01", eval[string](p, "location.hash"))
	p.do(chromedp.NavigateBack())
	p.expect("the dialog after going back", "false", eval[bool](p, opened))

	p.navigate("#cell=family-00%2Fscenario-001&of=client-01")
	p.expect("a link opens its cell", "true", eval[bool](p, opened))
	if s := eval[string](p, `document.getElementById("cell").innerText`); !strings.Contains(s, "✓ pass family-00/scenario-001") || !strings.Contains(s, "--client client-01 --scenario family-00/scenario-001 --seed 18446744073709551615") {
		t.Errorf("a cell that passes says %s", s)
	}
	p.quiet()
}

// The way from the top of the page into a cell and back, without a mouse.
func TestKeyboard(t *testing.T) {
	p := open(t, sample(7, 200), reports.HTMLOptions{})
	key := func(keys string) { p.do(chromedp.KeyEvent(keys)) }
	key(kb.Tab)
	p.expect("first", "Skip to the matrix", eval[string](p, active))
	key(kb.Enter)
	p.expect("in the matrix's section", "matrix", eval[string](p, active))
	key(kb.Tab)
	p.expect("the first control", "f-q", eval[string](p, active))
	for i := 0; eval[string](p, active) != "family-00"; i++ {
		if i > 15 {
			t.Fatal("15 times Tab do not lead to the first family")
		}
		key(kb.Tab)
	}
	key(kb.Enter)
	p.expect("rows of the family", "10", eval[int](p, rows))
	p.expect("the focus stays", "family-00", eval[string](p, active))
	p.expect("it is said to be open", "true", eval[string](p, `document.activeElement.ariaExpanded`))
	key(kb.Tab)
	p.expect("the first row's failing cell", "cell 0,0", eval[string](p, active))
	key(kb.ArrowRight)
	key(kb.ArrowDown)
	p.expect("one to the right and one down", "cell 1,1", eval[string](p, active))
	if width := eval[string](p, `getComputedStyle(document.activeElement).outlineWidth`); width == "0px" {
		t.Error("the focus is not to be seen")
	}
	key(kb.Enter)
	p.expect("the dialog", "true", eval[bool](p, opened))
	p.expect("its heading has the focus", "cell-h", eval[string](p, active))
	key(kb.Escape)
	p.expect("the dialog", "false", eval[bool](p, opened))
	p.expect("the focus is back", "cell 1,1", eval[string](p, active))
	key(kb.ArrowUp)
	key(kb.ArrowUp)
	p.expect("up to the family", "family-00", eval[string](p, active))
	p.quiet()
}

// Quick is what does little: what is not to be seen is not made. So the page has a few nodes for each family and client
// and for each cell that is shown, and never more than 150 rows of cells, however many scenarios there are.
func TestWork(t *testing.T) {
	const page, family, cell, shown = 950, 3, 2, 150
	for _, c := range []struct{ clients, scenarios int }{{30, 150}, {26, 952}} {
		p := open(t, sample(c.clients, c.scenarios), reports.HTMLOptions{})
		families := (c.scenarios + 9) / 10
		least := page + families*(family*c.clients+5)
		if n := eval[int](p, nodes); n > least {
			t.Errorf("%d × %d: %d nodes at first, at most %d are meant", c.clients, c.scenarios, n, least)
		}
		p.expect("rows at first", "0", eval[int](p, rows))
		eval[bool](p, `(families.forEach((f) => state.open.set(f.name, true)), draw(), true)`)
		p.expect("rows when all is open", fmt.Sprint(min(shown, c.scenarios)), eval[int](p, rows))
		if n, most := eval[int](p, nodes), least+(cell*c.clients+2)*shown; n > most {
			t.Errorf("%d × %d: %d nodes when all is open, at most %d are meant", c.clients, c.scenarios, n, most)
		}
		if c.scenarios > shown {
			eval[bool](p, click("#rows-more"))
			p.expect("rows after asking for more", fmt.Sprint(2*shown), eval[int](p, rows))
		}
		p.expect("what cells hold is not read before one is opened", "true", eval[bool](p, "words === null && pictures === null"))
		t.Logf("%d × %d: drawn in %.0f ms", c.clients, c.scenarios, eval[float64](p, `(t => (draw(), performance.now() - t))(performance.now())`))
		p.quiet()
	}
}

// What a screen reader goes by.
func TestStructure(t *testing.T) {
	p := open(t, sample(2, 20), reports.HTMLOptions{})
	eval[bool](p, click(".cell"))
	for what, expression := range map[string]string{
		"rows without a head":         `[...document.querySelectorAll("tbody tr")].filter(r => !r.querySelector("th[scope=row]")).length`,
		"columns without a head":      `[...document.querySelectorAll("thead")].filter(h => h.querySelectorAll("th[scope=col]").length !== h.querySelectorAll("th").length || !h.querySelector("th")).length`,
		"buttons without a name":      `[...document.querySelectorAll("button")].filter(b => !(b.ariaLabel || b.textContent.trim()) && !b.hidden).length`,
		"controls without a label":    `[...document.querySelectorAll("input, select")].filter(i => !i.labels.length).length`,
		"pictures without words":      `[...document.querySelectorAll("svg")].filter(s => s.parentNode.nodeName !== "svg" && !(s.role === "img" && s.ariaLabel)).length`,
		"ids that come twice":         `(a => a.length - new Set(a).size)([...document.querySelectorAll("[id]")].map(e => e.id))`,
		"cells without a word":        `[...document.querySelectorAll("#matrix-table td")].filter(d => !/pass|fail|unknown|skipped|no result/.test(d.textContent + (d.querySelector("button")?.ariaLabel ?? ""))).length`,
		"names that refer to nothing": `[...document.querySelectorAll("[aria-labelledby], [aria-describedby]")].filter(e => !document.getElementById(e.getAttribute("aria-labelledby") || e.getAttribute("aria-describedby"))).length`,
		"headings that skip a level":  `[...document.querySelectorAll("h1, h2, h3, h4")].map(h => +h.tagName[1]).filter((n, i, a) => i && n > a[i - 1] + 1).length`,
	} {
		p.expect(what, "0", eval[int](p, expression))
	}
	p.quiet()
}

// The page fits a phone, and its colours can be told from their ground in light and dark.
func TestLooks(t *testing.T) {
	p := open(t, sample(26, 30), reports.HTMLOptions{})
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390} {
			p.size(width, 800, scheme)
			p.navigate("#cell=family-00%2Fscenario-007&of=client-00&open=family-00")
			if got := eval[int64](p, `document.documentElement.scrollWidth`); got > width {
				t.Errorf("%d px, %s: the page is %d wide", width, scheme, got)
			}
			if got := eval[int64](p, `document.getElementById("cell").scrollWidth - document.getElementById("cell").clientWidth`); got > 0 {
				t.Errorf("%d px, %s: the cell is %d too wide", width, scheme, got)
			}
			eval[bool](p, click("#cell-close"))
			for _, low := range eval[[]string](p, contrast) {
				t.Errorf("%d px, %s: %s", width, scheme, low)
			}
		}
	}
	p.quiet()
}

// contrast lists texts that have less than 4.5 to 1 against what lies behind them (WCAG 2.2, 1.4.3).
const contrast = `(() => {
	const parse = (c) => c.match(/[\d.]+/g).map(Number);
	const light = (c) => { const [r, g, b] = parse(c).map((v) => (v /= 255) <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4); return .2126 * r + .7152 * g + .0722 * b; };
	const ground = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor; if ((parse(c)[3] ?? 1) > 0) return c; } return "rgb(255, 255, 255)"; };
	const low = new Set();
	for (const e of document.querySelectorAll("body *:not(script, style, option)")) {
		if (e.closest("svg") || !e.checkVisibility() || e.disabled || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
		const [a, b] = [light(getComputedStyle(e).color), light(ground(e))].sort((x, y) => y - x);
		const ratio = (a + .05) / (b + .05);
		if (ratio < 4.5) low.add(e.tagName + "." + e.className + " has " + ratio.toFixed(2) + " to 1");
	}
	return [...low];
})()`

// A client that would break out of the page does not.
func TestHostile(t *testing.T) {
	const nasty = "<img src=x onerror=alert(1)><script>alert(2)</script></script><!--<script> \u202e\x1b[31m \"'` ${alert(3)} & \xff"
	r := sample(1, 20)
	r.Clients[0].Name = nasty
	for i := range r.Results {
		res := &r.Results[i]
		res.Client, res.Summary = nasty, nasty
		if i == 3 {
			res.Scenario = nasty + "/x"
		}
		for j := range res.Verdicts {
			v := &res.Verdicts[j]
			v.Check, v.Reason, v.Source, v.Evidence, v.Notes = nasty, nasty, nasty, []string{nasty}, []string{nasty}
			v.Waits = &check.Waits{Schema: check.WaitsSchema, Wave: nasty, Claim: nasty, Calls: 1, Step: 1, Width: 1, Counts: []int{1}}
		}
		if h := res.History; h != nil {
			h.Calls[0].Path, h.Calls[0].Outcome.Error, h.Calls[0].Attempts[0].Fault = nasty, nasty, nasty
		}
	}
	p := open(t, r, reports.HTMLOptions{})
	p.do(chromedp.SendKeys(chromedp.ID("f-q"), "alert"))
	for range 6 {
		eval[bool](p, `(openCell(0, 7, true), dialog.close(), openCell(0, 3, true), go(1), dialog.close(), true)`)
	}
	if n := eval[int](p, `document.querySelectorAll("img, iframe, object, link, body script:not([id]) ~ script").length`); n > 0 {
		t.Errorf("%d elements of the client's", n)
	}
	if s := eval[string](p, `document.querySelector("#matrix-table thead").textContent`); !strings.Contains(s, "<img src=x onerror=alert(1)>") {
		t.Errorf("the client's name is not shown as text: %s", s)
	}
	p.navigate(eval[string](p, "location.hash") + "&open=%3Cimg%20src%3Dx%3E&family=%3Cscript%3E&rule=&level=x&client=y&cell=z")
	p.quiet()
}

// An empty report, and one that passes, say so.
func TestNothing(t *testing.T) {
	p := open(t, reports.New(reports.Run{}, nil), reports.HTMLOptions{})
	if s := eval[string](p, `document.body.innerText`); !strings.Contains(s, "nothing was judged") || !strings.Contains(s, "No scenario was run.") {
		t.Errorf("an empty report says %s", s)
	}
	p.quiet()
}

// The test sees requests: a page that asks for something is caught by quiet.
func TestRequestsAreSeen(t *testing.T) {
	p := open(t, sample(1, 1), reports.HTMLOptions{})
	eval[bool](p, `(document.body.append(Object.assign(new Image(), {src: "http://127.0.0.1:9/x.png"})), true)`)
	p.mu.Lock()
	defer p.mu.Unlock()
	blocked := slices.ContainsFunc(p.said, func(s string) bool { return strings.Contains(s, "Content Security Policy") })
	if !blocked {
		t.Errorf("nothing keeps the page from asking: it said %q and asked for %q", p.said, p.asked)
	}
}
