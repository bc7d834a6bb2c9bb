package harness

import (
	"fmt"
	"slices"
	"strings"

	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/scenarios"
)

// Recheck judges a stored result again, by the checks of this program, in the way in which a run is judged. The
// result that is returned shares its history with the old one, which is not changed.
//
// s is the scenario, for the expectations of its author; where it is nil, or a check is not built in, the old
// verdict is kept with a note. A failure that was known stays so. A result without a history keeps all of its
// verdicts; the second value is then false.
func Recheck(old Result, s *scenarios.Scenario, level check.Level) (Result, bool) {
	res := old
	res.Verdicts = slices.Clone(old.Verdicts)
	if old.History == nil {
		for i := range res.Verdicts {
			res.Verdicts[i] = kept(res.Verdicts[i], "no history was stored")
		}
		return res, false
	}
	rules := check.All()
	if s != nil {
		rules = append(rules, expectations(*s))
		res.Summary, res.Rule, res.Source, res.Drawn = s.Summary, s.Rule, s.Source, draws(*s)
	}
	res.decide(rules, func(r *Result) {
		for _, v := range old.Verdicts {
			at := slices.IndexFunc(r.Verdicts, func(x check.Verdict) bool { return x.Check == v.Check })
			switch {
			case at < 0 && v.Check == ExpectID:
				r.Verdicts = append(r.Verdicts, kept(v, "this program does not know the scenario"))
			case at < 0 && v.Check == KnownID:
				r.Verdicts = append(r.Verdicts, v)
			case at < 0:
				r.Verdicts = append(r.Verdicts, kept(v, "this program has no such check"))
			case v.Known && r.Verdicts[at].Status == check.Fail:
				x := &r.Verdicts[at]
				x.Status, x.Known = check.Skipped, true
				if strings.HasSuffix(v.Reason, x.Reason) {
					x.Reason = v.Reason // which tells why it is accepted
				} else {
					x.Reason = "known to fail: " + x.Reason
				}
			}
		}
	}, level)
	return res, true
}

func kept(v check.Verdict, why string) check.Verdict {
	note := fmt.Sprintf("not judged again: %s", why)
	if !slices.Contains(v.Notes, note) {
		v.Notes = append(slices.Clone(v.Notes), note)
	}
	return v
}

// decide judges the history by the rules, takes what is accepted into account, and sets the status.
func (r *Result) decide(rules []check.Check, accept func(*Result), level check.Level) {
	r.Status, r.Reason = "", ""
	r.Findings = r.History.Findings
	r.Verdicts = check.Judge(r.History, rules)
	accept(r)
	r.judge(level)
}
