package harness

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

// judge sets Status and Reason from the verdicts and findings: a fail at the level wins, then what is
// undecided, then what is known to fail, then pass. A scenario of which every check was skipped, or a failure
// is known, is skipped.
func (r *Result) judge(level check.Level) {
	var failed, unknown, known []string
	passed := false
	for _, v := range r.Verdicts {
		if v.Status == check.Pass {
			passed = true
		}
		if !v.Level.AtLeast(level) {
			continue
		}
		if v.Known {
			known = append(known, v.Check+": "+v.Reason)
		}
		switch v.Status {
		case check.Fail:
			failed = append(failed, v.Check+": "+v.Reason)
		case check.Unknown:
			unknown = append(unknown, v.Check+": "+v.Reason)
		}
	}
	for _, f := range r.Findings {
		unknown = append(unknown, f.Kind+": "+f.Text)
	}
	switch {
	case len(failed) > 0:
		r.Status, r.Reason = check.Fail, strings.Join(failed, "; ")
	case len(unknown) > 0:
		r.Status, r.Reason = check.Unknown, strings.Join(unknown, "; ")
	case len(known) > 0:
		r.Status, r.Reason = check.Skipped, strings.Join(known, "; ")
	case !passed:
		r.Status, r.Reason = check.Skipped, "no check applies"
	default:
		r.Status = check.Pass
	}
}

// Conclude sets Status and Reason from the verdicts and findings at a level, for a result that was put together by
// others.
func (r *Result) Conclude(level check.Level) { r.judge(level) }

// tooLate is a lateness that can turn a verdict: time-outs that no server caused, retries that come in a bunch because
// nobody ran before.
const tooLate = 100 * time.Millisecond

// Doubtful reports whether a result deserves a second run: it is not good, and this process was late for its own timers
// while it was measured, by more than a tenth of a second. That is no fault of the client. In virtual time no result is
// doubtful.
func (r *Result) Doubtful() bool {
	return (r.Status == check.Fail || r.Status == check.Unknown) && r.History != nil && r.History.Lateness > tooLate
}

// Recorded returns the history, so that a Result can be handed to the matchers.
func (r *Result) Recorded() *history.History { return r.History }

// Explain tells what went wrong at a level, for a person: each failed or undecided verdict with its rule,
// its source, and the timeline of the first call that shows it.
func (r *Result) Explain(level check.Level) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s, %s in the %s world: %s\n", r.Scenario, r.Client, r.World, r.Status)
	if r.Summary != "" {
		fmt.Fprintf(&b, "  %s\n", r.Summary)
	}
	for _, f := range r.Findings {
		fmt.Fprintf(&b, "\nharness (%s): %s\n", f.Kind, f.Text)
	}
	for _, v := range r.Verdicts {
		if (v.Status != check.Fail && v.Status != check.Unknown) || !v.Level.AtLeast(level) {
			continue
		}
		fmt.Fprintf(&b, "\n%s %s (%s): %s\n", v.Status, v.Check, v.Level, v.Reason)
		if rule := Holds(v.Check); rule != "" {
			fmt.Fprintf(&b, "  the rule: %s\n", rule)
		}
		if v.Source != "" {
			fmt.Fprintf(&b, "  its source: %s\n", v.Source)
		}
		for _, e := range v.Evidence {
			fmt.Fprintf(&b, "  %s\n", e)
		}
		if len(v.Calls) == 0 || r.History == nil {
			continue
		}
		if c := r.History.Call(v.Calls[0]); c != nil {
			for _, line := range r.History.Timeline(c) {
				fmt.Fprintf(&b, "    %s\n", line)
			}
		}
	}
	return b.String()
}

// ExpectID is the id of the check that holds a run against its scenario's own expectations.
const ExpectID = scenarios.ExpectRule

// Holds returns the rule of a check as a sentence: of a built-in one, of ExpectID or of KnownID; "" for others.
func Holds(id string) string {
	switch id {
	case ExpectID:
		return "the run is as the scenario's author expects"
	case KnownID:
		return "what is declared to fail does fail"
	}
	c, _ := check.Lookup(id)
	return c.Holds
}

// Expectations is the check of a scenario's own expect block, for those who judge a history by themselves.
func Expectations(s scenarios.Scenario) check.Check { return expectations(s) }

// expectations makes the scenario's expect block a check. Its level is SHOULD: the rules proper have
// checks of their own, and what an author expects beyond them is the author's.
func expectations(s scenarios.Scenario) check.Check {
	return check.Check{
		ID: ExpectID, Holds: Holds(ExpectID), Level: check.Should, Source: s.Source,
		Judge: func(h *history.History) check.Verdict { return expect(s.Expect, h) },
	}
}

func expect(e scenarios.Expect, h *history.History) check.Verdict {
	if e == (scenarios.Expect{}) {
		return check.Verdict{Status: check.Skipped, Reason: "the scenario has no expectations of its own"}
	}
	effects := map[string]int{}
	for _, x := range h.Effects {
		effects[x.Call]++
	}
	var calls, misses []string
	miss := func(c *history.Call, format string, args ...any) {
		misses = append(misses, c.ID+": "+fmt.Sprintf(format, args...))
		if !slices.Contains(calls, c.ID) {
			calls = append(calls, c.ID)
		}
	}
	for _, c := range h.Calls {
		n := len(c.Made())
		if e.OK != nil && c.Outcome.OK != *e.OK {
			miss(c, "success is %v, %v was expected", c.Outcome.OK, *e.OK)
		}
		if e.MinAttempts != nil && n < *e.MinAttempts {
			miss(c, "%d attempts, at least %d were expected", n, *e.MinAttempts)
		}
		if e.MaxAttempts != nil && n > *e.MaxAttempts {
			miss(c, "%d attempts, at most %d were expected", n, *e.MaxAttempts)
		}
		if e.MinEffects != nil && effects[c.ID] < *e.MinEffects {
			miss(c, "%d effects, at least %d were expected", effects[c.ID], *e.MinEffects)
		}
		if e.MaxEffects != nil && effects[c.ID] > *e.MaxEffects {
			miss(c, "%d effects, at most %d were expected", effects[c.ID], *e.MaxEffects)
		}
		if h.Declared.Process {
			continue // a process tells no more than whether it succeeded
		}
		if e.Status != nil && c.Outcome.Status != *e.Status {
			miss(c, "the caller sees status %d, %d was expected", c.Outcome.Status, *e.Status)
		}
		if e.Trait != "" && !h.Declared.Remote && !c.Outcome.Has(e.Trait) {
			miss(c, "the error does not show %q: %s", e.Trait, c.Outcome.Error)
		}
	}
	if len(misses) == 0 {
		return check.Verdict{Status: check.Pass, Reason: "as expected"}
	}
	return check.Verdict{Status: check.Fail, Reason: misses[0], Calls: calls, Evidence: misses[1:]}
}
