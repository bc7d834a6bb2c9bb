package peers_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
)

// versions/MODULE-VERSION.mod is go.mod with one client at an older version, so that two versions of it can be
// run and compared: it must be go.mod in all else.
func TestVersionsDifferInOneModule(t *testing.T) {
	files, err := filepath.Glob("versions/*.mod")
	if err != nil || len(files) == 0 {
		t.Fatalf("no versions: %v", err)
	}
	now := requirements(t, "go.mod")
	for _, file := range files {
		var differ []string
		old := requirements(t, file)
		for path, v := range old {
			if now[path] != v {
				differ = append(differ, fmt.Sprintf("%s %s, here %s", path, v, now[path]))
			}
		}
		if len(differ) != 1 || len(old) != len(now) {
			t.Errorf("%s differs from go.mod in %d of %d modules, want 1 of %d: %s\n"+
				"copy go.mod and go.sum over it and its .sum, then: go mod edit -require=MODULE@VERSION %[1]s && GOFLAGS=-mod=mod go build -modfile=%[1]s ./cmd/peers",
				file, len(differ), len(old), len(now), strings.Join(differ, "; "))
			continue
		}
		path, version, _ := strings.Cut(differ[0], " ")
		name := filepath.Base(path) + "-" + strings.TrimPrefix(strings.TrimSuffix(strings.Fields(version)[0], ","), "v") + ".mod"
		if filepath.Base(file) != name {
			t.Errorf("%s holds %s: it should be called %s", file, differ[0], name)
		}
	}
}

func requirements(t *testing.T, file string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	f, err := modfile.Parse(file, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, r := range f.Require {
		all[r.Mod.Path] = r.Mod.Version
	}
	return all
}
