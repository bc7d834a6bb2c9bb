package reports

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
)

func TestColorWanted(t *testing.T) {
	for _, c := range []struct {
		flag     string
		env      map[string]string
		terminal bool
		want     bool
	}{
		{"auto", nil, true, true},
		{"auto", nil, false, false},
		{"", nil, true, true},
		{"always", nil, false, true},
		{"always", map[string]string{"NO_COLOR": "1"}, false, true},
		{"never", nil, true, false},
		{"never", map[string]string{"FORCE_COLOR": "1"}, true, false},
		{"auto", map[string]string{"NO_COLOR": "1"}, true, false},
		{"auto", map[string]string{"NO_COLOR": ""}, true, true},
		{"auto", map[string]string{"NO_COLOR": "1", "FORCE_COLOR": "1"}, true, false},
		{"auto", map[string]string{"FORCE_COLOR": "1"}, false, true},
		{"auto", map[string]string{"FORCE_COLOR": "0"}, true, false},
		{"auto", map[string]string{"FORCE_COLOR": "false"}, true, false},
		{"auto", map[string]string{"FORCE_COLOR": ""}, false, false},
		{"auto", map[string]string{"TERM": "dumb"}, true, false},
		{"auto", map[string]string{"TERM": "dumb", "FORCE_COLOR": "3"}, true, true},
	} {
		if got := ColorWanted(c.flag, func(k string) string { return c.env[k] }, c.terminal); got != c.want {
			t.Errorf("ColorWanted(%q, %v, terminal %v) = %v", c.flag, c.env, c.terminal, got)
		}
	}
}

func TestColorAddsNothing(t *testing.T) {
	for _, r := range []*Report{oneClient(), threeClients()} {
		var with, without bytes.Buffer
		if err := WriteTerminal(&with, r, TerminalOptions{Color: true}); err != nil {
			t.Fatal(err)
		}
		if err := WriteTerminal(&without, r, TerminalOptions{}); err != nil {
			t.Fatal(err)
		}
		stripped := with.String()
		for _, code := range []string{"0", "1", "2", red, green, yellow} {
			stripped = strings.ReplaceAll(stripped, "\x1b["+code+"m", "")
		}
		if stripped != without.String() {
			t.Error("without its colour the output differs from the plain one")
		}
		if strings.Contains(without.String(), "\x1b") {
			t.Error("the plain output has an escape sequence")
		}
	}
}

func TestTerminalWidth(t *testing.T) {
	for _, width := range []int{60, 80, 120} {
		var b bytes.Buffer
		if err := WriteTerminal(&b, oneClient(), TerminalOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(b.String(), "\n") {
			// What is to be pasted, and the two one-line sums, are not broken.
			if columns(line) > width && !strings.Contains(line, "reproduce") && !strings.Contains(line, "seed 42") &&
				!strings.Contains(line, "scenarios:") && len(strings.Fields(line)) > 2 {
				t.Errorf("width %d: %d columns: %s", width, columns(line), line)
			}
		}
	}
}

func TestManyClients(t *testing.T) {
	var run Run
	var results []harness.Result
	for i := range 30 {
		name := fmt.Sprintf("client-%02d", i)
		run.Clients = append(run.Clients, ClientInfo{Name: name})
		results = append(results, sample(name)...)
	}
	var b bytes.Buffer
	r := fixed(run, results)
	if err := WriteTerminal(&b, r, TerminalOptions{Width: 100}); err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(b.String(), "\nFailures")
	if n := strings.Count(head, "\n  scenario"); n != 3 {
		t.Errorf("%d blocks of columns, want 3:\n%s", n, head)
	}
	for _, line := range strings.Split(head, "\n")[1:] {
		if columns(line) > 100 {
			t.Errorf("%d columns: %s", columns(line), line)
		}
	}
	if !strings.Contains(b.String(), "more findings: see report.md or report.json") {
		t.Error("it is not said what was left out")
	}
}

func TestProgress(t *testing.T) {
	run := func(total int, o ProgressOptions) string {
		var b bytes.Buffer
		p := NewProgress(&b, total, o)
		var wg sync.WaitGroup
		for i := range total {
			wg.Go(func() {
				status := check.Pass
				if i == 0 {
					status = check.Fail
				}
				p.Done(fmt.Sprintf("duplicates/%d", i), status)
			})
		}
		wg.Wait()
		p.Close()
		return b.String()
	}
	if out := run(140, ProgressOptions{}); strings.Count(out, "\n") != 10 || !strings.HasSuffix(out, "140/140 scenarios · 1 failed\n") || strings.Contains(out, "\r") {
		t.Errorf("off a terminal: %q", out)
	}
	if out := run(3, ProgressOptions{}); strings.Count(out, "\n") != 3 {
		t.Errorf("few scenarios: %q", out)
	}
	if out := run(140, ProgressOptions{Quiet: true, Terminal: true}); out != "" {
		t.Errorf("quiet: %q", out)
	}
	out := run(140, ProgressOptions{Terminal: true, Width: 30})
	if strings.Contains(out, "\n") || !strings.HasPrefix(out, "\r1/140 scenarios") || !strings.HasSuffix(out, "\r\x1b[K") {
		t.Errorf("on a terminal: %q", out)
	}
	if out := run(0, ProgressOptions{Terminal: true}); out != "" {
		t.Errorf("nothing to do: %q", out)
	}
}
