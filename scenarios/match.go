package scenarios

import (
	"fmt"
	"slices"
	"strings"

	"github.com/retrychaos/retrychaos/internal/nearest"
)

// A MatchError is a pattern that matches no scenario.
type MatchError struct {
	Pattern string
	Near    []string // names that were perhaps meant
}

func (e *MatchError) Error() string {
	msg := fmt.Sprintf("no scenario matches %q", clip(e.Pattern))
	if len(e.Near) > 0 {
		msg += "; did you mean " + oneOf(e.Near) + "?"
	}
	return msg
}

// Match returns the scenarios of list whose name matches one of the patterns, in the order of list. In a
// pattern `*` stands for any run of characters, '/' included, and `?` for one. Without patterns it returns
// the whole list. A pattern that matches nothing is a *MatchError.
func Match(list []Scenario, patterns ...string) ([]Scenario, error) {
	if len(patterns) == 0 {
		return list, nil
	}
	var out []Scenario
	hits := make([]bool, len(patterns))
	for _, s := range list {
		hit := false
		for i, p := range patterns {
			if Glob(p, s.Name) {
				hit, hits[i] = true, true
			}
		}
		if hit {
			out = append(out, s)
		}
	}
	for i, ok := range hits {
		if !ok {
			return nil, &MatchError{patterns[i], nearNames(patterns[i], list)}
		}
	}
	return out, nil
}

// Glob reports whether a name fits a pattern of Match. It works without recursion, so that a pattern of many stars
// costs no more than its length times that of the name.
func Glob(pattern, name string) bool {
	p, n := []rune(pattern), []rune(name)
	star, mark := -1, 0
	i, j := 0, 0
	for j < len(n) {
		switch {
		case i < len(p) && p[i] == '*':
			star, mark = i, j
			i++
		case i < len(p) && (p[i] == '?' || p[i] == n[j]):
			i++
			j++
		case star >= 0:
			mark++
			i, j = star+1, mark
		default:
			return false
		}
	}
	for i < len(p) && p[i] == '*' {
		i++
	}
	return i == len(p)
}

// nearNames returns up to three things that a pattern without a match was perhaps meant to be: a family,
// or names.
func nearNames(pattern string, list []Scenario) []string {
	word := strings.Trim(strings.NewReplacer("*", "", "?", "").Replace(pattern), "/")
	if word == "" || len(word) > 200 {
		return nil
	}
	family, rest, _ := strings.Cut(word, "/")
	var families, names []string
	for i := range list {
		f := list[i].Family()
		if !slices.Contains(families, f) {
			families = append(families, f)
		}
	}
	if near := nearest.Word(family, families); near != "" && (rest == "" || near != family) {
		return []string{near + "/*"}
	}
	limit := max(2, len(word)/4) + 1
	for _, s := range list {
		switch d := nearest.Distance(word, s.Name); {
		case d < limit:
			limit, names = d, append([]string{s.Name}, names...)
		case d == limit || strings.Contains(s.Name, word):
			names = append(names, s.Name)
		}
	}
	return names[:min(3, len(names))]
}
