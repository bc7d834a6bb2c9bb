package main

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/retrychaos/retrychaos/cmd/retrychaos/cli"
	"github.com/retrychaos/retrychaos/harness/driver/drivertest"
	"github.com/retrychaos/retrychaos/reports"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"retrychaos":  func() { cli.Main() },
		"interrupted": interrupted,
		"driver":      asDriver,
	})
}

// asDriver is a driver in the mode that its argument names.
func asDriver() {
	if err := os.Setenv(drivertest.Env, os.Args[1]); err != nil {
		panic(err)
	}
	drivertest.Main()
}

// TestScripts runs the command as a user does: one script a subject, in testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"decisions": decisions,
			"grow":      grow,
			"crlf":      crlf,
			"smaller":   smaller,
			"awaits":    awaits,
			"timeless":  timeless,
			"cut":       cut,
		},
	})
}

// exits runs a command that must end with that status: exits 2 retrychaos run --nonsense.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits STATUS COMMAND ARGS…")
	}
	err := ts.Exec(args[1], args[2:]...)
	status := "0"
	if err != nil {
		code, ok := err.(interface{ ExitCode() int })
		if !ok {
			ts.Fatalf("%v", err)
		}
		status = itoa(code.ExitCode())
	}
	if status != args[0] {
		ts.Fatalf("exit status %s, want %s", status, args[0])
	}
}

// decisions writes the server-side decisions of a report to a file: decisions REPORT FILE.
func decisions(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: decisions REPORT FILE")
	}
	r, err := reports.ReadJSON(strings.NewReader(ts.ReadFile(args[0])))
	ts.Check(err)
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	for _, res := range r.Results {
		ts.Check(enc.Encode([]any{res.Scenario, res.Decisions}))
	}
	if out.Len() < 1000 {
		ts.Fatalf("hardly any decision: %s", out.String())
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), out.Bytes(), 0o644))
}

func itoa(n int) string {
	if n < 0 {
		return "killed"
	}
	return string(rune('0' + n))
}

// grow lengthens a file by comment lines: grow FILE BYTES.
func grow(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: grow FILE BYTES")
	}
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	line := "# " + strings.Repeat("x", 61) + "\n"
	text := ts.ReadFile(args[0]) + strings.Repeat(line, n/len(line)+1)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}

// crlf gives a file the line ends of Windows.
func crlf(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: crlf FILE")
	}
	text := strings.ReplaceAll(ts.ReadFile(args[0]), "\n", "\r\n")
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text), 0o644))
}

// smaller fails if a file has that many bytes or more: smaller FILE BYTES.
func smaller(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: smaller FILE BYTES")
	}
	limit, err := strconv.Atoi(args[1])
	ts.Check(err)
	if n := len(ts.ReadFile(args[0])); n >= limit {
		ts.Fatalf("%s has %d bytes", args[0], n)
	}
}

// awaits waits until a file is there: awaits FILE.
func awaits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: awaits FILE")
	}
	for wait := time.Millisecond; ; wait *= 2 {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
		if wait > 10*time.Second {
			ts.Fatalf("%s does not come", args[0])
		}
		time.Sleep(wait)
	}
}

// times are what differs between two runs that are equal.
var times = regexp.MustCompile(`"(started|real_ns)": ?("[^"]*"|[0-9]+)`)

// timeless writes a report without its times: timeless REPORT FILE.
func timeless(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: timeless REPORT FILE")
	}
	text := ts.ReadFile(args[0])
	if !times.MatchString(text) {
		ts.Fatalf("%s has no times", args[0])
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(times.ReplaceAllString(text, `"$1":0`)), 0o644))
}

// cut writes the first half of a file: cut FILE OUT.
func cut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: cut FILE OUT")
	}
	text := ts.ReadFile(args[0])
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(text[:len(text)/2]), 0o644))
}
