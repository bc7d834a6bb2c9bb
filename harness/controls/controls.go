// Package controls holds clients that are wrong on purpose. A check that never failed proves nothing by
// passing, so each control breaks one rule, and the check of that rule must flag it; no other check may,
// unless the one fault cannot be had without the other. Then a green run means something.
//
// All controls are one small retry loop with a single part replaced. The loop as it is, Good, has no
// defect and passes every check: a second opinion beside the bundled client, with which it shares no code.
package controls

import (
	"path"
	"slices"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/scenarios"
)

// A Control is a client with a known defect.
type Control struct {
	Client harness.Client
	// Breaks is the id of the check that must flag it; "" for Good.
	Breaks string
	// Consequences are the ids of further checks that may fail, because this defect cannot be had without
	// them. Doc gives the reason.
	Consequences []string
	// Doc says what is wrong with it, in a sentence or two.
	Doc string
	// Shown are patterns (see path.Match) of the names of herd scenarios in which the defect shows. Herds
	// are costly, and Meets leaves the others out.
	Shown []string
}

// Good is the loop without a defect.
func Good() Control {
	return defect{
		name: "good",
		doc: "Has no known defect: four attempts, full jitter, one key a call, and nothing repeated that could " +
			"happen twice.",
		shown: []string{"*/*"},
		wrong: func(*policy) {},
	}.control()
}

// All returns every control that is wrong, by the rule that it breaks. Good is not among them.
func All() []Control {
	var all []Control
	for _, family := range [][]defect{
		effectDefects(), attemptDefects(), requestDefects(), retryAfterDefects(), backoffDefects(),
		spreadDefects(), loadDefects(), endDefects(), reportDefects(), resourceDefects(),
	} {
		for _, d := range family {
			all = append(all, d.control())
		}
	}
	return all
}

// Meets reports whether the control should be run through s: any scenario, but of the herds only those
// that Shown names.
func (c Control) Meets(s scenarios.Scenario) bool {
	return !Herd(s) || slices.ContainsFunc(c.Shown, func(pattern string) bool {
		ok, err := path.Match(pattern, s.Name)
		return ok && err == nil
	})
}

// herdSize is how many clients of their own make a herd.
const herdSize = 20

// Herd reports whether s is about many clients that fail together, or about the load of many calls.
func Herd(s scenarios.Scenario) bool {
	return s.Server.Capacity != nil || slices.ContainsFunc(s.Calls, func(g scenarios.Group) bool { return g.Fleet && g.Count >= herdSize })
}

// A Catch is what the checks made of a control over a number of scenarios.
type Catch struct {
	// By maps the id of each check that failed to the scenarios in which it did.
	By map[string][]string
	// Strays are the failures, as "LEVEL check in scenario: reason", of built-in checks that are neither Breaks
	// nor one of Consequences. A scenario's own expectations say the same again in other words and are
	// none.
	Strays []string
}

// Caught reports whether the check that the control breaks has failed at least once.
func (c Control) Caught(k Catch) bool { return len(k.By[c.Breaks]) > 0 }

// Review sorts the failed verdicts of a control's results.
func (c Control) Review(results []*harness.Result) Catch {
	k := Catch{By: map[string][]string{}}
	for _, r := range results {
		for _, v := range r.Verdicts {
			if v.Status != check.Fail {
				continue
			}
			k.By[v.Check] = append(k.By[v.Check], r.Scenario)
			if v.Check != c.Breaks && v.Check != harness.ExpectID && !slices.Contains(c.Consequences, v.Check) {
				k.Strays = append(k.Strays, string(v.Level)+" "+v.Check+" in "+r.Scenario+": "+v.Reason)
			}
		}
	}
	return k
}

// defect is a control in the making: one part of the policy, replaced.
type defect struct {
	name    string // without "control/"
	breaks  string
	follows []string
	doc     string
	shown   []string
	wrong   func(p *policy)
}

func (d defect) control() Control {
	p := good()
	d.wrong(&p)
	return Control{
		Client: harness.Client{
			Name:     "control/" + d.name,
			Declared: p.declared,
			New: func(env harness.Env) (harness.Caller, error) {
				var c harness.Caller = &client{policy: p, transport: env.Transport, seed: env.Seed, tokens: p.budget}
				if p.around != nil {
					c = p.around(c)
				}
				return c, nil
			},
		},
		Breaks:       d.breaks,
		Consequences: d.follows,
		Doc:          d.doc,
		Shown:        d.shown,
	}
}
