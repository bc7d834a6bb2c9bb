package reports

import (
	"bytes"
	"encoding/xml"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
)

// nasty is what a client might say to deceive a terminal, an XML reader or a page.
const nasty = "\x1b[2J\x1b]0;owned\x07 \x00\x01\b\r\n\u202eevil\u200b\u2028 \xff\xfe \ufffe ]]> <script>alert(1)</script> &amp; `x` ``` | **b** [l](http://e) @someone #1 | \u009b31m ~~s~~ <!-- 'q' \"d\" $(rm)"

func hostile() *Report {
	name := nasty
	r := duplicated(name, "duplicates/"+nasty)
	r.Summary, r.Rule, r.World = nasty, nasty, nasty
	v := &r.Verdicts[1]
	v.Check, v.Reason, v.Source = nasty, nasty, nasty
	v.Evidence, v.Notes = []string{nasty, "````"}, []string{nasty}
	c := r.History.Calls[0]
	c.ID, c.Path, v.Calls = nasty, nasty, []string{nasty}
	c.Outcome = history.Outcome{Error: nasty, Traits: []string{nasty}}
	c.Attempts[0].Fault, c.Attempts[0].RetryAfter = nasty, []string{nasty}
	r.Findings = []history.Finding{{Kind: nasty, Text: nasty, Call: nasty}}

	unknown := result(name, nasty+"/u")
	unknown.Status, unknown.Verdicts = check.Unknown, []check.Verdict{{Check: nasty, Status: check.Unknown, Level: check.Must, Reason: nasty}}
	skipped := result(name, nasty+"/s")
	skipped.Status, skipped.Reason, skipped.Verdicts = check.Skipped, nasty, nil
	long := failing(result(name, "long/text"), check.Verdict{Check: "x", Reason: strings.Repeat("ab\x1b", 1<<17)})
	return fixed(Run{Clients: []ClientInfo{{Name: name, Version: nasty}}}, []harness.Result{r, unknown, skipped, long})
}

// hostileDiff compares with a report in which all was well.
func hostileDiff(r *Report) *Comparison {
	well := *r
	well.Results = slices.Clone(r.Results)
	for i := range well.Results {
		res := &well.Results[i]
		res.Findings, res.Status, res.Reason = nil, check.Pass, ""
		res.Verdicts = []check.Verdict{pass(nasty), pass("effects.once"), pass("x")}
	}
	well.Results = append(well.Results, result(r.Clients[0].Name, nasty+"/gone"))
	well.Tool.Version = nasty
	well.Clients = append(slices.Clone(well.Clients), ClientInfo{Name: nasty + "2"})
	return Diff(&well, r)
}

func several(r *Report) *Report {
	return fixed(Run{Clients: append(r.Clients, ClientInfo{Name: "other", Version: nasty})}, append(r.Results, result("other", "f/ok")))
}

func TestHostileText(t *testing.T) {
	for _, r := range []*Report{hostile(), several(hostile())} {
		for name, write := range map[string]func(io.Writer) error{
			"terminal":         func(w io.Writer) error { return WriteTerminal(w, r, TerminalOptions{Dir: nasty}) },
			"terminal verbose": func(w io.Writer) error { return WriteTerminal(w, r, TerminalOptions{Verbose: true, Width: 200}) },
			"markdown":         func(w io.Writer) error { return WriteMarkdown(w, r, MarkdownOptions{}) },
			"junit":            func(w io.Writer) error { return WriteJUnit(w, r) },
			"html":             func(w io.Writer) error { return WriteHTML(w, r, HTMLOptions{}) },
			"tap":              func(w io.Writer) error { return WriteTAP(w, r) },
			"annotations":      func(w io.Writer) error { return WriteAnnotations(w, r) },
			"diff":             func(w io.Writer) error { return WriteDiffTerminal(w, hostileDiff(r), DiffTerminalOptions{}) },
			"diff wide": func(w io.Writer) error {
				return WriteDiffTerminal(w, hostileDiff(r), DiffTerminalOptions{Verbose: true, Width: 160})
			},
			"diff markdown":    func(w io.Writer) error { return WriteDiffMarkdown(w, hostileDiff(r), MarkdownOptions{}) },
			"diff annotations": func(w io.Writer) error { return WriteDiffAnnotations(w, hostileDiff(r)) },
			"progress": func(w io.Writer) error {
				p := NewProgress(w, 1, ProgressOptions{})
				p.Done(nasty, check.Fail)
				return nil
			},
		} {
			var b bytes.Buffer
			if err := write(&b); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			text := b.String()
			if !utf8.ValidString(text) {
				t.Errorf("%s is not UTF-8", name)
			}
			for i, c := range text {
				if c != '\n' && !unicode.IsPrint(c) {
					t.Errorf("%s holds %U at %d: %q", name, c, i, text[max(0, i-20):i+20])
					break
				}
			}
			if len(text) > 200_000 {
				t.Errorf("%s is %d bytes: one long text must be cut", name, len(text))
			}
			if name == "terminal" && !strings.Contains(text, `\x1b[2J`) {
				t.Error("the terminal does not show the escape sequence in its visible form")
			}
		}
	}
}

