package retry_test

import (
	"os/exec"
	"strings"
	"testing"
)

// The package itself can be used without a single dependency.
func TestStandardLibraryOnly(t *testing.T) {
	const self = "github.com/retrychaos/retrychaos/retry"
	out, err := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", self).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	if got := strings.Fields(string(out)); len(got) != 1 || got[0] != self {
		t.Errorf("imports beyond the standard library: %v", got)
	}
}
