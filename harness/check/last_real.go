package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/retrychaos/retrychaos/harness/history"
)

// A caller decides by the last real failure: by its status, or by what errors.Is and errors.As find. "retries
// exhausted" alone is a mask (hashicorp/go-retryablehttp#69), and so is a context error in the place of what
// had gone wrong before (avast/retry-go#63). A cancelled call may show the cancellation, one that ran into
// its deadline the deadline. Where the client tells how many attempts it made, that has to be true.
//
// A panic in the caller's goroutine is the worst mask, and a finding of level MUST.
var errorLastReal = Check{
	ID:     "error.last-real",
	Holds:  "the caller of a failed call can reach its last real failure, and a true count of attempts where one is told",
	Level:  Should,
	Source: "hashicorp/go-retryablehttp#69, googleapis/gax-go#158, avast/retry-go#63",
	Judge:  judgeLastReal,
}

func judgeLastReal(h *history.History) Verdict {
	var bad, panics breaches
	judged, failed := 0, 0
	for _, c := range h.Calls {
		o := c.Outcome
		if o.Panic != "" {
			panics.add(c, 1, "call %s: the client panicked in its caller's goroutine: %s", c.ID, o.Panic)
			continue
		}
		if o.OK || !c.Returned {
			continue
		}
		failed++
		if tellsNothing(h) {
			continue
		}
		if o.Status == 0 && o.Error == "" && len(o.Traits) == 0 {
			bad.add(c, 10, "call %s failed with neither a status nor an error", c.ID)
			continue
		}
		if len(c.Attempts) == 0 {
			continue // nothing reached the server: its error is all that there is
		}
		judged++
		if want, ok := realFailure(h, c); !ok {
			bad.add(c, 5, "call %s gives %s, but its last real failure was %s", c.ID, shows(o), want)
		}
		if n := o.Attempts; n > 0 && !slices.Contains(counts(h, c), n) {
			bad.add(c, 3, "call %s says %s, the server saw %d", c.ID, plural(n, "attempt"), len(c.Attempts))
		}
	}
	switch {
	case len(panics) > 0:
		v := panics.fail()
		v.Level = Must
		return v
	case len(bad) > 0:
		return bad.fail()
	case failed == 0:
		return skipped("no call failed")
	case tellsNothing(h):
		return skipped("a command tells no more than its exit status")
	case judged == 0:
		return skipped("no attempt of a failed call arrived")
	}
	return pass("%s, each with its last real failure within the caller's reach", plural(judged, "failed call"))
}

// tellsNothing: a command tells no more than its exit status. A driver in front of one tells what it can find out,
// which is little.
func tellsNothing(h *history.History) bool { return h.Declared.Process }

func shows(o history.Outcome) string {
	switch {
	case o.Status > 0:
		return fmt.Sprintf("status %d", o.Status)
	case len(o.Traits) > 0:
		return "an error that is only " + strings.Join(o.Traits, ", ")
	}
	return fmt.Sprintf("an error that nothing can be found in (%q)", o.Error)
}

// counts returns the numbers of attempts that are true: on the wire, without those that net/http hid, and
// by trips. One that had not arrived when the call was ended from outside may be counted as well.
func counts(h *history.History, c *history.Call) []int {
	made := len(c.Made())
	out := []int{made, made - c.HiddenAttempts()}
	if len(c.Trips) > 0 {
		out = append(out, len(c.Trips))
	}
	if stopped(h, c) {
		out = append(out, made+1)
	}
	// A redirect that is followed inside an attempt is none of its own; whether the request behind one is, the
	// wire does not tell.
	redirects := 0
	for _, a := range c.Attempts {
		if a.Redirect() {
			redirects++
		}
	}
	for n := max(1, len(c.Attempts)-redirects); n < len(c.Attempts); n++ {
		out = append(out, n)
	}
	return out
}

