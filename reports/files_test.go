package reports_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/reports"
)

// TestPrepare makes the folder and leaves it empty, or says what is in the way.
func TestPrepare(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	for range 2 { // a folder that is there will do as well
		if err := reports.Prepare(dir); err != nil {
			t.Fatal(err)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{file, filepath.Join(file, "below")} {
		if err := reports.Prepare(path); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestSay: a line between two drawings stands by itself, and is told where the progress is not.
func TestSay(t *testing.T) {
	var b bytes.Buffer
	p := reports.NewProgress(&b, 10, reports.ProgressOptions{Terminal: true})
	p.Done("a/b", check.Pass)
	p.Say("stop")
	if !strings.HasSuffix(b.String(), "a/b\x1b[K\r\x1b[Kstop\n") {
		t.Errorf("%q", b.String())
	}
	b.Reset()
	reports.NewProgress(&b, 10, reports.ProgressOptions{Quiet: true}).Say("stop")
	if b.String() != "stop\n" {
		t.Errorf("%q", b.String())
	}
}
