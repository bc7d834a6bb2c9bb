package scenarios

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	yaml "go.yaml.in/yaml/v4"

	"github.com/retrychaos/retrychaos/internal/nearest"
)

const (
	maxMatrix    = 1_000 // scenarios of one matrix
	maxScenarios = 5_000 // scenarios of one file
	// maxExpanded bounds what the matrices of one file make, in bytes of text and 64 for each node, so that
	// a small file cannot become a huge one.
	maxExpanded = 16 << 20
)

var (
	placeholder = regexp.MustCompile(`\{[a-z][a-z0-9_-]*\}`)
	axisName    = regexp.MustCompile(`^[a-z][a-z0-9_-]*$`)
	axisWord    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]*$`)
)

// An axis is one dimension of a matrix.
type axis struct {
	name   string
	at     *yaml.Node
	values []axisValue
}

// An axisValue goes into the name as its word and everywhere else as its value.
type axisValue struct {
	word  string
	value *yaml.Node
}

// axes reads the mapping of a matrix; nil where it is no good.
func (d *decoder) axes(n *yaml.Node) []axis {
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 {
		d.add(n.Line, n.Column, "matrix wants a mapping from axis to values, like {keys: [honour, require]}", "")
		return nil
	}
	var list []axis
	size := 1
	for _, kv := range d.pairs(n, "matrix") {
		a := axis{name: kv.key.Value, at: kv.key}
		if !axisName.MatchString(a.name) || a.name == "call" {
			d.add(kv.key.Line, kv.key.Column, fmt.Sprintf("an axis needs a name of lower-case letters, digits, '-' and '_' other than call, not %q", clip(a.name)), "")
			continue
		}
		a.values = d.axisValues(kv.value)
		if len(a.values) == 0 {
			d.add(kv.value.Line, kv.value.Column, fmt.Sprintf("the axis %s has no values: give a list of words, or a mapping from word to value", a.name), "")
			continue
		}
		for _, v := range a.values {
			if !axisWord.MatchString(v.word) {
				d.add(v.value.Line, v.value.Column, fmt.Sprintf("%q cannot be part of a name: write the axis as a mapping from word to value", clip(v.word)), "")
			}
		}
		size *= len(a.values)
		if size > maxMatrix {
			d.add(n.Line, n.Column, fmt.Sprintf("the matrix makes more than %d scenarios: split it", maxMatrix), "")
			return nil
		}
		list = append(list, a)
	}
	return list
}

func (d *decoder) axisValues(n *yaml.Node) []axisValue {
	var out []axisValue
	switch n.Kind {
	case yaml.SequenceNode:
		for _, c := range n.Content {
			out = append(out, axisValue{c.Value, c})
		}
	case yaml.MappingNode:
		for _, kv := range d.pairs(n, "matrix") {
			out = append(out, axisValue{kv.key.Value, kv.value})
		}
	}
	return out
}

// expand makes one mapping node for every combination of a scenario's matrix. A scenario without one is
// left alone.
func (d *decoder) expand(n *yaml.Node) []*yaml.Node {
	if n.Kind != yaml.MappingNode {
		return []*yaml.Node{n}
	}
	rest := *n
	rest.Content = nil
	var matrix, name *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		switch k, v := n.Content[i], n.Content[i+1]; {
		case k.Value == "matrix" && matrix == nil:
			matrix = v
		case k.Value == "matrix":
			d.add(k.Line, k.Column, "a scenario has one matrix", "")
		default:
			if k.Value == "name" {
				name = v
			}
			rest.Content = append(rest.Content, k, v)
		}
	}
	if matrix == nil {
		return []*yaml.Node{n}
	}
	before := len(d.problems)
	axes := d.axes(matrix)
	if len(d.problems) == before {
		d.checkAxes(axes, name, &rest)
	}
	if len(d.problems) > before {
		return nil
	}
	out := []*yaml.Node{}
	at := make([]int, len(axes))
	for {
		chosen := make(map[string]axisValue, len(axes))
		for i, a := range axes {
			chosen[a.name] = a.values[at[i]]
		}
		one := rest
		one.Content = make([]*yaml.Node, len(rest.Content))
		for i := 0; i+1 < len(rest.Content); i += 2 {
			key := rest.Content[i]
			one.Content[i], one.Content[i+1] = key, d.substitute(rest.Content[i+1], chosen, key.Value == "name")
		}
		if d.file.expanded > maxExpanded {
			d.add(matrix.Line, matrix.Column, fmt.Sprintf("the matrices of the file make more than %d MiB: split it", maxExpanded>>20), "")
			return nil
		}
		out = append(out, &one)
		i := len(axes) - 1
		for ; i >= 0; i-- {
			if at[i]++; at[i] < len(axes[i].values) {
				break
			}
			at[i] = 0
		}
		if i < 0 {
			return out
		}
	}
}

// checkAxes makes sure that the name holds every axis, so that all scenarios have names of their own, and
// that every placeholder is an axis.
func (d *decoder) checkAxes(axes []axis, name *yaml.Node, n *yaml.Node) {
	names := make([]string, 0, len(axes))
	lists := map[string]bool{} // axes with a value that is no text
	for _, a := range axes {
		names = append(names, a.name)
		if name != nil && !strings.Contains(name.Value, "{"+a.name+"}") {
			d.add(a.at.Line, a.at.Column, fmt.Sprintf("the axis %s is not in the name, so that scenarios would share one: put {%s} into name", a.name, a.name), "")
		}
		for _, v := range a.values {
			lists[a.name] = lists[a.name] || v.value.Kind != yaml.ScalarNode
		}
	}
	var walk func(n *yaml.Node)
	walk = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode {
			for _, p := range placeholder.FindAllString(n.Value, -1) {
				word := p[1 : len(p)-1]
				switch {
				case word == "call":
				case !slices.Contains(names, word):
					d.add(n.Line, n.Column, fmt.Sprintf("%s is no axis of the matrix: there is %s", p, oneOf(names)), nearest.Word(word, names))
				case lists[word] && n != name && n.Value != p:
					d.add(n.Line, n.Column, fmt.Sprintf("%s stands for a list or a mapping, which cannot be part of a text", p), "")
				}
			}
		}
		for _, c := range n.Content {
			walk(c)
		}
	}
	walk(n)
}

// substitute copies n with its placeholders filled in. A scalar that is nothing but one placeholder
// becomes the value itself, whatever its kind. It stops copying beyond maxExpanded.
func (d *decoder) substitute(n *yaml.Node, chosen map[string]axisValue, words bool) *yaml.Node {
	if d.file.expanded += 64 + len(n.Value); d.file.expanded > maxExpanded {
		return n
	}
	if n.Kind == yaml.ScalarNode {
		if v, ok := chosen[strings.Trim(n.Value, "{}")]; ok && placeholder.FindString(n.Value) == n.Value && !words {
			d.file.expanded += weight(v.value)
			return v.value
		}
		text := placeholder.ReplaceAllStringFunc(n.Value, func(p string) string {
			v, ok := chosen[p[1:len(p)-1]]
			switch {
			case !ok:
				return p
			case d.file.expanded > maxExpanded:
				return ""
			}
			text := v.value.Value
			if words {
				text = v.word
			}
			d.file.expanded += len(text)
			return text
		})
		if text == n.Value {
			return n
		}
		c := *n
		c.Value = text
		d.file.moved[&c] = true
		return &c
	}
	c := *n
	c.Content = make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		c.Content[i] = d.substitute(child, chosen, words)
	}
	return &c
}

// weight is what a value adds to the size of a file.
func weight(n *yaml.Node) int {
	w := 64 + len(n.Value)
	for _, c := range n.Content {
		w += weight(c)
	}
	return w
}