func TestHostileMarkdown(t *testing.T) {
	var b bytes.Buffer
	if err := WriteMarkdown(&b, several(hostile()), MarkdownOptions{}); err != nil {
		t.Fatal(err)
	}
	fence := ""
	for _, line := range strings.Split(b.String(), "\n") {
		if strings.HasPrefix(line, "```") {
			run := line[:longestRun(line, '`')]
			switch fence {
			case "":
				fence = run
			case run:
				fence = ""
			}
			continue
		}
		if fence != "" {
			continue // in a block of code nothing is markup
		}
		if strings.HasPrefix(line, "| ") {
			want := 7
			if strings.Contains(line, "f/ok") || strings.HasPrefix(line, "| scenario") || strings.Count(unescaped(line), "|") == 4 {
				want = 4
			}
			if got := strings.Count(unescaped(line), "|"); got != want {
				t.Errorf("%d cell borders, want %d: %s", got, want, line)
			}
		}
		outside := unescaped(outsideCode(line))
		for _, bad := range []string{"<script", "<!--", "**b", "[l]", "`x", "~~s", "@someone"} {
			if strings.Contains(outside, bad) {
				t.Errorf("%q is markup in: %s", bad, line)
			}
		}
	}
	if fence != "" {
		t.Error("a block of code is not closed")
	}
}

// unescaped drops what a backslash escapes.
func unescaped(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' {
			i++
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// outsideCode drops code spans, as CommonMark finds them.
func outsideCode(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		if s[i] == '\\' && i+1 < len(s) {
			b.WriteString(s[i : i+2])
			i += 2
			continue
		}
		if s[i] != '`' {
			b.WriteByte(s[i])
			i++
			continue
		}
		n := len(s[i:]) - len(strings.TrimLeft(s[i:], "`"))
		end := -1
		for j := i + n; j < len(s); {
			m := len(s[j:]) - len(strings.TrimLeft(s[j:], "`"))
			if m == n {
				end = j + m
				break
			}
			j += max(m, 1)
		}
		if end < 0 {
			b.WriteString(s[i : i+n])
			i += n
			continue
		}
		i = end
	}
	return b.String()
}

func TestCodeCannotBeLeft(t *testing.T) {
	if got, want := mdBlock("sh", []string{"````", "rm"}), "`````sh\n````\nrm\n`````\n"; got != want {
		t.Errorf("mdBlock gives %q, want %q", got, want)
	}
	for in, want := range map[string]string{"a": "`a`", "`a``": "``` `a`` ```", "": "`  `"} {
		if got := mdCode(in); got != want {
			t.Errorf("mdCode(%q) = %q, want %q", in, got, want)
		}
	}
	for in, want := range map[string]string{"- a": `\- a`, "1. a": `1\. a`, " x": "x", "v1.2": "v1.2", "a@b": "a@b", "world_cap": `world\_cap`} {
		if got := mdText(in); got != want {
			t.Errorf("mdText(%q) = %q, want %q", in, got, want)
		}
	}
	if got := mdSource("https://e.org/a_b#c"); got != "<https://e.org/a_b#c>" {
		t.Errorf("mdSource gives %q", got)
	}
}

func TestHostileJUnit(t *testing.T) {
	var b bytes.Buffer
	if err := WriteJUnit(&b, hostile()); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(&b)
	for {
		if _, err := d.Token(); err == io.EOF {
			return
		} else if err != nil {
			t.Fatal(err)
		}
	}
}

func TestShellQuote(t *testing.T) {
	for in, want := range map[string]string{
		"a b":         "'a b'",
		"it's":        `'it'\''s'`,
		"":            "''",
		"a\nb\x1b'\\": `$'a\012b\033\'\\'`,
		"\xff":        `$'\377'`,
	} {
		if got := ShellQuote(in); got != want {
			t.Errorf("ShellQuote(%q) = %s, want %s", in, got, want)
		}
	}
	if shellWord("go-retryablehttp") != "go-retryablehttp" || shellWord("a;b") != "'a;b'" || shellWord("") != "''" {
		t.Error("shellWord quotes what needs it and nothing else")
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash to ask")
	}
	in := strings.ReplaceAll(nasty, "\x00", "")
	out, err := exec.Command(bash, "-c", "printf %s "+ShellQuote(in)).Output()
	if err != nil || string(out) != in {
		t.Errorf("bash reads %q, %v; want %q", out, err, in)
	}
}

func TestColumns(t *testing.T) {
	for s, want := range map[string]int{"abc": 3, "日本": 4, "é": 1, "e\u0301": 1, "✓✗–": 3} {
		if got := columns(s); got != want {
			t.Errorf("columns(%q) = %d, want %d", s, got, want)
		}
	}
	if got := clip("日本語", 4); columns(got) > 4 || !strings.HasSuffix(got, "…") {
		t.Errorf("clip gives %q", got)
	}
}
