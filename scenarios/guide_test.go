package scenarios

import (
	"os"
	"strings"
	"testing"
)

// The guide for authors of scenarios shows files that load, and parts that load within a file.
func TestGuideIsTrue(t *testing.T) {
	text, err := os.ReadFile("../docs/scenarios.md")
	if err != nil {
		t.Fatal(err)
	}
	const head = "family: f\nscenarios:\n  - summary: s\n    rule: body.intact\n    source: x\n"
	n := 0
	for part := range strings.SplitSeq(string(text), "```yaml\n") {
		example, _, ok := strings.Cut(part, "```")
		if n++; n == 1 || !ok {
			continue
		}
		if !strings.HasPrefix(example, "family:") {
			if !strings.Contains(example, "name:") {
				example = "name: n\n" + example
			}
			if !strings.Contains(example, "faults:") {
				example += "faults: [\"{fault}\"]\nconnection: \"{connection}\"\n"
			}
			example = head + "    " + strings.ReplaceAll(strings.TrimSuffix(example, "\n"), "\n", "\n    ") + "\n"
		}
		if _, err := Load("docs/scenarios.md", []byte(example)); err != nil {
			t.Errorf("%v in\n%s", err, example)
		}
	}
	if n < 4 {
		t.Errorf("%d examples were found", n-1)
	}
}