// realFailure describes the last real failure of a failed call and reports whether the outcome shows it.
func realFailure(h *history.History, c *history.Call) (string, bool) {
	o := c.Outcome
	has := func(traits ...string) bool { return slices.ContainsFunc(traits, o.Has) }
	if c.Cancelled() && has(history.TraitCanceled) {
		return "", true
	}
	if c.Deadline > 0 && c.Ended >= c.Deadline-h.Grain && has(history.TraitDeadline, history.TraitTimeout) {
		return "", true
	}
	a := c.Last()
	// A dial that was refused after the last attempt that arrived is a failure of which the server knows
	// nothing.
	if n := len(c.Trips); n > 0 {
		if t := c.Trips[n-1]; t.Error != "" && t.Started > a.Ended && has(history.TraitRefused, history.TraitNotSent) {
			return "", true
		}
	}
	described := fmt.Sprintf("%s in attempt %d", a.Fault, a.N)
	switch {
	case a.Category == "decoding" && a.Delivered:
		return described, has(history.TraitDecoding)
	case a.Category == "transport" || a.Category == "invalid_response" || a.Status == 0:
		// Errors of another language say what they say; that there is one, and no status in its place, is judged.
		return described, h.Declared.Remote && o.Status == 0 && o.Error != "" || broken(c, a)
	case a.BodyUnread && a.Status > 0: // the answer came while the client was sending, and its write may have failed first
		return described, o.Status == a.Status || o.Error != ""
	case a.Redirect(): // that the client does not follow it, or no further, is its own failure
		return described, o.Status == a.Status || o.Error != ""
	case a.Status >= 300:
		return fmt.Sprintf("status %d in attempt %d", a.Status, a.N), o.Status == a.Status
	}
	// The last attempt had a good answer: what the client did not like about it is between the two.
	return described, true
}

// broken reports whether the outcome shows an exchange that broke off as a's did.
func broken(c *history.Call, a *history.Attempt) bool {
	o := c.Outcome
	has := func(traits ...string) bool { return slices.ContainsFunc(traits, o.Has) }
	// net/http gives an error of its own, without a sentinel, for a reused connection that went stale.
	if a.Reused && a.Status == 0 && o.Error != "" && !has(history.TraitCanceled, history.TraitDeadline) && o.Status == 0 {
		return true
	}
	name := a.FaultName
	if !a.Delivered {
		name = "" // it was claimed for the attempt, and something else ended it first
	}
	switch name {
	case "connection_reset":
		if a.Status > 0 { // the reset can overtake what was sent before it
			return has(history.TraitReset, history.TraitEOF, history.TraitUnexpectedEOF)
		}
		return has(history.TraitReset)
	case "empty_response":
		return has(history.TraitEOF, history.TraitUnexpectedEOF, history.TraitReset)
	case "broken_stream", "missing_final_chunk", "content_length_long", "truncated_head", "partial_request", "interim":
		if strings.Contains(a.Fault, "end=hang") {
			return has(history.TraitTimeout, history.TraitDeadline, history.TraitCanceled, history.TraitUnexpectedEOF)
		}
		return has(history.TraitUnexpectedEOF, history.TraitEOF, history.TraitReset)
	case "truncated_body":
		return has(history.TraitUnexpectedEOF, history.TraitEOF, history.TraitReset)
	case "stall_body", "dribble", "bandwidth", "slow_close": // silence, and then perhaps an end
		return has(history.TraitTimeout, history.TraitDeadline, history.TraitCanceled, history.TraitUnexpectedEOF, history.TraitEOF, history.TraitReset)
	case "connect_refused":
		return has(history.TraitRefused)
	case "dns_not_found", "dns_temporary":
		return has(history.TraitDNS)
	case "tls_bad_certificate":
		return has(history.TraitCertificate)
	case "tls_handshake_failure", "tls_version_refused":
		return has(history.TraitTLS)
	case "tls_close_in_handshake":
		return has(history.TraitEOF, history.TraitUnexpectedEOF, history.TraitReset)
	case "close_at_accept": // net/http has errors without a sentinel for an end that came before the request
		return o.Error != "" && o.Status == 0 && !has(history.TraitCanceled, history.TraitDeadline, history.TraitTimeout)
	case "hang", "accept_hang", "tls_handshake_hang", "latency":
		return has(history.TraitTimeout, history.TraitDeadline, history.TraitCanceled, history.TraitUnexpectedEOF)
	}
	// What an unknown fault looks like is not known here: an error of its own is enough.
	return o.Error != "" || len(o.Traits) > 0
}
