package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"sort"
	"strings"
	"unicode/utf8"

	yaml "go.yaml.in/yaml/v4"
)

const (
	maxFile  = 1 << 20 // bytes
	maxDepth = 32      // of nested lists and mappings
)

// A source is one file while it is being read.
type source struct {
	name  string
	lines []string
	moved map[*yaml.Node]bool // scalars whose text does not stand in the file as it is
	told  map[Problem]bool    // problems of a matrix that have been told for another of its scenarios

	runes   []rune // line number runesOf, in characters
	runesOf int

	expanded int // what the matrices have made so far; see maxExpanded
}

// A located scenario knows where its name stands, for messages about names that are used twice.
type located struct {
	Scenario
	file      string
	line, col int
}

// Load reads the scenarios of one file, in the order of the file, with their defaults filled in. The name
// of the file is for messages. All that is wrong is told at once: the error is a *LoadError.
func Load(name string, data []byte) ([]Scenario, error) {
	list, problems := load(name, data)
	problems = append(problems, doubles(list)...)
	if err := newLoadError(problems); err != nil {
		return nil, err
	}
	return bare(list), nil
}

// LoadFile reads the scenarios of a file.
func LoadFile(name string) ([]Scenario, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := readBounded(name, f)
	if err != nil {
		return nil, err
	}
	return Load(name, data)
}

// LoadDir reads the scenarios of all *.yaml files of a folder, sorted by name. Names must be unique over
// the whole folder.
func LoadDir(dir string) ([]Scenario, error) {
	return loadFS(os.DirFS(dir), dir)
}

// LoadFS reads the scenarios of all *.yaml files at the top of a file system, sorted by name. Names must
// be unique over all files.
func LoadFS(fsys fs.FS) ([]Scenario, error) {
	return loadFS(fsys, "")
}

func loadFS(fsys fs.FS, dir string) ([]Scenario, error) {
	files, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		// Glob hides errors of the folder itself.
		if _, err := fs.ReadDir(fsys, "."); err != nil {
			return nil, fmt.Errorf("folder %q: %w", dir, err)
		}
		return nil, fmt.Errorf("%s: there is no *.yaml file here", path.Join(filepath.ToSlash(dir), "."))
	}
	var (
		all  []located
		fail LoadError
	)
	keep := func(err error) error {
		var le *LoadError
		if errors.As(err, &le) {
			fail.Problems = append(fail.Problems, le.Problems...)
			fail.Omitted += le.Omitted
			return nil
		}
		return err
	}
	for _, file := range files {
		shown := filepath.Join(dir, file)
		data, err := openBounded(fsys, file, shown)
		if err == nil {
			list, problems := load(shown, data)
			all = append(all, list...)
			err = newLoadError(problems)
		}
		if err := keep(err); err != nil {
			return nil, err
		}
	}
	if err := keep(newLoadError(doubles(all))); err != nil {
		return nil, err
	}
	if len(fail.Problems) > 0 {
		return nil, &fail
	}
	list := bare(all)
	sort.Slice(list, func(i, j int) bool { return list[i].Name < list[j].Name })
	return list, nil
}

func openBounded(fsys fs.FS, file, shown string) ([]byte, error) {
	f, err := fsys.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readBounded(shown, f)
}

// readBounded reads no more than it must to know that a file is too big.
func readBounded(name string, r io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, tooBig(name)
	}
	return data, nil
}

func tooBig(name string) error {
	return &LoadError{Problems: []Problem{{File: name, Line: 1, Col: 1, Msg: "the file is over 1 MiB, which is more than a file can be here: split it"}}}
}

func bare(list []located) []Scenario {
	out := make([]Scenario, len(list))
	for i := range list {
		out[i] = list[i].Scenario
	}
	return out
}

// doubles finds names that are used more than once.
func doubles(list []located) []Problem {
	var problems []Problem
	first := map[string]located{}
	for _, l := range list {
		f, ok := first[l.Name]
		if !ok {
			first[l.Name] = l
			continue
		}
		problems = append(problems, Problem{File: l.file, Line: l.line, Col: l.col,
			Msg: fmt.Sprintf("the name %s is used twice: it is already at %s:%d:%d", l.Name, f.file, f.line, f.col)})
	}
	return problems
}

