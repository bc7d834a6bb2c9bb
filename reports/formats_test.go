package reports

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/onsi/ginkgo/v2/reporters"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
)

func TestJSONRoundTrip(t *testing.T) {
	r := threeClients()
	r.Seed = math.MaxUint64
	var first bytes.Buffer
	if err := r.WriteJSON(&first); err != nil {
		t.Fatal(err)
	}
	back, err := ReadJSON(bytes.NewReader(first.Bytes()))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(r, back); d != "" {
		t.Errorf("the report changes on its way (-written +read)\n%s", d)
	}
	var second bytes.Buffer
	if err := back.WriteJSON(&second); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("written again, the bytes differ")
	}

	shuffled := slices.Clone(threeClients().Results)
	slices.Reverse(shuffled)
	again := fixed(Run{Clients: r.Clients}, shuffled)
	again.Seed = r.Seed
	second.Reset()
	if err := again.WriteJSON(&second); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("results in another order give other bytes")
	}
}

func TestReadJSONRefuses(t *testing.T) {
	good := func(edit func(string) string) string {
		var b bytes.Buffer
		if err := fixed(Run{}, []harness.Result{duplicated("a", "f/x")}).WriteJSON(&b); err != nil {
			t.Fatal(err)
		}
		return edit(b.String())
	}
	replace := func(old, new string) string {
		return good(func(s string) string {
			if !strings.Contains(s, old) {
				t.Fatalf("no %s in the report", old)
			}
			return strings.Replace(s, old, new, 1)
		})
	}
	for _, c := range []struct{ name, in, want string }{
		{"empty", " \n", "empty"},
		{"no JSON", "# report", "line 1, column 1"},
		{"other JSON", `{"name":"x"}`, `no "schema" field`},
		{"array", `[]`, "not a report"},
		{"later version", replace("report/v1", "report/v2"), `schema "retrychaos.report/v2": this retrychaos reads "retrychaos.report/v1" only`},
		{"later version with other types", `{"schema":"retrychaos.report/v2","results":7}`, `schema "retrychaos.report/v2"`},
		{"cut", good(func(s string) string { return s[:len(s)/2] }), "unexpected end"},
		{"two", good(func(s string) string { return s + s }), "after top-level value"},
		{"wrong type", replace(`"seed": 42`, `"seed": "x"`), "line 9"},
		{"level", replace(`"level": "MUST"`, `"level": "must"`), `level "must"`},
		{"status", replace(`"status":"fail"`, `"status":"failed"`), `status "failed"`},
		{"verdict's status", replace(`"status":"pass","level"`, `"status":"","level"`), `verdict of "effects.once": status ""`},
		{"verdict's level", replace(`"status":"pass","level":"MUST"`, `"status":"pass","level":""`), `level ""`},
		{"client", replace(`"client":"a"`, `"client":"b"`), `client "b" is not among`},
		{"client twice", replace(`"clients": [`, `"clients": [{"name":"a","declared":{}},`), `listed twice`},
		{"scenario", replace(`"scenario":"f/x"`, `"scenario":""`), "names no scenario"},
	} {
		_, err := ReadJSON(strings.NewReader(c.in))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want one with %q", c.name, err, c.want)
		}
	}
	if _, err := ReadJSON(strings.NewReader(replace(`"seed": 42`, `"seed": 42, "later": 1`))); err != nil {
		t.Errorf("a field added later is refused: %v", err)
	}
}

