// Package nearest finds the word that a mistyped one was meant to be, for error messages.
package nearest

import (
	"strings"
	"unicode/utf8"
)

// Word returns the word of list that text was perhaps meant to be, "" where none is near. Case and the
// difference of '-' and '_' do not count. A part of a word is near to the
// shortest word that holds it: "once" to "effects.once".
func Word(text string, list []string) string {
	if text == "" || len(text) > 80 {
		return ""
	}
	low := fold(text)
	limit := 3 // letters that may differ
	switch {
	case len(text) <= 2:
		limit = 1
	case len(text) <= 5:
		limit = 2
	}
	best, bestDist := "", limit+1
	letters := utf8.RuneCountInString(low)
	for _, w := range list {
		if n := utf8.RuneCountInString(w) - letters; n > limit || -n > limit {
			continue // each letter more or less is one that differs
		}
		if d := Distance(low, fold(w)); d < bestDist {
			best, bestDist = w, d
		}
	}
	if best != "" || len(low) < 4 {
		return best
	}
	for _, w := range list {
		if strings.Contains(fold(w), low) && (best == "" || len(w) < len(best)) {
			best = w
		}
	}
	return best
}

// Hint is Word as the end of a sentence: `; did you mean "x"?`, or nothing.
func Hint(text string, list []string) string {
	if w := Word(text, list); w != "" {
		return `; did you mean "` + w + `"?`
	}
	return ""
}

func fold(s string) string { return strings.ReplaceAll(strings.ToLower(s), "-", "_") }

// far is the distance of words whose lengths alone tell them apart.
const far = 99

// Distance is the optimal string alignment distance: a swap of neighbours counts one. Words that differ by
// more than eight letters in length are 99 apart.
func Distance(a, b string) int {
	ra, rb := []rune(a), []rune(b)
	if d := len(ra) - len(rb); d > 8 || d < -8 {
		return far
	}
	before, last, row := make([]int, len(rb)+1), make([]int, len(rb)+1), make([]int, len(rb)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(ra); i++ {
		row[0] = i
		for j := 1; j <= len(rb); j++ {
			cost := 1
			if ra[i-1] == rb[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && ra[i-1] == rb[j-2] && ra[i-2] == rb[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(rb)]
}