var familyName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

// load reads one file. What it returns is worth something only where there are no problems, but for the
// names, which are then checked for doubles all the same.
func load(name string, data []byte) ([]located, []Problem) {
	d, root, problems := read(name, data, "family and scenarios")
	if len(problems) > 0 {
		return nil, problems
	}
	return d.document(root)
}

// read parses a file of one document, and refuses what no file here uses. needs names what it cannot be without.
func read(name string, data []byte, needs string) (*decoder, *yaml.Node, []Problem) {
	src := &source{name: name, moved: map[*yaml.Node]bool{}, told: map[Problem]bool{}}
	one := func(line, col int, format string, args ...any) []Problem {
		return []Problem{{File: name, Line: line, Col: col, Msg: fmt.Sprintf(format, args...)}}
	}
	if len(data) > maxFile {
		var le *LoadError
		errors.As(tooBig(name), &le)
		return nil, nil, le.Problems
	}
	if line, col, what := badText(data); what != "" {
		return nil, nil, one(line, col, "%s", what)
	}
	src.lines = strings.Split(string(data), "\n")
	var docs []yaml.Node
	if err := yaml.Load(data, &docs, yaml.WithAllDocuments()); err != nil {
		return nil, nil, []Problem{src.syntax(err)}
	}
	if len(docs) == 0 || len(docs[0].Content) == 0 || isNull(docs[0].Content[0]) {
		return nil, nil, one(1, 1, "the file is empty: it needs %s", needs)
	}
	if len(docs) > 1 {
		return nil, nil, one(docs[1].Line, docs[1].Column, "a second document starts here: put it into a file of its own")
	}
	root := docs[0].Content[0]
	if p := src.forbidden(root, 0, nil); len(p) > 0 {
		return nil, nil, p
	}
	return &decoder{file: src, pos: map[string]*yaml.Node{}, bad: map[string]bool{}}, root, nil
}

// document decodes the top of a file.
func (d *decoder) document(root *yaml.Node) ([]located, []Problem) {
	var doc fileDoc
	var list *yaml.Node
	top := reflect.ValueOf(&doc).Elem()
	fields := d.fields(root, top.Type(), "")
	for _, f := range fields {
		if f.name == "scenarios" {
			list = f.value
			continue
		}
		d.value(f.value, top.FieldByIndex(f.field.Index), f.path)
	}
	if fields == nil && len(d.problems) > 0 {
		return nil, d.problems
	}
	if !familyName.MatchString(doc.Family) {
		d.pos[""] = root
		msg := "there is no family: give the name that comes before the slash"
		if doc.Family != "" {
			msg = fmt.Sprintf("the family %q is no word of lower-case letters, digits and '-'", clip(doc.Family))
		}
		d.issue(Issue{Path: "family", Msg: msg})
		doc.Family = "family"
	}
	switch {
	case list == nil:
		d.issue(Issue{Path: "scenarios", Msg: "there is no list of scenarios"})
		return nil, d.problems
	case list.Kind != yaml.SequenceNode && !isNull(list):
		d.add(list.Line, list.Column, "scenarios wants a list, not "+kindOf(list), "")
		return nil, d.problems
	case len(list.Content) == 0:
		d.add(list.Line, list.Column, "the list of scenarios is empty", "")
	}
	var out []located
	for _, n := range list.Content {
		nodes := d.expand(n)
		if len(out)+len(nodes) > maxScenarios {
			d.add(n.Line, n.Column, fmt.Sprintf("the file makes more than %d scenarios: split it", maxScenarios), "")
			break
		}
		if len(d.problems) > 10*maxProblems {
			break // more would not be told
		}
		for _, one := range nodes {
			if l, ok := d.scenario(one, doc.Family, len(nodes) > 1); ok {
				out = append(out, l)
			}
		}
	}
	return out, d.problems
}

