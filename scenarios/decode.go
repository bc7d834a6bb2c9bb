package scenarios

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"github.com/retrychaos/retrychaos/internal/nearest"
)

// A decoder fills the file types from YAML nodes. It goes on after a problem, so that all are told at
// once, and remembers where every field stands, so that validation can say where too.
type decoder struct {
	file     *source
	suffix   string // added to messages: which scenario of a matrix
	problems []Problem
	pos      map[string]*yaml.Node // by path
	bad      map[string]bool       // paths that could not be read
}

// add reports a problem; of the scenarios of one matrix, only the first to show it.
func (d *decoder) add(line, col int, msg, near string) {
	p := Problem{d.file.name, line, col, msg, near}
	if d.suffix != "" {
		if d.file.told[p] {
			return
		}
		d.file.told[p] = true
	}
	d.problems = append(d.problems, Problem{d.file.name, line, col, msg + d.suffix, near})
}

func (d *decoder) fail(n *yaml.Node, path, near, format string, args ...any) {
	d.bad[path] = true
	d.add(n.Line, n.Column, fmt.Sprintf(format, args...), near)
}

// issue hands an issue found by validation on as a problem, unless its field could not be read.
func (d *decoder) issue(i Issue) {
	for p := range d.bad {
		if p == i.Path || strings.HasPrefix(p, i.Path+".") || strings.HasPrefix(p, i.Path+"[") ||
			strings.HasPrefix(i.Path, p+".") || strings.HasPrefix(i.Path, p+"[") {
			return
		}
	}
	path := i.Path
	n := d.pos[path]
	for n == nil && path != "" {
		path = path[:max(0, strings.LastIndexAny(path, ".["))]
		n = d.pos[path]
	}
	if n == nil {
		n = &yaml.Node{Line: 1, Column: 1}
	}
	d.add(n.Line, n.Column, i.Msg, i.Near)
}

// A scalar reads itself from a node, which may be of any kind.
type scalar interface {
	decode(d *decoder, n *yaml.Node, path string)
}

// value decodes n into v.
func (d *decoder) value(n *yaml.Node, v reflect.Value, path string) {
	d.pos[path] = n
	if isNull(n) {
		d.fail(n, path, "", "there is no value: give one or take the line out")
		return
	}
	if s, ok := v.Addr().Interface().(scalar); ok {
		s.decode(d, n, path)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		p := reflect.New(v.Type().Elem())
		d.value(n, p.Elem(), path)
		v.Set(p)
	case reflect.Struct:
		d.structure(n, v, path)
	case reflect.Slice:
		if n.Kind != yaml.SequenceNode {
			d.fail(n, path, "", "want a list, like [a, b], not %s", kindOf(n))
			return
		}
		out := reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content))
		for i, c := range n.Content {
			d.value(c, out.Index(i), fmt.Sprintf("%s[%d]", path, i))
		}
		if out.Len() > 0 {
			v.Set(out)
		}
	case reflect.String:
		if text, ok := d.text(n, path); ok {
			v.SetString(text)
		}
	case reflect.Bool:
		if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!bool" {
			d.fail(n, path, "", "want true or false, not %s", kindOf(n))
			return
		}
		v.SetBool(strings.EqualFold(n.Value, "true"))
	case reflect.Float64:
		f, err := strconv.ParseFloat(n.Value, 64)
		if n.Kind != yaml.ScalarNode || err != nil {
			d.fail(n, path, "", "want a number, not %s", kindOf(n))
			return
		}
		v.SetFloat(f)
	default:
		panic("scenarios: no way to decode " + v.Type().String())
	}
}

// structure decodes a mapping.
func (d *decoder) structure(n *yaml.Node, v reflect.Value, path string) {
	for _, f := range d.fields(n, v.Type(), path) {
		d.value(f.value, v.FieldByIndex(f.field.Index), f.path)
	}
}

// A fieldNode is a known field of a mapping with its value.
type fieldNode struct {
	name  string
	path  string
	field reflect.StructField
	value *yaml.Node
}

// fields matches the keys of a mapping with the fields of t and reports those that are unknown or double.
func (d *decoder) fields(n *yaml.Node, t reflect.Type, path string) []fieldNode {
	if n.Kind != yaml.MappingNode {
		d.fail(n, path, "", "want a mapping with fields like %q, not %s", fieldNames(t)[0]+":", kindOf(n))
		return nil
	}
	byName := map[string]reflect.StructField{}
	for i := range t.NumField() {
		byName[fieldName(t.Field(i))] = t.Field(i)
	}
	var out []fieldNode
	for _, kv := range d.pairs(n, path) {
		f, ok := byName[kv.key.Value]
		if !ok {
			near := nearest.Word(kv.key.Value, fieldNames(t))
			if near != "" {
				d.bad[join(path, near)] = true
			}
			d.add(kv.key.Line, kv.key.Column, fmt.Sprintf("there is no field %q here; the fields are %s",
				clip(kv.key.Value), strings.Join(fieldNames(t), ", ")), near)
			continue
		}
		out = append(out, fieldNode{kv.key.Value, join(path, kv.key.Value), f, kv.value})
	}
	return out
}

type pair struct{ key, value *yaml.Node }

// pairs returns the entries of a mapping and reports keys that are double or no plain text.
func (d *decoder) pairs(n *yaml.Node, path string) []pair {
	var out []pair
	seen := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		if k.Kind != yaml.ScalarNode || k.ShortTag() == "!!merge" {
			d.add(k.Line, k.Column, "a key must be a plain word; merge keys and complex keys are not used here", "")
			continue
		}
		if first := seen[k.Value]; first != nil {
			d.add(k.Line, k.Column, fmt.Sprintf("%q is here twice: it is already at %d:%d", clip(k.Value), first.Line, first.Column), "")
			continue
		}
		seen[k.Value] = k
		out = append(out, pair{k, n.Content[i+1]})
	}
	return out
}

// text returns the text of a scalar that YAML takes for text.
func (d *decoder) text(n *yaml.Node, path string) (string, bool) {
	if n.Kind != yaml.ScalarNode {
		d.fail(n, path, "", "want a text, not %s", kindOf(n))
		return "", false
	}
	if tag := n.ShortTag(); tag != "!!str" {
		d.fail(n, path, "", "want a text, and YAML takes %s for %s: put it in quotes", clip(n.Value), kindOf(n))
		return "", false
	}
	return n.Value, true
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a mapping"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias"
	}
	switch n.ShortTag() {
	case "!!int", "!!float":
		return "the number " + clip(n.Value)
	case "!!bool":
		return "the truth value " + clip(n.Value)
	case "!!null":
		return "nothing"
	case "!!timestamp":
		return "a date"
	}
	return strconv.Quote(clip(n.Value))
}

// clip shortens a text for a message.
func clip(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i] = fieldName(t.Field(i))
	}
	return names
}
