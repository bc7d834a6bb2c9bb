package reports

import (
	"bytes"
	"testing"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/scenarios"
)

// A baseline is a file of known failures that accepts just what failed.
func TestBaseline(t *testing.T) {
	hostile := "b: \"<x>\n- ~"
	r := fixed(Run{}, []harness.Result{
		result("a", "duplicates/one"),
		duplicated("a", "duplicates/two"),
		duplicated(hostile, "duplicates/two"),
	})
	var out bytes.Buffer
	if err := WriteBaseline(&out, r); err != nil {
		t.Fatal(err)
	}
	list, err := scenarios.LoadKnownFailures("baseline.yaml", out.Bytes(), scenarios.Names{})
	if err != nil {
		t.Fatalf("%v in\n%s", err, out.String())
	}
	if len(list) != 2 || list[0].Client != "a" || list[0].Scenario != "duplicates/two" || list[0].Check != "effects.once" {
		t.Errorf("%+v", list)
	}
	out.Reset()
	if err := WriteBaseline(&out, fixed(Run{}, []harness.Result{result("a", "duplicates/one")})); err != nil {
		t.Fatal(err)
	}
	if _, err := scenarios.LoadKnownFailures("baseline.yaml", out.Bytes(), scenarios.Names{}); err == nil {
		t.Error("an empty baseline loads as if it said something")
	}
}
