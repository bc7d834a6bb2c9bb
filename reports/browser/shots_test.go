package browser

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestShots takes pictures of a page for people to look at: RETRYCHAOS_PAGE is a report.html, RETRYCHAOS_SHOTS a
// folder, and RETRYCHAOS_VIEWS pairs of a name and a fragment, name=#fragment, one a line, where wanted with " then " and a script to run first.
func TestShots(t *testing.T) {
	file, dir := os.Getenv("RETRYCHAOS_PAGE"), os.Getenv("RETRYCHAOS_SHOTS")
	if file == "" || dir == "" {
		t.Skip("RETRYCHAOS_PAGE and RETRYCHAOS_SHOTS are not set")
	}
	p := openFile(t, findChromium(t), file)
	for view := range strings.Lines(os.Getenv("RETRYCHAOS_VIEWS")) {
		name, fragment, ok := strings.Cut(strings.TrimSpace(view), "=")
		if !ok {
			continue
		}
		for _, width := range []int64{1280, 390} {
			for _, scheme := range []string{"light", "dark"} {
				p.size(width, 900, scheme)
				fragment, script, _ := strings.Cut(fragment, " then ")
				p.navigate(fragment)
				if script != "" {
					eval[any](p, script+"; null")
				}
				p.shot(filepath.Join(dir, fmt.Sprintf("%s-%d-%s.png", name, width, scheme)))
			}
		}
	}
}
