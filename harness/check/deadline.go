package check

import (
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

// The call must be over by its deadline, within the slack of the world's clock, and no attempt may begin
// after it.
//
// To sleep until the deadline for a retry that the deadline does not allow (hashicorp/go-retryablehttp#272)
// keeps the promise and helps nobody: that is a finding of level SHOULD. It takes a sleep of more than a
// second that ends at the deadline with nothing on its way. A client of another
// process is not told of the deadline, or not in its own words, and is not held to that.
var timingDeadline = Check{
	ID:     "timing.deadline",
	Holds:  "a call ends by its deadline, begins no attempt after it and does not sleep until it in vain",
	Level:  Must,
	Source: "oracle/oci-go-sdk#133, hashicorp/go-retryablehttp#272",
	Judge:  judgeDeadline,
}

func judgeDeadline(h *history.History) Verdict {
	var late, slept breaches
	judged, excused := 0, 0
	for _, c := range h.Calls {
		if c.Deadline <= 0 {
			continue
		}
		if excusable(h, c, c.Deadline) {
			excused++
			continue
		}
		judged++
		ended := c.Ended
		after := 0
		var first *history.Attempt
		for _, a := range c.Attempts {
			if a.At > c.Deadline+slack(h) {
				after++
				if first == nil {
					first = a
				}
			}
		}
		switch {
		case after > 0:
			late.add(c, float64(first.At-c.Deadline)+1e3*float64(time.Second), "call %s began %s after its deadline, the first %s late",
				c.ID, plural(after, "attempt"), dur(first.At-c.Deadline))
		case !c.Returned && max(ended, h.End) > c.Deadline+slack(h):
			late.add(c, 1e6*float64(time.Second), "call %s never returned, %s after its deadline", c.ID, dur(max(ended, h.End)-c.Deadline))
		case !c.Returned:
			late.add(c, 1e5*float64(time.Second), "call %s had not returned when the harness gave it up, before its deadline", c.ID)
		case ended > c.Deadline+slack(h):
			late.add(c, float64(ended-c.Deadline), "call %s ended %s after its deadline", c.ID, dur(ended-c.Deadline))
		default:
			if d := vainSleep(h, c); d > idleSleep {
				slept.add(c, float64(d), "call %s slept for its last %s until its deadline, for a retry that could not happen", c.ID, dur(d))
			}
		}
	}
	switch {
	case judged == 0 && excused == 0:
		return skipped("no call had a deadline")
	case len(late) == 0 && excused > 0:
		return unknown("%s had not returned when the harness gave them up, and this machine was late by %s", plural(excused, "call"), dur(h.Lateness))
	case len(late) > 0:
		v := late.fail()
		for _, s := range slept[:min(len(slept), maxEvidence)] {
			v.Evidence = append(v.Evidence, s.text)
		}
		return v
	case len(slept) > 0:
		v := slept.fail()
		v.Level = Should
		return v
	}
	return pass("%s ended by %s, and none slept until then in vain", plural(judged, "call"), map[bool]string{true: "its deadline", false: "their deadlines"}[judged == 1])
}

// vainSleep returns how long the call had slept when its deadline ended it; 0 where something was on its
// way, or where something else ended it.
func vainSleep(h *history.History, c *history.Call) time.Duration {
	if h.Declared.Outside() || c.Outcome.OK || c.Ended < c.Deadline-h.Grain || c.Last() == nil {
		return 0
	}
	if c.CancelAt > 0 && c.CancelAt <= c.Deadline {
		return 0
	}
	return max(0, c.Deadline-c.LastActivity())
}
