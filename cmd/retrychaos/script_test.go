package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/retrychaos/retrychaos/cmd/retrychaos/cli"
	"github.com/retrychaos/retrychaos/reports"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"retrychaos": func() { cli.Main() }})
}

// TestScripts runs the command as a user does: one script a subject, in testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":     exits,
			"decisions": decisions,
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
