package check

import (
	"fmt"
	"strings"

	"github.com/retrychaos/retrychaos/harness/history"
)

// What counts is what the client could know, not what the ledger says: after a lost answer a repeat that
// happened to be harmless was a gamble all the same.
//
// A repeat is fine after an answer that says that nothing was done (4xx; a permanent one is the business of
// attempts.permanent-once), after a refused stream, and where nothing was sent: no connection was made, its TLS
// handshake failed, or it ended before the client had written anything to it.
// It is not after 5xx (503 included: a proxy may say it of a server that did the work), a broken exchange, a
// good answer or none at all. A call is licensed to repeat where the application asked for a key, knows the
// server to honour it, and the attempt carried one.
var attemptsUnsafeNotRepeated = Check{
	ID:     "attempts.unsafe-not-repeated",
	Holds:  "an unkeyed non-idempotent call is not repeated after a failure that leaves open whether it happened",
	Level:  Should, // "A client SHOULD NOT automatically retry a request with a non-idempotent method unless …"
	Source: "RFC 9110 §9.2.2, RFC 9113 §8.7",
	Judge:  judgeUnsafe,
}

func judgeUnsafe(h *history.History) Verdict {
	var bad breaches
	calls, met := 0, 0
	for _, c := range h.Calls {
		if c.Idempotent() || len(c.Attempts) == 0 {
			continue
		}
		unlicensed := false
		repeats, hidden := 0, 0
		var first *history.Attempt
		why := ""
		for i, a := range c.Attempts {
			if licensed(c, a) {
				continue
			}
			unlicensed = true
			what := ambiguous(a)
			if what == "" || (i == len(c.Attempts)-1 && c.Outcome.OK) {
				continue
			}
			met++
			if i == len(c.Attempts)-1 {
				continue
			}
			repeats++
			if c.Attempts[i+1].Hidden {
				hidden++
			}
			if first == nil {
				first, why = a, what
			}
		}
		if unlicensed {
			calls++
		}
		if first != nil {
			key := "without a key"
			switch {
			case c.Keyed && !c.KeyHonoured:
				key = "with a key that is not known to be honoured"
			case c.Keyed:
				key = "without the key that the application asked for"
			}
			bad.add(c, float64(repeats), "call %s (%s, %s) was repeated after attempt %d, which %s%s",
				c.ID, c.Method, key, first.N, why, hiddenRepeats(repeats, hidden))
		}
	}
	switch {
	case len(bad) > 0:
		return bad.fail()
	case calls == 0:
		return skipped("no non-idempotent call went without a key that is known to be honoured")
	case met == 0:
		return skipped("no unkeyed non-idempotent call met a failure that leaves open whether it happened")
	}
	return pass("%s, none repeated after %s that left open whether it happened", plural(calls, "unkeyed non-idempotent call"), plural(met, "failure"))
}

func hiddenRepeats(repeats, hidden int) string {
	s := ""
	if repeats > 1 {
		s = "; " + plural(repeats, "such repeat")
	}
	if hidden > 0 {
		s += "; " + plural(hidden, "repeat") + " by net/http inside one RoundTrip"
	}
	return s
}

// ambiguous says why a client could not know whether a was carried out, or returns "".
func ambiguous(a *history.Attempt) string {
	if a.Unsent || a.Unmet {
		return "" // no connection, no handshake, or nothing written when the connection ended
	}
	if a.FaultName == "close_at_accept" {
		// Inside net/http the end of the connection and the writing of the request are in a race. A verdict
		// that hangs on it would not be the same in the next run; accept_hang asks the same question without.
		return ""
	}
	if a.Unprocessed && a.Delivered || strings.Contains(strings.ToLower(a.Fault), "refused") {
		return "" // refused before it was processed: RFC 9113 §8.7
	}
	if a.Category == "decoding" && a.Delivered {
		return "" // the answer came: see attempts.permanent-once
	}
	switch {
	case a.Status == 0 && a.Fault != "" && a.Fault != "ok":
		return "ended without an answer (" + a.Fault + ")"
	case a.Status == 0:
		return "ended without an answer"
	case a.Status == 501 || a.Status == 505:
		return ""
	case a.Status >= 500:
		return "was answered with " + fmt.Sprint(a.Status)
	case a.Status/100 == 2 && a.Category == "transport":
		return "broke off in its answer (" + a.Fault + ")"
	case a.Status/100 == 2:
		return "had been carried out"
	}
	return ""
}