func TestJUnitIsReadBack(t *testing.T) {
	r := threeClients()
	var b bytes.Buffer
	if err := WriteJUnit(&b, r); err != nil {
		t.Fatal(err)
	}
	var doc reporters.JUnitTestSuites
	if err := xml.Unmarshal(b.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	want := r.Counts()
	var got Counts
	names := map[string]bool{}
	for _, s := range doc.TestSuites {
		n := len(s.TestCases)
		if s.Tests != n {
			t.Errorf("suite %s says %d tests and has %d", s.Name, s.Tests, n)
		}
		for _, c := range s.TestCases {
			id := c.Classname + " " + c.Name
			if names[id] {
				t.Errorf("%s comes twice", id)
			}
			names[id] = true
			got.Total++
			shown := c.SystemOut != ""
			switch {
			case c.Failure != nil:
				got.Failed++
				if c.Failure.Message == "" || c.Failure.Type == "" || !strings.Contains(c.Failure.Description, "reproduce: retrychaos run") {
					t.Errorf("%s: failure lacks message, type or command: %+v", id, c.Failure)
				}
				if !shown {
					t.Errorf("%s fails without a timeline", id)
				}
			case c.Error != nil:
				got.Unknown++
			case c.Skipped != nil:
				got.Skipped++
				if c.Skipped.Message == "" {
					t.Errorf("%s is skipped without a reason", id)
				}
			default:
				got.Passed++
				if shown {
					t.Errorf("%s passes with output", id)
				}
			}
		}
	}
	if got != want {
		t.Errorf("read back %+v, want %+v", got, want)
	}
	if doc.Tests != want.Total || doc.Failures != want.Failed || doc.Errors != want.Unknown {
		t.Errorf("totals %d %d %d, want %+v", doc.Tests, doc.Failures, doc.Errors, want)
	}
}

func TestBigReportIsCut(t *testing.T) {
	var results []harness.Result
	for i := range 10_000 {
		name := fmt.Sprintf("f%d/s%d", i%500, i)
		switch i % 4 {
		case 0, 1:
			r := duplicated("big", name)
			r.Verdicts[1].Reason = fmt.Sprintf("reason %x: %s", i, strings.Repeat("x", i%50)) // no two alike
			results = append(results, r)
		case 2:
			r := failing(result("big", name), belowLevel)
			results = append(results, r)
		default:
			results = append(results, result("big", name))
		}
	}
	r := fixed(Run{Clients: []ClientInfo{{Name: "big"}}, Level: check.Should}, results)
	for _, limit := range []int{0, 1, minBytes, 20_000} {
		var b bytes.Buffer
		if err := WriteMarkdown(&b, r, MarkdownOptions{MaxBytes: limit}); err != nil {
			t.Fatal(err)
		}
		most := max(limit, minBytes)
		if limit == 0 {
			most = DefaultMaxBytes
		}
		text := b.String()
		if b.Len() > most {
			t.Errorf("limit %d: %d bytes", limit, b.Len())
		}
		if limit == 0 && b.Len() < most/2 {
			t.Errorf("only %d of %d bytes are used", b.Len(), most)
		}
		if !strings.Contains(text, "more findings cut") || !strings.Contains(text, "✗ retrychaos") || !strings.Contains(text, "## Matrix") {
			t.Errorf("limit %d: head, matrix or the count of what is cut is missing:\n%.600s", limit, text)
		}
		if strings.Contains(text, "SHOULD · ") && !strings.Contains(text, "MUST · ") {
			t.Errorf("limit %d: a lesser finding is shown before the worst", limit)
		}
		if !strings.HasSuffix(text, "\n") || strings.Count(text, "\n```")%2 != 0 {
			t.Errorf("limit %d: cut within a row", limit)
		}
	}
	var b bytes.Buffer
	if err := WriteTerminal(&b, r, TerminalOptions{}); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(b.Bytes(), []byte("\n")); n > 1200 {
		t.Errorf("%d lines on the terminal", n)
	}
}

// Every section is the one that reaches the limit for some limit.
func TestMarkdownLimits(t *testing.T) {
	var results []harness.Result
	for i := range 40 {
		name := fmt.Sprintf("f%d/s", i)
		note := failing(result("a", name), check.Verdict{Check: "x", Reason: name, Notes: []string{strings.Repeat("n", 50+i)}})
		unknown := result("a", name+"u")
		unknown.Status, unknown.Verdicts, unknown.Reason = check.Unknown, nil, name+strings.Repeat("u", i)
		skipped := result("a", name+"s")
		skipped.Status, skipped.Verdicts, skipped.Reason = check.Skipped, nil, name+strings.Repeat("s", 20*i)
		results = append(results, note, unknown, skipped)
	}
	r := fixed(Run{}, results)
	var whole bytes.Buffer
	if err := WriteMarkdown(&whole, r, MarkdownOptions{}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(whole.String(), " cut to keep") {
		t.Error("cut without need")
	}
	for limit := minBytes; limit < 2*whole.Len(); limit += 397 {
		var b bytes.Buffer
		if err := WriteMarkdown(&b, r, MarkdownOptions{MaxBytes: limit}); err != nil {
			t.Fatal(err)
		}
		if b.Len() > limit {
			t.Errorf("limit %d: %d bytes", limit, b.Len())
		}
		if cut := b.Len() < whole.Len(); cut != strings.Contains(b.String(), " cut to keep") {
			t.Errorf("limit %d: cut is %v, and the page says otherwise", limit, cut)
		}
	}
}

func TestWriteAll(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "retrychaos-report")
	for range 2 { // the second time over the first
		paths, err := WriteAll(dir, oneClient())
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, f := range formats {
			want = append(want, filepath.Join(dir, f.name))
		}
		if !slices.Equal(paths, want) {
			t.Errorf("paths %q, want %q", paths, want)
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != len(formats) {
		t.Errorf("%d files in the folder: something was left behind: %v", len(entries), entries)
	}
	f, err := os.Open(filepath.Join(dir, FileJSON))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := ReadJSON(f); err != nil {
		t.Error(err)
	}

	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := WriteAll(filepath.Join(dir, "file"), oneClient()); err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "file")) {
		t.Errorf("error %v does not name the path", err)
	}
	// A folder in the place of one file: the error names it, the others are written, nothing is left behind.
	other := t.TempDir()
	if err := os.MkdirAll(filepath.Join(other, FileJUnit, "x"), 0o755); err != nil {
		t.Fatal(err)
	}
	paths, err := WriteAll(other, oneClient())
	if err == nil || !strings.Contains(err.Error(), filepath.Join(other, FileJUnit)) || len(paths) != len(formats)-1 {
		t.Errorf("paths %q, error %v", paths, err)
	}
	if left, _ := filepath.Glob(filepath.Join(other, ".*")); len(left) != 0 {
		t.Errorf("left behind: %q", left)
	}
}

func TestWriteFileKeepsTheOld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, []byte("old"), 0o644); err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	err := writeFile(path, func(w io.Writer) error {
		io.WriteString(w, strings.Repeat("half", 100_000))
		return boom
	})
	if !errors.Is(err, boom) {
		t.Errorf("error %v", err)
	}
	if b, _ := os.ReadFile(path); string(b) != "old" {
		t.Errorf("the old file is gone: %.20q", b)
	}
}

// failWriter fails after n bytes.
type failWriter struct{ n int }

func (w *failWriter) Write(p []byte) (int, error) {
	if w.n -= len(p); w.n < 0 {
		return 0, io.ErrShortWrite
	}
	return len(p), nil
}

func TestWriteErrorsAreReported(t *testing.T) {
	r := threeClients()
	for name, write := range map[string]func(io.Writer) error{
		"json":     r.WriteJSON,
		"terminal": func(w io.Writer) error { return WriteTerminal(w, r, TerminalOptions{}) },
		"junit":    func(w io.Writer) error { return WriteJUnit(w, r) },
		"markdown": func(w io.Writer) error { return WriteMarkdown(w, r, MarkdownOptions{}) },
		"html":     func(w io.Writer) error { return WriteHTML(w, r, HTMLOptions{}) },
	} {
		if err := write(&failWriter{n: 100}); !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%s: error %v, want the writer's", name, err)
		}
	}
}
