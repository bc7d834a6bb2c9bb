package harness

import (
	"fmt"
	"strings"

	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/scenarios"
)

// KnownID is the id of the check that holds a client's known failures against what happened. It is judged only
// where something was declared. Its level is SHOULD.
const KnownID = "client.known-failing"

// excuse turns the failures that are known into skipped verdicts, with the reason why they are accepted, and
// adds a verdict of its own: what is declared to fail must fail, or the declaration would hide the day on which it
// breaks again. What could not be judged stays unknown.
func (r *Result) excuse(list []scenarios.KnownFailure) {
	var declared int
	var surprises []string
	for _, k := range list {
		if !k.Concerns(r.Client, r.Scenario) {
			continue
		}
		declared++
		found := false
		for i := range r.Verdicts {
			v := &r.Verdicts[i]
			if v.Check != k.Check {
				continue
			}
			found = true
			switch {
			case v.Known: // by another pattern
			case v.Status == check.Fail:
				v.Status, v.Known = check.Skipped, true
				v.Reason = fmt.Sprintf("known to fail (%s): %s", k.Reason, v.Reason)
			case v.Status == check.Pass:
				surprises = append(surprises, fmt.Sprintf("%s passes, and is declared to fail: take the declaration out (its reason was: %s)", k.Check, k.Reason))
			case v.Status == check.Skipped:
				surprises = append(surprises, fmt.Sprintf("%s does not apply, and is declared to fail: take the declaration out (%s)", k.Check, v.Reason))
			}
		}
		if !found {
			surprises = append(surprises, fmt.Sprintf("there is no check %q, which is declared to fail", k.Check))
		}
	}
	if declared == 0 {
		return
	}
	v := check.Verdict{Check: KnownID, Level: check.Should, Status: check.Pass, Reason: "what is declared to fail does"}
	if len(surprises) > 0 {
		v.Status, v.Reason = check.Fail, strings.Join(surprises, "; ")
	}
	r.Verdicts = append(r.Verdicts, v)
}
