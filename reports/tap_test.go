package reports

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"testing"

	yaml "go.yaml.in/yaml/v4"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
)

// testPoint is a line of TAP 14.
var testPoint = regexp.MustCompile(`^(not )?ok (\d+) - ((?:[^#\\]|\\.)*)(?: # (SKIP|TODO) (.*))?$`)

// TestTAP reads the report as a consumer does: a plan, as many points, in order, each with its YAML.
func TestTAP(t *testing.T) {
	known := result("example", "a/known")
	known.Status, known.Reason = check.Skipped, "effects.once: known to fail (as documented)"
	known.Verdicts = []check.Verdict{{Check: "effects.once", Status: check.Skipped, Level: check.Must, Known: true, Reason: "r"}}
	for name, r := range map[string]*Report{"sample": fixed(Run{Clients: oneClient().Clients}, append(sample("example"), known)), "hostile": hostile(), "several": several(hostile())} {
		var b bytes.Buffer
		if err := WriteTAP(&b, r); err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		if lines[0] != "TAP version 14" || lines[1] != fmt.Sprintf("1..%d", len(r.Results)) {
			t.Fatalf("%s: begins with %q", name, lines[:2])
		}
		n, ok, todo, skip := 0, 0, 0, 0
		for i := 2; i < len(lines); i++ {
			m := testPoint.FindStringSubmatch(lines[i])
			if m == nil {
				t.Fatalf("%s: no test point: %q", name, lines[i])
			}
			if n++; m[2] != fmt.Sprint(n) {
				t.Errorf("%s: point %s, want %d", name, m[2], n)
			}
			switch {
			case m[4] == "TODO":
				todo++
			case m[4] == "SKIP":
				skip++
			case m[1] == "":
				ok++
			}
			if i+1 < len(lines) && lines[i+1] == "  ---" {
				var doc strings.Builder
				for i += 2; lines[i] != "  ..."; i++ {
					doc.WriteString(strings.TrimPrefix(lines[i], "  ") + "\n")
				}
				var diag struct {
					Severity string
					Seed     uint64
					Findings []struct{ Check, Status, Message, Reproduce string }
				}
				if err := yaml.Unmarshal([]byte(doc.String()), &diag); err != nil {
					t.Fatalf("%s: %v in\n%s", name, err, doc.String())
				}
				if diag.Severity == "" || diag.Seed != 42 || len(diag.Findings) == 0 || diag.Findings[0].Message == "" {
					t.Errorf("%s: %+v", name, diag)
				}
			} else if m[1] != "" && m[4] == "" {
				t.Errorf("%s: a failure without a word: %q", name, lines[i])
			}
		}
		c := r.Counts()
		if n != c.Total || ok != c.Passed || todo+skip != c.Skipped || name == "sample" && todo != 1 {
			t.Errorf("%s: %d points, %d ok, %d todo, %d skipped; the report has %+v", name, n, ok, todo, skip, c)
		}
	}
	var b bytes.Buffer
	if err := WriteTAP(&b, fixed(Run{}, nil)); err != nil || b.String() != "TAP version 14\n1..0 # SKIP nothing was run\n" {
		t.Errorf("%q, %v", b.String(), err)
	}
}

// command is a workflow command, as the runner finds it.
var command = regexp.MustCompile(`^::(error|warning) title=([^:,]*)::(.*)$`)

func TestAnnotations(t *testing.T) {
	var many []harness.Result
	for i := range 30 {
		r := result("example", fmt.Sprintf("f%02d/a", i))
		level := check.Should
		if i == 29 {
			level = check.Must
		}
		many = append(many, failing(r, check.Verdict{Check: fmt.Sprintf("rule.%c", 'a'+i), Level: level, Reason: "50 % off: a, b"}))
		u := result("example", fmt.Sprintf("u%02d/a", i))
		u.Status, u.Verdicts = check.Unknown, []check.Verdict{{Check: fmt.Sprintf("rule.%c", 'a'+i), Status: check.Unknown, Level: check.Must, Reason: "crashed"}}
		many = append(many, u)
	}
	report := fixed(Run{Level: check.Should, Clients: []ClientInfo{{Name: "example"}}}, many)
	for name, write := range map[string]func(io.Writer) error{
		"many":         func(w io.Writer) error { return WriteAnnotations(w, report) },
		"hostile":      func(w io.Writer) error { return WriteAnnotations(w, hostile()) },
		"hostile diff": func(w io.Writer) error { return WriteDiffAnnotations(w, hostileDiff(hostile())) },
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		count := map[string]int{}
		lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
		for _, l := range lines {
			m := command.FindStringSubmatch(l)
			if m == nil {
				t.Fatalf("%s: no command: %q", name, l)
			}
			count[m[1]]++
			if strings.ContainsAny(l, "\r\n") || strings.Contains(m[3], "% ") {
				t.Errorf("%s: not escaped: %q", name, l)
			}
		}
		if count["error"] == 0 || count["error"] > 10 || count["warning"] > 10 {
			t.Errorf("%s: %v", name, count)
		}
		if name != "many" {
			continue
		}
		if count["error"] != 10 || count["warning"] != 10 || !strings.Contains(lines[9], "21 more") {
			t.Errorf("%v, the tenth is %q", count, lines[9])
		}
		if want := "::error title=rule.~ · MUST · f29/a::50 %25 off: a, b%0A"; !strings.HasPrefix(lines[0], strings.Replace(want, "~", string(rune('a'+29)), 1)) {
			t.Errorf("the worst is not first: %q", lines[0])
		}
	}
}
