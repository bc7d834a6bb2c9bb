package scenarios

import (
	"errors"
	"strings"
	"testing"
)

func TestLoadKnownFailures(t *testing.T) {
	list, err := Library()
	if err != nil {
		t.Fatal(err)
	}
	names := Names{Clients: []string{"mine", "yours"}, Scenarios: list}
	const entry = "  - {client: mine, scenario: 'duplicates/*', check: effects.once, reason: documented}\n"
	got, err := LoadKnownFailures("k.yaml", []byte("known_failing:\n"+entry), names)
	if err != nil || len(got) != 1 || got[0].Reason != "documented" {
		t.Fatalf("%+v, %v", got, err)
	}
	if k := got[0]; !k.Concerns("mine", list[0].Family()+"x") == k.Concerns("yours", "duplicates/x") || !k.Concerns("mine", "duplicates/x") {
		t.Errorf("%+v concerns the wrong ones", k)
	}
	for _, tt := range []struct{ name, text, want string }{
		{"empty", "", "k.yaml:1:1: the file is empty: it needs known_failing"},
		{"no list", "known_failing: []\n", "k.yaml:1:16: there is no list of known failures: leave the file out where there are none"},
		{"field", "known:\n" + entry, `k.yaml:1:1: there is no field "known" here; the fields are known_failing`},
		{"client", "known_failing:\n" + strings.Replace(entry, "mine", "mime", 1), `k.yaml:2:14: no client is called "mime"; did you mean "mine"?`},
		{"scenario", "known_failing:\n" + strings.Replace(entry, "duplicates/", "duplicate/", 1), `k.yaml:2:30: no scenario matches "duplicate/*"`},
		{"check", "known_failing:\n" + strings.Replace(entry, "effects.once", "effect.once", 1), `did you mean "effects.once"?`},
		{"reason", "known_failing:\n" + strings.Replace(entry, "documented", "' '", 1), "k.yaml:2:75: there is no reason: say why this failure is accepted"},
		{"twice", "known_failing:\n" + entry + entry, "k.yaml:3:53: this is here twice: entry 1 says it already"},
		{"anchor", "known_failing:\n  - &a {scenario: x}\n", "k.yaml:2:5: the anchor &a"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := LoadKnownFailures("k.yaml", []byte(tt.text), names)
			var le *LoadError
			if !errors.As(err, &le) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
		})
	}
}

// Whatever the file holds, it is a list or an error with positions.
func FuzzLoadKnownFailures(f *testing.F) {
	f.Add([]byte("known_failing:\n  - {client: a, scenario: 'b/*', check: effects.once, reason: c}\n"))
	f.Add([]byte("known_failing: [[], {}, ~, {check: 1}]\n"))
	f.Add([]byte("known_failing: {a: b}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := LoadKnownFailures("k.yaml", data, Names{})
		if err == nil {
			for _, k := range list {
				if k.Scenario == "" || k.Check == "" || strings.TrimSpace(k.Reason) == "" {
					t.Fatalf("accepted %+v", k)
				}
			}
			return
		}
		var le *LoadError
		if !errors.As(err, &le) || len(le.Problems) == 0 || list != nil {
			t.Fatalf("%d with %v", len(list), err)
		}
	})
}
