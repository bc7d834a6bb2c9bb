package check

import (
	"fmt"

	"github.com/retrychaos/retrychaos/harness/history"
)

// A permanent answer does not change by asking again: 4xx, 501, 505, and a reply that came whole and could
// not be decoded. These invite a repeat and are no permanent answers: 408, 425, 429; 421 (another
// connection); 417 in place of a 100 (without Expect); 409 while an earlier attempt with the key is at work; 413 and 403 with a Retry-After (a
// second rate limit, octokit/plugin-throttling.js#566); the first 401 (one fresh token, one replay).
//
// So is a server that is not who it should be: a certificate that must not be accepted (untrusted, expired, for
// another name) is as bad the next time, and a client that asks for ever hides an attack
// (hashicorp/go-retryablehttp#176, kurin/blazer#80). So, too, is a name that does not exist, since resolvers
// remember that (RFC 2308 §5); but some names are about to exist, and so that is a finding of level SHOULD.
// Alerts (handshake_failure, protocol_version) say less: another server behind the name may have another
// configuration. To repeat them is neither asked for nor forbidden.
//
// Only what began after the permanent answer was over counts: a hedge that was already under way does not.
var attemptsPermanentOnce = Check{
	ID:     "attempts.permanent-once",
	Holds:  "a permanent answer ends the call: it is not asked for again",
	Level:  Must,
	Source: "RFC 9110 §15.5, §15.6, §4.3.4; RFC 2308 §5",
	Judge:  judgePermanentOnce,
}

func judgePermanentOnce(h *history.History) Verdict {
	var bad, weak breaches
	met := 0
	kinds := make(map[string]bool)
	for _, c := range h.Calls {
		refreshed := false
		made := c.Made()
		for i, a := range made {
			what := permanent(a, refreshed)
			refreshed = refreshed || a.Status == 401
			if what == "" {
				continue
			}
			met++
			kinds[what] = true
			after := 0
			for _, b := range made[i+1:] {
				if b.At >= a.Ended-h.Grain {
					after++
				}
			}
			if after == 0 {
				continue
			}
			list, how := &bad, "been answered with"
			if a.Connection {
				how = "met"
			}
			if a.FaultName == "dns_not_found" {
				list = &weak
			}
			list.add(c, float64(after), "call %s made %s after attempt %d had %s %s", c.ID, plural(after, "further attempt"), a.N, how, what)
			break
		}
	}
	switch {
	case len(bad) > 0:
		return bad.fail()
	case len(weak) > 0:
		v := weak.fail()
		v.Level = Should
		return v
	case met == 0:
		return skipped("no attempt was answered with something permanent")
	}
	names := ""
	if len(kinds) == 1 {
		for k := range kinds {
			names = " (" + k + ")"
		}
	}
	return pass("%s%s, none asked for again", plural(met, "permanent answer"), names)
}

// permanent names the permanent answer that a got, or returns "".
func permanent(a *history.Attempt, refreshed bool) string {
	if a.Category == "decoding" && a.Delivered {
		return "a reply that cannot be decoded (" + a.Fault + ")"
	}
	switch {
	case !a.Delivered:
	case a.FaultName == "tls_bad_certificate":
		return "a certificate that must not be accepted (" + a.Fault + ")"
	case a.FaultName == "dns_not_found":
		return "a name that does not exist"
	}
	asked := len(a.RetryAfter) > 0
	switch a.Status {
	case 408, 425, 429, 421:
		return ""
	case 409:
		if a.InFlight {
			return ""
		}
	case 403, 413:
		if asked {
			return ""
		}
	case 417: // in place of a 100: it should be repeated without Expect (RFC 9110 §10.1.1)
		if a.FaultName == "expect_continue_417" {
			return ""
		}
	case 401:
		if !refreshed {
			return ""
		}
		return "a second 401"
	case 501, 505:
		return fmt.Sprint(a.Status)
	}
	if a.Status/100 == 4 {
		return fmt.Sprint(a.Status)
	}
	return ""
}
