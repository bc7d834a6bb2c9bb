package scenarios

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/retrychaos/retrychaos/faults"
)

// makeSchema makes schema.json from the types of the file form and from the catalogue of faults. It is in a
// test, so that the library that makes it is none that a user of this package depends on.
func makeSchema() ([]byte, error) {
	r := jsonschema.Reflector{
		Anonymous:      true,
		ExpandedStruct: true,
		FieldNameTag:   "yaml",
		Mapper:         scalarSchema,
		Namer:          func(t reflect.Type) string { return strings.ToLower(strings.TrimPrefix(t.Name(), "file")) },
		LookupComment:  docOf,
	}
	s := r.Reflect(fileDoc{})
	s.Title = "retrychaos scenarios"
	for _, def := range s.Definitions {
		for p := def.Properties.Oldest(); p != nil; p = p.Next() {
			p.Value = orPlaceholder(p.Value)
			if p.Value.Items != nil {
				p.Value.Items = orPlaceholder(p.Value.Items)
			}
		}
	}
	s.Definitions["placeholder"] = &jsonschema.Schema{Type: "string", Pattern: `\{[a-z][a-z0-9_-]*\}`,
		Description: "a value from the scenario's matrix"}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(s); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// docOf finds the line of a field in its doc tag.
func docOf(t reflect.Type, field string) string {
	if t.Kind() != reflect.Struct {
		return ""
	}
	f, _ := t.FieldByName(field)
	return f.Tag.Get("doc")
}

// orPlaceholder lets an axis of a matrix stand where a value is wanted. Plain text can hold one anyway.
func orPlaceholder(s *jsonschema.Schema) *jsonschema.Schema {
	if s.Type == "string" && s.Pattern == "" && s.Enum == nil || s.Type == "object" && s.Properties == nil && s.AdditionalProperties != nil && s.PropertyNames != nil {
		return s
	}
	if s.Type == "array" && s.Items != nil {
		s.Items = orPlaceholder(s.Items)
	}
	out := &jsonschema.Schema{Description: s.Description,
		AnyOf: []*jsonschema.Schema{s, {Ref: "#/$defs/placeholder"}}}
	s.Description = ""
	return out
}

// scalarSchema gives the schemas of the scalars that have a form of their own.
func scalarSchema(t reflect.Type) *jsonschema.Schema {
	word := func(list []string) *jsonschema.Schema {
		s := &jsonschema.Schema{Type: "string"}
		for _, w := range list {
			s.Enum = append(s.Enum, w)
		}
		return s
	}
	number := func(least, most json.Number) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "integer", Minimum: least, Maximum: most}
	}
	text := func(pattern string) *jsonschema.Schema {
		return &jsonschema.Schema{Type: "string", Pattern: pattern}
	}
	either := func(list ...*jsonschema.Schema) *jsonschema.Schema {
		return &jsonschema.Schema{AnyOf: list}
	}
	const durations = `([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+`
	switch t {
	case reflect.TypeFor[ruleID]():
		return word(RuleIDs())
	case reflect.TypeFor[world]():
		return word(worlds())
	case reflect.TypeFor[connState]():
		return word(connStates())
	case reflect.TypeFor[keyMode]():
		return word(keyModes())
	case reflect.TypeFor[protocol]():
		return word(protocols())
	case reflect.TypeFor[tokenMode]():
		return word(tokenModes())
	case reflect.TypeFor[size]():
		return either(text("^[0-9]+(KiB|MiB)?$"), number("1", ""))
	case reflect.TypeFor[keyProfile]():
		return word(profiles())
	case reflect.TypeFor[method]():
		return word(Methods())
	case reflect.TypeFor[trait]():
		return word(Traits())
	case reflect.TypeFor[count]():
		return number("1", "100000")
	case reflect.TypeFor[status]():
		return number("200", "599")
	case reflect.TypeFor[duration]():
		return either(text("^"+durations+"$"), number("0", "0"))
	case reflect.TypeFor[deadline]():
		return text("^(none|" + durations + ")$")
	case reflect.TypeFor[span]():
		return either(number("0", ""), text(`^([0-9]+\.\.[0-9]*|\.\.[0-9]+)$`))
	case reflect.TypeFor[fault]():
		phases := []string{string(faults.BeforeCommit), string(faults.AfterCommit), string(faults.CommitLate)}
		return either(number("300", "599"), text(`^[ \t]*(`+strings.Join(append(faults.Names(), faults.OK, "[345][0-9][0-9]"), "|")+
			`)(@(`+strings.Join(phases, "|")+`))?([ \t].*)?$`))
	case reflect.TypeFor[header]():
		line := &jsonschema.Schema{Type: "string"}
		return &jsonschema.Schema{Type: "object",
			AdditionalProperties: either(line, &jsonschema.Schema{Type: "array", Items: line})}
	case reflect.TypeFor[fileMatrix]():
		one := uint64(1)
		return &jsonschema.Schema{Type: "object", MinProperties: &one,
			PropertyNames: text(axisName.String()),
			AdditionalProperties: either(&jsonschema.Schema{Type: "array", MinItems: &one},
				&jsonschema.Schema{Type: "object", MinProperties: &one})}
	}
	return nil
}
