package matchers

import (
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/onsi/gomega/types"

	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
)

// carrier is what a result of a run is to the matchers.
type carrier struct{ h *history.History }

func (c *carrier) Recorded() *history.History { return c.h }

// charged is a run of one POST that was tried at those instants, committing each time.
func charged(at ...time.Duration) *history.History {
	c := &history.Call{ID: "c1", Group: "calls", Method: "POST", Path: "/charges/c1", Returned: true, Outcome: history.Outcome{OK: true, Status: 200}}
	h := &history.History{Scenario: "duplicates/reset", Client: "naive", World: "virtual", Grain: time.Millisecond,
		Calls: []*history.Call{c}, Leaks: history.Leaks{Known: true}}
	for i, t := range at {
		a := &history.Attempt{N: i + 1, At: t, Ended: t, Method: "POST", Fault: "ok", Status: 200, Delivered: true, Effect: i + 1}
		if i < len(at)-1 {
			a.Fault, a.FaultName, a.Category, a.Status = "connection_reset@after_commit", "connection_reset", "transport", 0
		}
		c.Attempts, c.Ended = append(c.Attempts, a), t
		h.Effects = append(h.Effects, history.Effect{N: i + 1, At: t, Call: "c1", Attempt: i + 1, Method: "POST"})
	}
	return h
}

func TestMatch(t *testing.T) {
	g := NewWithT(t)
	once, twice := charged(0), charged(0, time.Second)
	g.Expect(once).To(HaveNoDuplicateEffects())
	g.Expect(&carrier{once}).To(Hold("effects.once"))
	g.Expect(twice).NotTo(HaveNoDuplicateEffects())
	g.Expect(&carrier{twice}).NotTo(Hold("effects.once"))
	g.Expect(once).To(HoldEvery())
	g.Expect(once).To(HoldEvery(check.Must))
	g.Expect(twice).NotTo(HoldEvery())
	g.Expect(once).To(And(HaveNoDuplicateEffects(), ReleaseResources()))
}

func TestTheMessageTellsAll(t *testing.T) {
	m := HaveNoDuplicateEffects()
	h := charged(0, time.Second)
	if ok, err := m.Match(h); ok || err != nil {
		t.Fatalf("%v, %v", ok, err)
	}
	for _, want := range []string{
		"Expected naive in duplicates/reset (virtual world, seed 0) to keep this rule",
		"effects.once (MUST): a non-idempotent call has at most one effect",
		"source: RFC 9110 §9.2.2",
		"fail: call c1 (POST) had 2 effects, by attempts 1, 2",
		"timeline of c1:",
		"attempt 1: connection 0 fresh, connection_reset@after_commit, commits effect 1, no status",
		"1s after the failure",
		"the call succeeds, status 200",
	} {
		if got := m.FailureMessage(h); !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	if got := m.NegatedFailureMessage(h); !strings.Contains(got, "to break this rule") {
		t.Error(got)
	}
	all := HoldEvery()
	_, _ = all.Match(h)
	if got := all.FailureMessage(h); !strings.Contains(got, "breaks 2:") || !strings.Contains(got, "attempts.unsafe-not-repeated (SHOULD)") {
		t.Error(got)
	}
	good := HoldEvery()
	_, _ = good.Match(charged(0))
	if got := good.NegatedFailureMessage(nil); !strings.Contains(got, "keeps all that apply: effects.once") {
		t.Error(got)
	}
}

// TestTheLevelIsAFloor: a repeat after a lost answer that did no harm is rude, and not wrong.
func TestTheLevelIsAFloor(t *testing.T) {
	g := NewWithT(t)
	h := charged(0, time.Second)
	h.Effects = h.Effects[1:]
	g.Expect(h).NotTo(HoldEvery())
	g.Expect(h).NotTo(HoldEvery(check.Should))
	g.Expect(h).To(HoldEvery(check.Must))
}

// TestMisuse: what was not judged is an error, for To and NotTo alike.
func TestMisuse(t *testing.T) {
	unmeasured := charged(0)
	unmeasured.Leaks.Known = false
	for _, x := range []struct {
		name   string
		m      types.GomegaMatcher
		actual any
		want   string
	}{
		{"nil", Hold("effects.once"), nil, "not nil"},
		{"nil history", Hold("effects.once"), (*history.History)(nil), "has no history"},
		{"nil carrier", Hold("effects.once"), (*carrier)(nil), "is nil"},
		{"empty carrier", Hold("effects.once"), &carrier{}, "has no history"},
		{"wrong type", Hold("effects.once"), 42, "is wanted, not int"},
		{"wrong type for all", HoldEvery(), "x", "is wanted, not string"},
		{"a copy", Hold("effects.once"), history.History{}, "not a copy"},
		{"unknown id", Hold("timing.retryafter"), charged(0), `did you mean "timing.retry-after"?`},
		{"skipped", ObeyRetryAfter(), charged(0), "does not apply to this run: no attempt was answered with a Retry-After"},
		{"unknown", ReleaseResources(), unmeasured, "undecided: what the client left behind was not measured"},
		{"unknown among all", HoldEvery(), unmeasured, "undecided: resources.released"},
		{"unknown level", HoldEvery("SHALL"), charged(0), "unknown level"},
		{"two levels", HoldEvery(check.Must, check.May), charged(0), "one level"},
		{"no judge", HoldCheck(check.Check{ID: "mine"}), charged(0), "no Judge"},
	} {
		if ok, err := x.m.Match(x.actual); ok || err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v, %v", x.name, ok, err)
		}
	}
}

func TestHoldCheck(t *testing.T) {
	g := NewWithT(t)
	quick := check.Check{ID: "mine.quick", Holds: "calls are quick", Level: check.May, Judge: func(h *history.History) check.Verdict {
		if h.Calls[0].Ended > 0 {
			return check.Verdict{Status: check.Fail, Reason: "it was slow", Calls: []string{"c1"}}
		}
		return check.Verdict{Status: check.Pass, Reason: "it was quick"}
	}}
	g.Expect(charged(0)).To(HoldCheck(quick))
	g.Expect(charged(time.Second)).NotTo(HoldCheck(quick))
}

// TestEveryRuleHasItsSentence: a new check is not complete without one.
func TestEveryRuleHasItsSentence(t *testing.T) {
	got := map[string]bool{}
	for _, m := range []types.GomegaMatcher{
		HaveNoDuplicateEffects(), HaveNoPhantomEffects(), KeepAttemptsBounded(), AcceptPermanentAnswers(), RepeatOnlyWhatIsSafe(),
		KeepKeysStable(), KeepBodiesIntact(), ObeyRetryAfter(), GrowItsWaits(), SpreadItsRetries(), MeetDeadlines(), StopWhenCancelled(),
		TellTheLastRealFailure(), RecoverWhereSafe(), LetTheServerRecover(), ReleaseResources(),
	} {
		h, ok := m.(*hold)
		if !ok || h.misuse != nil {
			t.Fatalf("%+v", m)
		}
		got[h.check.ID] = true
	}
	for _, c := range check.All() {
		if !got[c.ID] {
			t.Errorf("%s has no sentence", c.ID)
		}
	}
}
