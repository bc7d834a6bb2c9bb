package matchers

import (
	"fmt"
	"strings"

	"github.com/onsi/gomega/types"

	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
)

// HoldEvery matches a run that keeps every rule that applies to it. A floor leaves out findings of a lower
// level: HoldEvery(check.Must) lets a client be rude, but not wrong. Rules that do not apply are fine here,
// unless none does; an undecided one is an error, unless another one is broken.
func HoldEvery(floor ...check.Level) types.GomegaMatcher {
	m := &holdEvery{floor: check.May}
	switch len(floor) {
	case 0:
	case 1:
		m.floor = floor[0]
		if !m.floor.AtLeast(check.May) {
			m.misuse = fmt.Errorf("unknown level %q: %s, %s or %s", m.floor, check.Must, check.Should, check.May)
		}
	default:
		m.misuse = fmt.Errorf("HoldEvery takes one level, not %d", len(floor))
	}
	return m
}

type holdEvery struct {
	floor   check.Level
	misuse  error
	history *history.History
	broken  []broken
	kept    []string
}

type broken struct {
	check   check.Check
	verdict check.Verdict
}

func (m *holdEvery) Match(actual any) (bool, error) {
	if m.misuse != nil {
		return false, m.misuse
	}
	h, err := recorded(actual)
	if err != nil {
		return false, err
	}
	m.history, m.broken, m.kept = h, nil, nil
	var undecided []string
	checks := check.All()
	for i, v := range check.Judge(h, checks) {
		switch {
		case !v.Level.AtLeast(m.floor):
		case v.Status == check.Fail:
			m.broken = append(m.broken, broken{checks[i], v})
		case v.Status == check.Unknown:
			undecided = append(undecided, v.Check+": "+v.Reason)
		case v.Status == check.Pass:
			m.kept = append(m.kept, v.Check)
		}
	}
	switch {
	case len(m.broken) > 0:
		return false, nil
	case len(undecided) > 0:
		return false, fmt.Errorf("undecided: %s", strings.Join(undecided, "; "))
	case len(m.kept) == 0:
		return false, fmt.Errorf("no rule applies to this run")
	}
	return true, nil
}

func (m *holdEvery) FailureMessage(any) string {
	var b strings.Builder
	fmt.Fprintf(&b, "Expected %s to keep every rule, and it breaks %d:", subject(m.history), len(m.broken))
	for _, x := range m.broken {
		b.WriteString("\n\n" + tell(m.history, x.check, x.verdict))
	}
	return b.String()
}

func (m *holdEvery) NegatedFailureMessage(any) string {
	return fmt.Sprintf("Expected %s to break a rule, and it keeps all that apply: %s", subject(m.history), strings.Join(m.kept, ", "))
}
