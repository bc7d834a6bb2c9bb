package scenarios

import (
	"bytes"
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	yaml "go.yaml.in/yaml/v4"
)

var update = flag.Bool("update", false, "write schema.json anew")

func TestSchemaFileIsTrue(t *testing.T) {
	got, err := makeSchema()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("schema.json", got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("schema.json is old: go test ./scenarios -run TestSchemaFileIsTrue -update")
	}
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(Schema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// asJSON reads YAML the way an editor does that knows the JSON Schema.
func asJSON(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := yaml.Load(data, &v); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestLibraryFitsTheSchema(t *testing.T) {
	schema := compiled(t)
	files, err := fs.Glob(LibraryFS(), "*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		data, err := fs.ReadFile(LibraryFS(), f)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(asJSON(t, data)); err != nil {
			t.Errorf("%s: %v", f, err)
		}
	}
	for i, s := range mustLibrary(t) {
		if i%7 != 0 { // a sample: the round trip has shown that all load
			continue
		}
		text, err := Format(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(asJSON(t, text)); err != nil {
			t.Errorf("%s as formatted: %v\n%s", s.Name, err, text)
		}
	}
}

func TestSchemaRefuses(t *testing.T) {
	schema := compiled(t)
	const good = `family: a
scenarios:
  - {name: b, summary: c, rule: key.stable, source: d, calls: [{method: PUT, deadline: none, count: 2}], faults: ["503", ok, 429], expect: {attempts: 2..4, effects: 1}}
`
	if err := schema.Validate(asJSON(t, []byte(good))); err != nil {
		t.Fatalf("refuses what is good: %v", err)
	}
	for _, c := range []struct{ old, new string }{
		{"key.stable", "key.stabel"},
		{"rule: key.stable, ", ""},
		{"PUT", "PSOT"},
		{"none", "soon"},
		{"count: 2", "count: 0"},
		{`"503"`, `"hnag"`},
		{`"503"`, `"hang@after_comit"`},
		{`"503"`, `"299"`},
		{"2..4", "2-4"},
		{"summary: c", "sumary: c"},
		{"family: a", "family: [a]"},
		{"source: d", "source: d, worlds: [vitual]"},
		{"source: d", "source: d, server: {keys: honor}"},
		{"source: d", "source: d, server: {capacity: {workers: 1}}"},
		{"source: d", "source: d, server: {capacity: {workers: 1, service: 1s, full: 404}}"},
		{"source: d", "source: d, server: {incidents: [{do: stal}]}"},
		{"source: d", "source: d, server: {profile: strip}"},
		{"source: d", "source: d, server: {expiry: 24}"},
		{"source: d", "source: d, settle: 3"},
		{"source: d", "source: d, matrix: {}"},
	} {
		bad := strings.Replace(good, c.old, c.new, 1)
		if err := schema.Validate(asJSON(t, []byte(bad))); err == nil {
			t.Errorf("accepts %s for %s", c.new, c.old)
		}
	}
}
