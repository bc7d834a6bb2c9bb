package scenarios

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// The author's guide shows an example that loads and names every field.
func TestReadmeIsTrue(t *testing.T) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, example, _ := strings.Cut(string(text), "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	list, err := Load("README.md", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 4 || list[0].Name != "payments/lost-answer-honour-fresh" || *list[0].Expect.MaxEffects != 1 {
		t.Errorf("the example is not what the guide says: %d scenarios, %+v", len(list), list[0])
	}
	for _, v := range []any{fileDoc{}, fileScenario{}, fileCall{}, fileServer{}, fileCapacity{}, incident{}} {
		for _, name := range fieldNames(reflect.TypeOf(v)) {
			if !strings.Contains(string(text), "`"+name) {
				t.Errorf("the guide does not name the field %s", name)
			}
		}
	}
}
