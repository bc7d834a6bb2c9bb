// Package matchers has the checks as Gomega matchers, for people who write specs of their own:
//
//	Expect(result.History).To(HaveNoDuplicateEffects())
//	Expect(result.History).To(Hold("timing.retry-after"))
//	Expect(result.History).To(HoldEvery())
//	Expect(controlled.History).NotTo(ObeyRetryAfter())
//
// The actual value is a *history.History, or anything with a method Recorded() *history.History.
//
// A rule that holds matches, and one that is broken does not. Everything else is an error, for To and for
// NotTo alike: a wrong type, an unknown id, a rule that does not apply to that run (skipped), and a rule
// that the history cannot decide (unknown). So a spec is never green, in either direction, because nothing
// was judged.
package matchers

import (
	"fmt"
	"reflect"

	"github.com/onsi/gomega/types"

	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
)

// Hold matches a run that keeps the rule with that id.
func Hold(id string) types.GomegaMatcher {
	c, ok := check.Lookup(id)
	if !ok {
		return &hold{misuse: unknownID(id)}
	}
	return &hold{check: c}
}

// HoldCheck matches a run that keeps a rule of your own.
func HoldCheck(c check.Check) types.GomegaMatcher {
	if c.Judge == nil {
		return &hold{misuse: fmt.Errorf("the check %q has no Judge", c.ID)}
	}
	return &hold{check: c}
}

type hold struct {
	check   check.Check
	misuse  error
	history *history.History
	verdict check.Verdict
}

func (m *hold) Match(actual any) (bool, error) {
	if m.misuse != nil {
		return false, m.misuse
	}
	h, err := recorded(actual)
	if err != nil {
		return false, err
	}
	m.history = h
	m.verdict = check.Judge(h, []check.Check{m.check})[0]
	switch m.verdict.Status {
	case check.Pass:
		return true, nil
	case check.Fail:
		return false, nil
	case check.Skipped:
		return false, fmt.Errorf("rule %s does not apply to this run: %s", m.check.ID, m.verdict.Reason)
	}
	return false, fmt.Errorf("rule %s is undecided: %s", m.check.ID, m.verdict.Reason)
}

func (m *hold) FailureMessage(any) string {
	return "Expected " + subject(m.history) + " to keep this rule:\n" + tell(m.history, m.check, m.verdict)
}

func (m *hold) NegatedFailureMessage(any) string {
	return "Expected " + subject(m.history) + " to break this rule:\n" + tell(m.history, m.check, m.verdict)
}

// recorder is whatever carries a history.
type recorder interface{ Recorded() *history.History }

func recorded(actual any) (*history.History, error) {
	var h *history.History
	switch x := actual.(type) {
	case nil:
		return nil, fmt.Errorf("a history is wanted, not nil")
	case *history.History:
		h = x
	case recorder:
		if v := reflect.ValueOf(actual); v.Kind() == reflect.Pointer && v.IsNil() {
			return nil, fmt.Errorf("the %T is nil: it has no history", actual)
		}
		h = x.Recorded()
	case history.History:
		return nil, fmt.Errorf("give a *history.History, not a copy of one")
	default:
		return nil, fmt.Errorf("a *history.History, or something with a method Recorded() *history.History, is wanted, not %T", actual)
	}
	if h == nil {
		return nil, fmt.Errorf("the %T has no history", actual)
	}
	return h, nil
}