// scenario decodes and validates one scenario.
func (d *decoder) scenario(n *yaml.Node, family string, many bool) (located, bool) {
	sub := &decoder{file: d.file, pos: map[string]*yaml.Node{}, bad: map[string]bool{}}
	var f fileScenario
	if many {
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == "name" {
				sub.suffix = fmt.Sprintf(" (in %s/%s)", family, n.Content[i+1].Value)
			}
		}
	}
	sub.value(n, reflect.ValueOf(&f).Elem(), "")
	if n.Kind != yaml.MappingNode {
		d.problems = append(d.problems, sub.problems...)
		return located{}, false
	}
	s := f.scenario(family)
	if f.Name == "" {
		s.Name = ""
	}
	s.Origin = fmt.Sprintf("%s:%d", d.file.name, n.Line)
	done := s
	if len(sub.problems) < maxProblems { // more would not be told
		var issues []Issue
		done, issues = complete(s)
		for _, i := range issues {
			sub.issue(i)
		}
	}
	d.problems = append(d.problems, sub.problems...)
	at := n
	if name := sub.pos["name"]; name != nil {
		at = name
	}
	return located{done, d.file.name, at.Line, at.Column}, f.Name != ""
}

// forbidden finds what a file of scenarios does not use: anchors and aliases, which can make a small file
// huge, tags, and nesting without end.
func (s *source) forbidden(n *yaml.Node, depth int, list []Problem) []Problem {
	if len(list) > maxProblems {
		return list
	}
	add := func(msg string) {
		list = append(list, Problem{File: s.name, Line: n.Line, Col: n.Column, Msg: msg})
	}
	switch {
	case depth > maxDepth:
		add(fmt.Sprintf("this is nested deeper than %d levels", maxDepth))
		return list
	case n.Kind == yaml.AliasNode:
		add(fmt.Sprintf("the alias *%s: aliases are not used here; write it out, or use a matrix", clip(n.Value)))
	case n.Anchor != "":
		add(fmt.Sprintf("the anchor &%s: anchors are not used here; write it out, or use a matrix", clip(n.Anchor)))
	case n.Style&yaml.TaggedStyle != 0:
		add(fmt.Sprintf("the tag %s: tags are not used here; take it out", clip(n.Tag)))
	}
	for _, c := range n.Content {
		list = s.forbidden(c, depth+1, list)
	}
	return list
}

// syntax turns an error of the YAML parser into a problem.
func (s *source) syntax(err error) Problem {
	p := Problem{File: s.name, Msg: "this is no YAML: " + err.Error()}
	var le *yaml.LoadError
	if !errors.As(err, &le) {
		return p
	}
	p.Msg = "this is no YAML: " + le.Message
	if le.ContextMsg != "" {
		p.Msg += " " + le.ContextMsg
	}
	p.Line, p.Col = le.Mark.Line, le.Mark.Column
	if p.Line > 0 && p.Line <= len(s.lines) {
		if r := []rune(s.lines[p.Line-1]); p.Col > 0 && p.Col <= len(r) && r[p.Col-1] == '\t' {
			p.Msg = "there is a tab where YAML wants spaces: indent with spaces"
		}
	}
	return p
}

// badText finds the first byte that no file of scenarios may hold.
func badText(data []byte) (line, col int, what string) {
	if bytes.HasPrefix(data, []byte{0xff, 0xfe}) || bytes.HasPrefix(data, []byte{0xfe, 0xff}) {
		return 1, 1, "the file is UTF-16: save it as UTF-8"
	}
	line, col = 1, 1
	for len(data) > 0 {
		r, n := utf8.DecodeRune(data)
		switch {
		case r == utf8.RuneError && n == 1:
			return line, col, fmt.Sprintf("the byte 0x%02x is no UTF-8: save the file as UTF-8", data[0])
		case r == '\r' && !bytes.HasPrefix(data, []byte("\r\n")):
			return line, col, "a carriage return without a line feed: end lines with a line feed"
		case r < ' ' && r != '\n' && r != '\r' && r != '\t', r >= 0x7f && r < 0xa0, r == 0x2028, r == 0x2029:
			return line, col, fmt.Sprintf("the control character U+%04X does not belong here", r)
		}
		data = data[n:]
		col++
		if r == '\n' {
			line, col = line+1, 1
		}
	}
	return 0, 0, ""
}
