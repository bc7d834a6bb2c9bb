package check

import (
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

// A cancelled call makes no attempt any more and returns at once, from a sleep as from an exchange. "At
// once" is exact in virtual time; on a real clock it is what slack allows, never a tighter figure.
var timingCancel = Check{
	ID:     "timing.cancel",
	Holds:  "a cancelled call makes no further attempt and returns at once",
	Level:  Must,
	Source: "grafana/grafana-openapi-client-go#137, imroc/req#339",
	Judge:  judgeCancel,
}

func judgeCancel(h *history.History) Verdict {
	var bad breaches
	planned, judged, excused := 0, 0, 0
	for _, c := range h.Calls {
		if c.CancelAt <= 0 {
			continue
		}
		planned++
		if !c.Cancelled() {
			continue // it was over before
		}
		if excusable(h, c, c.CancelAt) {
			excused++
			continue
		}
		judged++
		after := 0
		var last time.Duration
		for _, a := range c.Attempts {
			if a.At > c.CancelAt+slack(h) {
				after++
				last = a.At
			}
		}
		ended := c.Ended
		if !c.Returned {
			ended = max(ended, h.End)
		}
		switch {
		case after > 0:
			bad.add(c, 1e6*float64(after)*float64(time.Second), "call %s made %s after it was cancelled, the last %s later",
				c.ID, plural(after, "attempt"), dur(last-c.CancelAt))
		case !c.Returned:
			bad.add(c, float64(ended-c.CancelAt), "call %s was cancelled and never returned", c.ID)
		case ended > c.CancelAt+slack(h):
			bad.add(c, float64(ended-c.CancelAt), "call %s returned %s after it was cancelled", c.ID, dur(ended-c.CancelAt))
		}
	}
	switch {
	case len(bad) > 0:
		return bad.fail()
	case planned == 0:
		return skipped("no call was cancelled")
	case excused > 0:
		return unknown("%s had not returned when the harness gave them up, and this machine was late by %s", plural(excused, "call"), dur(h.Lateness))
	case judged == 0:
		return skipped("%s ended before its cancellation", plural(planned, "call"))
	}
	return pass("%s %s cancelled: each returned at once and made no attempt after it", plural(judged, "call"), was(judged))
}
