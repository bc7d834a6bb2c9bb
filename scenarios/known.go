package scenarios

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/retrychaos/retrychaos/internal/nearest"
)

// ExpectRule is the id of the check that holds a run against its scenario's own expectations. No scenario
// names it as its rule.
const ExpectRule = "scenario.expect"

// A KnownFailure declares that a client fails a check in a scenario, and why that is accepted. It is a promise
// in both directions: what is declared to fail must fail.
type KnownFailure struct {
	Client   string `yaml:"client"`   // a name, or a pattern as Match takes it; "" is every client
	Scenario string `yaml:"scenario"` // likewise
	Check    string `yaml:"check"`    // the id of a check
	Reason   string `yaml:"reason"`   // why it is accepted; never empty
}

// Concerns reports whether k speaks of that client in that scenario.
func (k KnownFailure) Concerns(client, scenario string) bool {
	return (k.Client == "" || Glob(k.Client, client)) && Glob(k.Scenario, scenario)
}

// Names is what a file of known failures can speak of. What is nil is not looked at.
type Names struct {
	Clients   []string
	Scenarios []Scenario
}

// LoadKnownFailures reads a list of known failures: a mapping with the field known_failing, a list of client,
// scenario, check and reason. The name of the file is for messages. A pattern that matches none of names, an unknown
// check and a missing reason are errors: a declaration that says nothing would hide what it was made for. All that is
// wrong is told at once: the error is a *LoadError.
func LoadKnownFailures(name string, data []byte, names Names) ([]KnownFailure, error) {
	d, root, problems := read(name, data, "known_failing")
	if len(problems) > 0 {
		return nil, newLoadError(problems)
	}
	var doc struct {
		List []KnownFailure `yaml:"known_failing"`
	}
	d.value(root, reflect.ValueOf(&doc).Elem(), "")
	if len(doc.List) == 0 {
		d.issue(Issue{Path: "known_failing", Msg: "there is no list of known failures: leave the file out where there are none"})
	}
	seen := map[KnownFailure]int{}
	for i, k := range doc.List {
		at := func(field string) string { return fmt.Sprintf("known_failing[%d].%s", i, field) }
		if k.Client != "" && names.Clients != nil && !slices.ContainsFunc(names.Clients, func(n string) bool { return Glob(k.Client, n) }) {
			d.issue(Issue{Path: at("client"), Msg: fmt.Sprintf("no client is called %q", clip(k.Client)), Near: nearest.Word(k.Client, names.Clients)})
		}
		switch {
		case k.Scenario == "":
			d.issue(Issue{Path: at("scenario"), Msg: "there is no scenario: give a name or a pattern"})
		case names.Scenarios != nil:
			if _, err := Match(names.Scenarios, k.Scenario); err != nil {
				d.issue(Issue{Path: at("scenario"), Msg: err.Error()})
			}
		}
		if known := append(RuleIDs(), ExpectRule); !slices.Contains(known, k.Check) {
			d.issue(Issue{Path: at("check"), Msg: fmt.Sprintf("unknown check %q; want %s", clip(k.Check), oneOf(known)), Near: nearest.Word(k.Check, known)})
		}
		if strings.TrimSpace(k.Reason) == "" {
			d.issue(Issue{Path: at("reason"), Msg: "there is no reason: say why this failure is accepted"})
		}
		k.Reason = ""
		if first, ok := seen[k]; ok {
			d.issue(Issue{Path: at("check"), Msg: fmt.Sprintf("this is here twice: entry %d says it already", first+1)})
		} else {
			seen[k] = i
		}
	}
	if err := newLoadError(d.problems); err != nil {
		return nil, err
	}
	return doc.List, nil
}

// LoadKnownFailuresFile reads the known failures of a file.
func LoadKnownFailuresFile(name string, names Names) ([]KnownFailure, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := readBounded(name, f)
	if err != nil {
		return nil, err
	}
	return LoadKnownFailures(name, data, names)
}
