//go:build unix

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/cmd/retrychaos/cli"
	"github.com/retrychaos/retrychaos/reports"
)

// TestHangingCommand: at its deadline a call's process is killed, with its children and theirs.
func TestHangingCommand(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	scenario := file("hang.yaml", `family: hang
about: a call with a short time
scenarios:
  - name: one
    summary: A POST has half a second.
    rule: timing.deadline
    source: oracle/oci-go-sdk#133
    calls: [{deadline: 500ms}]
`)
	pids := filepath.Join(dir, "pids")
	// A child of the command, a child of that one, and one that ignores what can be ignored.
	script := file("hang.sh", fmt.Sprintf(`sh -c 'echo $$ >>%[1]s; sleep 1000 & echo $! >>%[1]s; wait' &
trap '' TERM INT HUP
echo $$ >>%[1]s
sleep 1000
`, pids))
	out := filepath.Join(dir, "out")
	var stdout, stderr bytes.Buffer
	cli.Execute(t.Context(), []string{"run", "--exec", "sh " + script + " {url}", "--scenarios", scenario, "--out", out, "-q"}, &stdout, &stderr)

	f, err := os.Open(filepath.Join(out, reports.FileJSON))
	if err != nil {
		t.Fatalf("%v\n%s%s", err, &stdout, &stderr)
	}
	defer f.Close()
	r, err := reports.ReadJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	call := r.Results[0].History.Calls[0]
	if !call.Returned || call.Outcome.OK || !call.Outcome.Has("deadline") {
		t.Errorf("%+v", call.Outcome)
	}
	text, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	started := strings.Fields(string(text))
	if len(started) != 3 {
		t.Fatalf("%d processes were started: %s", len(started), text)
	}
	for _, pid := range started {
		n, err := strconv.Atoi(pid)
		if err != nil {
			t.Fatal(err)
		}
		// SIGKILL was sent before the call was over; the kernel takes a moment over it.
		for wait := time.Millisecond; alive(n); wait *= 2 {
			if wait > 4*time.Second {
				t.Fatalf("process %d lives on", n)
			}
			time.Sleep(wait)
		}
	}
}

// alive reports whether a process runs. One that has ended and that nobody has waited for does not.
func alive(pid int) bool {
	if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return !os.IsNotExist(err) || !procfs()
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z") && !strings.HasPrefix(after, "X")
}

func procfs() bool {
	_, err := os.Stat("/proc/self/stat")
	return err == nil
}
