package scenarios

import (
	"errors"
	"strings"
	"testing"

	"github.com/retrychaos/retrychaos/internal/nearest"
)

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"a/b", "a/b", true}, {"a/b", "a/bc", false}, {"a*", "a/b", true}, {"*", "a/b", true}, {"a/?", "a/b", true},
		{"a/??", "a/b", false}, {"*/b", "a/b", true}, {"*b*c", "a/bxbc", true}, {"", "a/b", false}, {"**", "a/b", true},
		{"a?b", "a/b", true}, {"A/b", "a/b", false},
	} {
		if got := Glob(c.pattern, c.name); got != c.want {
			t.Errorf("Glob(%q, %q) = %v", c.pattern, c.name, got)
		}
	}
	// Whoever tries all the ways in which so many stars can be taken does not come back.
	if Glob(strings.Repeat("*a", 500)+"b", strings.Repeat("a", 5000)) {
		t.Error("many stars: there is no b")
	}
}

func TestMatch(t *testing.T) {
	list := mustLibrary(t)
	all, err := Match(list)
	if err != nil || len(all) != len(list) {
		t.Errorf("no pattern: %d, %v", len(all), err)
	}
	some, err := Match(list, "mistakes/*", "*no-limit*", "herd/storm-of-503")
	if err != nil || len(some) != 6 || some[0].Name != "herd/storm-of-503" {
		t.Errorf("got %d, %v", len(some), err)
	}
	for pattern, near := range map[string]string{
		"duplictes*":                     `no scenario matches "duplictes*"; did you mean duplicates/*?`,
		"herd/strom-of-503":              `no scenario matches "herd/strom-of-503"; did you mean herd/storm-of-503?`,
		"no-limit-on-attempts":           `no scenario matches "no-limit-on-attempts"; did you mean mistakes/no-limit-on-attempts?`,
		"":                               `no scenario matches ""`,
		"quite/another-thing-altogether": `no scenario matches "quite/another-thing-altogether"`,
	} {
		_, err := Match(list, "herd/*", pattern)
		var me *MatchError
		if !errors.As(err, &me) || err.Error() != near {
			t.Errorf("%q: got  %v\nwant %s", pattern, err, near)
		}
	}
}

func TestNearest(t *testing.T) {
	for word, want := range map[string]string{
		"effects.onc": "effects.once", "once": "effects.once", "PSOT": "", "": "", "key.stabel": "key.stable",
		strings.Repeat("x", 100): "", "something else": "",
	} {
		if got := nearest.Word(word, RuleIDs()); got != want {
			t.Errorf("nearest.Word(%q) = %q, want %q", word, got, want)
		}
	}
}
