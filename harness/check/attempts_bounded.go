package check

import (
	"fmt"

	"github.com/retrychaos/retrychaos/harness/history"
)

// EndlessAttempts is the number of attempts above which an undeclared client that only its deadline, its
// cancellation or the harness stopped counts as unbounded. The most patient defaults that we know of make
// 10 (urllib3, avast/retry-go); a client that bounds time instead of attempts, with growing waits, makes
// fewer than 20 in a quarter of an hour.
const EndlessAttempts = 20

// Attempts are counted on the wire. Those that net/http resends inside one RoundTrip are attempts as well:
// they load the server and can commit; they are named, because the client's author will not find them in a
// log of the client's own. Where a dial was refused the client's trips are more, and are counted instead.
// A 401 that was answered by one fresh token and one replay may take one attempt more, and so may each
// redirect: they are not retries.
var attemptsBounded = Check{
	ID:     "attempts.bounded",
	Holds:  "a call makes no more attempts than the client declares, and finitely many in any case",
	Level:  Must,
	Source: "RFC 9110 §9.2.2; HKUDS/nanobot#2760",
	Judge:  judgeBounded,
}

func judgeBounded(h *history.History) Verdict {
	var bad breaches
	most, hidden := 0, 0
	limit := h.Declared.MaxAttempts
	for _, c := range h.Calls {
		n := max(len(c.Made()), len(c.Trips))
		hid := c.HiddenAttempts()
		hidden += hid
		most = max(most, n)
		allowed := limit + freeAttempts(c)
		switch {
		case c.Capped:
			bad.add(c, 1e6+float64(n), "call %s reached the harness's cap after %s%s", c.ID, plural(n, "attempt"), hiddenClause(hid))
		case !c.Returned && n > EndlessAttempts:
			bad.add(c, 1e5+float64(n), "call %s was still trying when the harness gave it up after %s", c.ID, plural(n, "attempt"))
		case limit > 0 && n > allowed:
			bad.add(c, float64(n), "call %s made %s for at most %d%s", c.ID, plural(n, "attempt"), allowed, hiddenClause(hid))
		case limit == 0 && n > EndlessAttempts && stopped(h, c):
			bad.add(c, float64(n), "call %s made %s, and only its deadline or cancellation stopped it (more than %d count as endless)",
				c.ID, plural(n, "attempt"), EndlessAttempts)
		}
	}
	if len(bad) > 0 {
		return bad.fail()
	}
	var v Verdict
	if limit > 0 {
		v = pass("no call made more than %s for at most %d", plural(most, "attempt"), limit)
	} else {
		v = pass("no call made more than %s, and each ended by itself (no maximum is declared)", plural(most, "attempt"))
	}
	if hidden > 0 {
		v.Notes = []string{fmt.Sprintf("%s %s resent by net/http inside one RoundTrip, and counted", plural(hidden, "attempt"), was(hidden))}
	}
	return v
}

func hiddenClause(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %d of them resent by net/http inside one RoundTrip", n)
}

// freeAttempts counts attempts that are no retries: after a redirect, and one after a first 401.
func freeAttempts(c *history.Call) int {
	n, refreshed := 0, false
	for i, a := range c.Attempts {
		if i == len(c.Attempts)-1 {
			break
		}
		switch {
		case a.Redirect():
			n++
		case a.Status == 401 && !refreshed:
			n++
			refreshed = true
		}
	}
	return n
}

// stopped reports whether the call ran until it was ended from outside.
func stopped(h *history.History, c *history.Call) bool {
	return !c.Returned || c.Cancelled() || c.Deadline > 0 && c.Ended >= c.Deadline-h.Grain
}
