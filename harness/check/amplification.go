package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

const (
	// mostAmplified is how many attempts the calls of an outage may cost on average: gRPC allows no more for one call.
	mostAmplified = 5.0
	// littleAmplified is what clients may add to the load and still not be what keeps a server down: a budget of 10 %.
	littleAmplified = 1.1
	// loadCourse is how many lines of evidence tell the course of a run.
	loadCourse = 12
)

// Retries multiply the load of a server that fails because of its load. Once it spends its time on attempts whose
// clients have left, it stays down when the trigger has gone, for as long as the clients go on: a metastable failure.
// Jitter alone does not help, because it moves attempts and does not take any away; a retry budget does.
//
// It applies to servers with a capacity, where the calls alone are less than the server can do; the rules by which
// the server has recovered or collapsed are those of history.Load. A collapse is the clients' fault if they made more
// than 1.1 attempts a call from the beginning of the trigger on, and none where the server was never overloaded: calls
// fail for other reasons too. Where the server does recover, the calls that started in the
// meantime may have cost 5 attempts each on average: as many as gRPC allows for one call (gRFC A6).
var loadAmplification = Check{
	ID:     "load.amplification",
	Holds:  "retries do not keep an overloaded server down, and do not multiply its load without bound",
	Level:  Should,
	Source: "Bronson and others, Metastable Failures in Distributed Systems, HotOS 2021; Huang and others, OSDI 2022; gRFC A6",
	Judge:  judgeAmplification,
}

func judgeAmplification(h *history.History) Verdict {
	l, ok := h.Load()
	if !ok {
		return skipped("the server has no bound on its capacity")
	}
	if l.Calls < herd {
		return skipped("fewer than %d calls are no load", herd)
	}
	rate := h.Capacity.Rate()
	if l.Offered >= rate {
		return skipped("the calls alone, %.0f a second, are all that the server can do, %.0f a second", l.Offered, rate)
	}
	what := trigger(h)
	var v Verdict
	switch {
	case l.Recovery == history.Undecided:
		v = unknown("the load ended %s after %s, too early to tell whether the server recovers", dur(l.Took), what)
	case l.Recovery == history.Collapsed && l.After > littleAmplified && overloaded(l):
		v = fail("%s was over and the server stayed down: %.2f attempts a call kept it busy (%s)", what, l.After, never(l))
		v.Calls = costliest(h, l)
	case l.Recovery == history.Collapsed && l.After > littleAmplified:
		v = pass("calls failed, and not for load: the server never got more attempts than it can do, at %.2f attempts a call", l.After)
	case l.Recovery == history.Collapsed:
		v = pass("the server did not recover from %s, and it was not for retries: %.2f attempts a call", what, l.After)
	case l.Outage > mostAmplified:
		v = fail("until the server recovered from %s each call cost %.1f attempts on average, more than %.0f", what, l.Outage, mostAmplified)
		v.Calls = costliest(h, l)
	default:
		v = pass("the server recovered %s after %s, at %.2f attempts a call", dur(l.Took), what, l.After)
	}
	v.Evidence = loadEvidence(h, l)
	return v
}

// overloaded reports whether there was ever more to do than the server could: attempts beyond its rate, turned away,
// or worked on for clients that had left.
func overloaded(l history.Load) bool {
	return l.Overload > 0 || l.Wasted > 0 || slices.ContainsFunc(l.Seconds, func(s history.Second) bool { return s.Shed > 0 })
}

// trigger names what began the overload.
func trigger(h *history.History) string {
	if len(h.Triggers) == 0 {
		return "the start of all calls"
	}
	t := h.Triggers[0]
	s := fmt.Sprintf("the %s from %s to %s", t.What, dur(t.From), dur(t.To))
	if n := len(h.Triggers) - 1; n > 0 {
		s += fmt.Sprintf(" and %s", plural(n, "further incident"))
	}
	return s
}

func never(l history.Load) string {
	if l.Closed {
		return fmt.Sprintf("fewer than %.0f %% of the calls had succeeded after %s", 100*history.RecoveredShare, dur(l.Took))
	}
	return fmt.Sprintf("in %s fewer than %.0f %% of the calls succeeded again", dur(l.Took), 100*history.RecoveredShare)
}

// costliest names calls of the outage that failed, by their attempts.
func costliest(h *history.History, l history.Load) []string {
	var bad breaches
	for _, c := range h.Calls {
		if c.Started >= l.From && len(c.Attempts) > 1 {
			bad.add(c, float64(len(c.Attempts)), "")
		}
	}
	return bad.fail().Calls
}

func loadEvidence(h *history.History, l history.Load) []string {
	wasted := 0.0
	if l.Worked > 0 {
		wasted = 100 * l.Wasted.Seconds() / l.Worked.Seconds()
	}
	lines := []string{
		fmt.Sprintf("capacity %.0f attempts a second, queue %d; load %.0f calls a second", h.Capacity.Rate(), h.Capacity.Queue, l.Offered),
		fmt.Sprintf("%d attempts for %d calls; at worst %.1f a call, in the %s from %s on; at most %.0f attempts a second",
			l.Attempts, l.Calls, l.Peak, dur(history.LoadWindow), dur(l.PeakAt), l.PeakRate),
		fmt.Sprintf("%.0f %% of the work was for clients that had left; more attempts than capacity in %s", wasted, dur(l.Overload)),
	}
	step := max(1, (len(l.Seconds)+loadCourse-1)/loadCourse)
	for i := 0; i < len(l.Seconds); i += step {
		var sum history.Second
		for _, s := range l.Seconds[i:min(i+step, len(l.Seconds))] {
			sum.Calls, sum.Attempts, sum.Succeeded, sum.Shed = sum.Calls+s.Calls, sum.Attempts+s.Attempts, sum.Succeeded+s.Succeeded, sum.Shed+s.Shed
		}
		lines = append(lines, fmt.Sprintf("from %s: %d calls, %d attempts (%d turned away), %d calls succeeded",
			dur(time.Duration(i)*time.Second), sum.Calls, sum.Attempts, sum.Shed, sum.Succeeded))
	}
	return lines
}
