package driver

import (
	"bytes"
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const page = "../../docs/drivers.md"

// compiled returns the schema of one kind of line; "" for any.
func compiled(t *testing.T, kind string) *jsonschema.Schema {
	t.Helper()
	text, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	ref := "schema.json"
	if kind != "" {
		ref += "#/$defs/" + kind
	}
	s, err := c.Compile(ref)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func validates(t *testing.T, s *jsonschema.Schema, line string) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
	if err != nil {
		t.Fatalf("%s: %v", line, err)
	}
	return s.Validate(doc)
}

// TestSchemaHasEveryField: each field of a line is a property with the same name, and there are no others.
func TestSchemaHasEveryField(t *testing.T) {
	text, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs map[string]struct {
			Properties map[string]struct{ Enum []string }
		} `json:"$defs"`
	}
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	for kind, line := range map[string]any{"hello": Hello{}, "declared": Declared{}, "call": Request{}, "outcome": Outcome{},
		"cancel": cancelLine{}, "close": closeLine{}, "ping": pingLine{}} {
		typ := reflect.TypeOf(line)
		props := schema.Defs[kind].Properties
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if _, ok := props[name]; !ok {
				t.Errorf("%s: the schema lacks %s", kind, name)
			}
			delete(props, name)
		}
		for name := range props {
			t.Errorf("%s: the schema has %s, and the code does not", kind, name)
		}
	}
	if got := schema.Defs["outcome"].Properties; got != nil {
		if enum := strings.Join(kindsOf(t), " "); enum != strings.Join(Kinds, " ") {
			t.Errorf("kinds %s, want %s", enum, Kinds)
		}
	}
}

func kindsOf(t *testing.T) []string {
	t.Helper()
	s := compiled(t, "outcome").Properties["kind"].Enum
	var list []string
	for _, v := range s.Values {
		if v != "" {
			list = append(list, v.(string))
		}
	}
	return list
}

// TestSchemaAgreesWithTheParser: what one takes the other takes.
func TestSchemaAgreesWithTheParser(t *testing.T) {
	outcome, pong, greeting := compiled(t, "outcome"), compiled(t, "pong"), compiled(t, "hello")
	for _, line := range []string{
		`{"id":1,"ok":true}`, `{"id":1,"ok":true,"status":200,"body":"{}","attempts":2,"new":[]}`, `{"id":1,"ok":false}`,
		`{"id":1,"ok":false,"error":""}`, `{"id":1,"ok":false,"error":"x","kind":"reset"}`, `{"id":1,"ok":false,"error":"x","kind":"rest"}`,
		`{"id":1,"ok":false,"status":0}`, `{"id":1,"ok":false,"status":503}`, `{"id":1,"ok":true,"status":7}`, `{"id":1,"ok":true,"error":"x"}`,
		`{"id":"1","ok":true}`, `{"id":1,"ok":1}`, `{"ok":true}`, `{"id":1}`, `{"id":1,"ok":true,"attempts":-1}`, `{"id":1,"ok":true,"body":{}}`,
		`{"pong":1}`, `{"pong":"1"}`, `{}`, `[]`,
	} {
		_, err := parseAnswer([]byte(line))
		valid := validates(t, outcome, line) == nil || validates(t, pong, line) == nil
		if valid != (err == nil) {
			t.Errorf("%s: the schema says %v, the parser %v", line, valid, err)
		}
	}
	for _, line := range []string{
		hello(""), hello(`,"version":"1","policy":"p","cancels":true,"tls":true`), hello(`,"declared":{"jitter":"ful"}`),
		hello(`,"declared":{"max_attempts":-1}`), hello(`,"declared":{"max_delay_ms":1e12}`), hello(`,"declared":{"multiplier":1.5,"jitter":"full"}`),
		`{"protocol":"retrychaos.driver/v2","client":"x"}`, `{"protocol":"retrychaos.driver/v1"}`, `{"client":"x"}`, hello(`,"tls":"yes"`),
	} {
		_, err := ParseHello([]byte(line))
		if valid := validates(t, greeting, line) == nil; valid != (err == nil) {
			t.Errorf("%s: the schema says %v, the parser %v", line, valid, err)
		}
	}
	text := "x"
	for kind, lines := range map[string][]any{
		"call": {Request{ID: 1, Instance: 1, Headers: map[string]string{"A": "b"}, Body: &text, Key: "k", KeyHonoured: true, Idempotent: true, DeadlineMS: 1, CACert: "f"},
			Request{ID: 1, Instance: 1, Headers: map[string]string{}, BodyBase64: []byte{0xff}}},
		"cancel": {cancelLine{1}}, "close": {closeLine{1}}, "ping": {pingLine{1}},
	} {
		for _, l := range lines {
			line, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			if err := validates(t, compiled(t, kind), string(line)); err != nil {
				t.Errorf("%s: %v", line, err)
			}
		}
	}
}

// TestPage: each line of the examples in the page is one of the protocol.
func TestPage(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		for _, arrow := range []string{"→ ", "← "} {
			example, ok := strings.CutPrefix(strings.TrimSpace(line), arrow)
			if !ok {
				continue
			}
			n++
			if err := validates(t, compiled(t, ""), example); err != nil {
				t.Errorf("%s: %v", example, err)
			}
		}
	}
	if n < 8 {
		t.Errorf("%d examples in %s: all kinds of lines want one", n, page)
	}
	for _, k := range Kinds {
		if !strings.Contains(string(text), "`"+k+"`") {
			t.Errorf("%s does not name the kind %s", page, k)
		}
	}
}
