package serve

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

// sight is what a check has to know of the client's side before it can say more than "fail".
type sight int

const (
	// over: the calls are over. The rest is in the server's own record.
	over sight = iota
	// told: every call has its outcome. A failure shows in the server's record alone.
	told
	// toldOnly: as told, and calls without an outcome are left out: to them the check would take silence for a fact.
	toldOnly
	// toldAll: as told, and without all the outcomes there is nothing to judge.
	toldAll
	// unseen: it is about the inside of the client's process.
	unseen
)

// sights of the built-in checks. One that is not here, being new, is judged by outcomes only.
var sights = map[string]sight{
	"attempts.permanent-once":      over,
	"attempts.unsafe-not-repeated": over,
	"key.stable":                   over,
	"body.intact":                  over,
	"timing.backoff-grows":         over,
	"timing.spread":                over,
	"effects.once":                 told,
	"effects.no-phantom":           told,
	"attempts.bounded":             told,
	"timing.retry-after":           told,
	ruleDeadline:                   toldOnly,
	ruleCancel:                     toldOnly,
	ruleLastReal:                   toldOnly,
	"liveness.recovers":            toldOnly,
	"load.amplification":           toldAll,
	harness.ExpectID:               toldOnly,
	"resources.released":           unseen,
}

// Rules that depend on what the test does and tells.
const (
	ruleDeadline = "timing.deadline"
	ruleCancel   = "timing.cancel"
	ruleLastReal = "error.last-real"
)

// startsWithin is how late a call may start for what happens in time to strike it as planned.
const startsWithin = 5 * time.Second

// A verdict is what is to be said of a run up to now.
type verdict struct {
	Run      string            `json:"run"`
	Scenario string            `json:"scenario"`
	Rule     string            `json:"rule"`
	Source   string            `json:"source"`
	Client   string            `json:"client"`
	Seed     uint64            `json:"seed"`
	Status   check.Status      `json:"status"`
	Reason   string            `json:"reason"`
	Level    check.Level       `json:"level"`
	Final    bool              `json:"final"`   // nothing that is still to come can change it but an outcome
	Missing  []string          `json:"missing"` // calls without an outcome
	Verdicts []check.Verdict   `json:"verdicts"`
	Findings []history.Finding `json:"findings"`
	// Text tells it for a person, with the timelines of the calls that show what is wrong.
	Text string `json:"text"`
}

// judge judges what is there up to now. It changes nothing.
func (r *run) judge(level check.Level) verdict {
	h, missing := r.complete()
	r.mu.Lock()
	ended := r.ended
	traitsUnknown := map[string]bool{}
	for id, t := range r.told {
		traitsUnknown[id] = t.Traits == nil
	}
	r.mu.Unlock()

	j := judging{scenario: r.scenario, whole: h, told: without(h, missing), missing: missing, ended: ended, traitsUnknown: traitsUnknown}
	var list []check.Verdict
	for _, c := range append(check.All(), harness.Expectations(r.scenario)) {
		list = append(list, j.verdict(c))
	}
	v := verdict{Run: r.id, Scenario: r.scenario.Name, Rule: r.scenario.Rule, Source: r.scenario.Source, Client: r.client.Name, Seed: r.seed,
		Level: level, Final: ended || len(missing) == 0, Missing: missing, Verdicts: list, Findings: h.Findings}
	if v.Findings == nil {
		v.Findings = []history.Finding{}
	}
	res := harness.Result{Scenario: v.Scenario, Summary: r.scenario.Summary, Client: nameOr(v.Client), World: h.World,
		Verdicts: list, Findings: h.Findings, History: h}
	res.Conclude(level)
	v.Status, v.Reason, v.Text = res.Status, res.Reason, res.Explain(level)
	return v
}

func nameOr(name string) string {
	if name == "" {
		return "the client"
	}
	return name
}

// without is h without some of its calls.
func without(h *history.History, ids []string) *history.History {
	out := *h
	out.Calls = slices.DeleteFunc(slices.Clone(h.Calls), func(c *history.Call) bool { return slices.Contains(ids, c.ID) })
	out.Effects = slices.DeleteFunc(slices.Clone(h.Effects), func(e history.Effect) bool { return slices.Contains(ids, e.Call) })
	return &out
}

// judging is one judgement of a run.
type judging struct {
	scenario      scenarios.Scenario
	whole         *history.History
	told          *history.History // the calls that have an outcome
	missing       []string
	ended         bool
	traitsUnknown map[string]bool // by call: its outcome does not tell what can be found out of the error
}

// verdict is what a check says, as far as it can know.
func (j *judging) verdict(c check.Check) check.Verdict {
	s, ok := sights[c.ID]
	if !ok {
		s = toldOnly
	}
	v := check.Verdict{Check: c.ID, Level: c.Level, Source: c.Source}
	if s == unseen {
		return j.unless(c, v, check.Skipped, "the server sees what is on the wire, and not what the client leaves behind in its process")
	}
	h := j.whole
	switch {
	case s == toldOnly && len(j.told.Calls) == 0, s == toldAll && len(j.missing) > 0:
		v.Status, v.Reason = check.Unknown, "no outcome was reported for "+names(j.missing)
		return v
	case s == toldOnly:
		h = j.told
	case c.ID == "body.intact":
		h = doubtless(h, j.missing)
	}
	v = check.Judge(h, []check.Check{c})[0]
	switch c.ID {
	case ruleLastReal:
		v = j.seen(c, v)
	case harness.ExpectID:
		v = j.expected(v)
	}
	if v.Status == check.Fail || v.Status == check.Unknown {
		return v
	}
	switch {
	case len(j.missing) == 0:
	case s == over && !j.ended:
		return undecided(v, "%s may still be going on: report the outcome, or end the run", names(j.missing))
	case s != over:
		return undecided(v, "no outcome was reported for %s", names(j.missing))
	}
	if v.Status == check.Skipped {
		return j.skipped(c, v)
	}
	return v
}

