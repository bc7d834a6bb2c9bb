package scenarios

import (
	"fmt"
	"sort"
	"strings"
)

// A Problem is one thing that is wrong in a file.
type Problem struct {
	File string
	Line int // from 1; 0: the file as a whole
	Col  int // from 1, in characters
	Msg  string
	Near string // what was perhaps meant; "" for no idea
}

// String gives `file:line:col: message; did you mean "x"?`.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Col)
	}
	b.WriteString(": ")
	b.WriteString(p.Msg)
	if p.Near != "" {
		fmt.Fprintf(&b, "; did you mean %q?", p.Near)
	}
	return b.String()
}

// maxProblems bounds how many problems of one file are told.
const maxProblems = 100

// A LoadError holds every problem found in one or more files, in the order of their positions.
type LoadError struct {
	Problems []Problem
	Omitted  int // problems beyond the first hundred of a file
}

// Error gives one line a problem.
func (e *LoadError) Error() string {
	lines := make([]string, 0, len(e.Problems)+1)
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	if e.Omitted > 0 {
		lines = append(lines, fmt.Sprintf("… and %d more", e.Omitted))
	}
	return strings.Join(lines, "\n")
}

// newLoadError makes an error of the problems of one file; nil where there are none. The same problem at
// the same place is told once, however many scenarios of a matrix show it.
func newLoadError(problems []Problem) error {
	if len(problems) == 0 {
		return nil
	}
	sort.SliceStable(problems, func(i, j int) bool {
		a, b := problems[i], problems[j]
		if a.Line != b.Line {
			return a.Line < b.Line
		}
		return a.Col < b.Col
	})
	seen := make(map[Problem]bool, len(problems))
	e := &LoadError{}
	for _, p := range problems {
		switch {
		case seen[p]:
		case len(e.Problems) == maxProblems:
			e.Omitted++
		default:
			e.Problems = append(e.Problems, p)
		}
		seen[p] = true
	}
	return e
}

// An Issue is one thing that is wrong with a scenario, by the path of its field: "calls[0].after".
type Issue struct {
	Path string // "" for the scenario as a whole
	Msg  string
	Near string
}

// An InvalidError says what is wrong with a scenario that was written in Go.
type InvalidError struct {
	Scenario string
	Issues   []Issue
}

// Error gives one line an issue.
func (e *InvalidError) Error() string {
	name := e.Scenario
	if name == "" {
		name = "(no name)"
	}
	lines := make([]string, 0, len(e.Issues))
	for _, i := range e.Issues {
		where := "scenario " + name
		if i.Path != "" {
			where += ", " + i.Path
		}
		line := where + ": " + i.Msg
		if i.Near != "" {
			line += fmt.Sprintf("; did you mean %q?", i.Near)
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