// undecided is a verdict that has lost its ground.
func undecided(v check.Verdict, format string, args ...any) check.Verdict {
	why := fmt.Sprintf(format, args...)
	if v.Status == check.Fail {
		why += " (" + v.Reason + ")"
	}
	v.Status, v.Reason = check.Unknown, why
	return v
}

// unless gives a verdict that says nothing, and that is unknown where the scenario is about this very check: a run
// whose own rule was not judged is no pass.
func (j *judging) unless(c check.Check, v check.Verdict, status check.Status, why string) check.Verdict {
	v.Status, v.Reason = status, why
	if j.scenario.Rule == c.ID {
		v.Status = check.Unknown
	}
	return v
}

// skipped looks at what the test was to do for a check to apply.
func (j *judging) skipped(c check.Check, v check.Verdict) check.Verdict {
	switch c.ID {
	case ruleDeadline:
		return j.unless(c, v, check.Skipped, "no outcome tells the deadline that the client had (deadline_ms)")
	case ruleCancel:
		for _, g := range j.scenario.Calls {
			if g.CancelAfter > 0 && v.Reason == "no call was cancelled" {
				return undecided(v, "calls of the group %s are to be cancelled after %v, and no outcome tells that one was (cancelled_ms)", g.Name, g.CancelAfter)
			}
		}
	}
	return v
}

// seen takes back what is said of errors of which the test did not tell what can be found out. What is wrong with the
// others stands.
func (j *judging) seen(c check.Check, v check.Verdict) check.Verdict {
	if v.Status != check.Fail {
		return v
	}
	var doubtful []string
	for _, call := range j.told.Calls {
		if j.traitsUnknown[call.ID] && !call.Outcome.OK {
			doubtful = append(doubtful, call.ID)
		}
	}
	if sure := without(j.told, doubtful); len(sure.Calls) > 0 {
		if w := check.Judge(sure, []check.Check{c})[0]; w.Status == check.Fail {
			return w
		}
	}
	return undecided(v, "the outcome of %s does not tell what can be found out of the error (traits)", names(v.Calls))
}

// expected takes back what the author expected where the run was not as the author has it.
func (j *judging) expected(v check.Verdict) check.Verdict {
	if v.Status != check.Fail && v.Status != check.Pass {
		return v
	}
	for _, c := range j.told.Calls {
		if why := j.amiss(c); why != "" {
			return undecided(v, "call %s was not made as the scenario has it: %s", c.ID, why)
		}
	}
	if j.scenario.Expect.Trait != "" && slices.ContainsFunc(j.told.Calls, func(c *history.Call) bool { return j.traitsUnknown[c.ID] && !c.Outcome.OK }) {
		return undecided(v, "an outcome does not tell what can be found out of the error (traits)")
	}
	return v
}

// amiss says in what a call was not made as the scenario has it, as far as that can be seen.
func (j *judging) amiss(c *history.Call) string {
	group := j.scenario.Calls[slices.IndexFunc(j.scenario.Calls, func(g scenarios.Group) bool { return g.Name == c.Group })]
	first := c.Attempts
	switch {
	case len(first) == 0:
		return "no attempt arrived"
	case j.scenario.Connection == faults.Reused && !first[0].Reused:
		return "its first attempt came on a fresh connection, and the scenario has one that was warmed"
	case group.CancelAfter > 0 && c.CancelAt == 0 && c.Ended-c.Started >= group.CancelAfter:
		return fmt.Sprintf("it is to be cancelled after %v, and its outcome does not tell that it was (cancelled_ms)", group.CancelAfter)
	case timed(j.scenario) && group.After == "" && first[0].At > group.Start+time.Duration(group.Count)*group.Every+startsWithin:
		return fmt.Sprintf("it came %v after the run was made, when what the scenario has planned in time was over", first[0].At.Round(time.Millisecond))
	}
	return ""
}

// doubtless is h without the bodies that broke off of calls without an outcome: the application may have cancelled.
func doubtless(h *history.History, missing []string) *history.History {
	out := *h
	out.Calls = slices.Clone(h.Calls)
	for i, c := range out.Calls {
		if !slices.Contains(missing, c.ID) || !slices.ContainsFunc(c.Attempts, func(a *history.Attempt) bool { return a.BodyBroken }) {
			continue
		}
		one := *c
		one.Attempts = slices.Clone(c.Attempts)
		for k, a := range one.Attempts {
			if a.BodyBroken {
				b := *a
				b.BodyUnread = true
				one.Attempts[k] = &b
			}
		}
		out.Calls[i] = &one
	}
	return &out
}

// names lists a few calls.
func names(ids []string) string {
	const few = 5
	if len(ids) > few {
		return fmt.Sprintf("%s and %d more calls", strings.Join(ids[:few], ", "), len(ids)-few)
	}
	return strings.Join(ids, ", ")
}
