package check

import (
	"slices"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

const (
	// undeclaredAttempts is what a client that declares nothing is expected to try.
	undeclaredAttempts = 3
	// undeclaredPatience is the longest Retry-After that such a client is expected to wait for.
	undeclaredPatience = time.Minute
	// undeclaredWait is the time that has to be left for it to be expected to try again.
	undeclaredWait = 10 * time.Second
	// budgetCalls is how many calls of one client a retry budget needs to be a reason to give up.
	budgetCalls = 10
)

// A client that never retries breaks no other rule. It breaks this one where a retry would have been safe,
// allowed, in time and successful: the schedule says that the next attempt would have been answered well.
//
// Only calls whose whole schedule is their own sequence are judged: what a storm or a draw would have done
// to an attempt that never came is not known. The way to the good answer may lead over
// more failures of the last one's kind: of others it is not known here whether a client may pass them. Where many calls share one client and some of them got
// through, a retry budget may have been at work, and that is noted instead.
var livenessRecovers = Check{
	ID:     "liveness.recovers",
	Holds:  "a call recovers where a safe retry within the allowed attempts would have succeeded",
	Level:  Should,
	Source: "RFC 9110 §9.2.2; aws/aws-sdk-go#3027",
	Judge:  judgeRecovers,
}

func judgeRecovers(h *history.History) Verdict {
	if h.Declared.MaxAttempts == 1 {
		return skipped("the client declares one attempt a call: it does not retry")
	}
	allowed := h.Declared.MaxAttempts
	if allowed == 0 {
		allowed = undeclaredAttempts
	}
	var bad breaches
	var notes []string
	recovered, shared := 0, 0
	for _, c := range h.Calls {
		if !c.Fleet {
			shared++
		}
		if c.Outcome.OK {
			if slices.ContainsFunc(c.Attempts[:max(0, len(c.Attempts)-1)], retryable) {
				recovered++
			}
			continue
		}
		if couldRecover(h, c, allowed) {
			a := c.Last()
			bad.add(c, float64(allowed-len(c.Attempts)), "call %s gave up after %d of %d attempts, although attempt %d (%s) was safe to repeat and attempt %d would have succeeded",
				c.ID, len(c.Attempts), allowed, a.N, a.Fault, succeedsAt(c))
		}
	}
	var v Verdict
	switch {
	case len(bad) > 0 && recovered > 0 && shared >= budgetCalls && len(bad) < shared:
		v = pass("%s recovered; %s gave up early, as a retry budget makes them", plural(recovered, "call"), plural(len(bad), "other"))
		for _, b := range bad {
			notes = append(notes, b.text)
		}
	case len(bad) > 0:
		return bad.fail()
	case recovered == 0:
		return skipped("no call failed in a way that a safe retry would have mended")
	default:
		v = pass("%s recovered by a retry", plural(recovered, "call"))
	}
	v.Notes = capNotes(notes)
	return v
}

// retryable reports whether a failed in a way that may pass.
func retryable(a *history.Attempt) bool {
	switch a.Status {
	case 429, 502, 503, 504:
		return true
	}
	if !a.Delivered {
		return false
	}
	switch a.FaultName {
	case "h2_rst_stream":
		// A stream that is refused behind its header is the work of a broken server (RFC 9113 §8.7): nobody has
		// to trust it.
		return a.Unprocessed || !strings.Contains(a.Fault, "REFUSED_STREAM")
	case "connection_reset", "empty_response", "truncated_body", "close_at_accept", "h2_goaway", "h2_connection_closed":
		return true
	case "partial_request", "truncated_head", "broken_stream", "missing_final_chunk", "content_length_long", "interim":
		// Of these some never end by themselves.
		return a.Category == "transport" && !strings.Contains(a.Fault, "end=hang")
	}
	return passing(a)
}

// passing reports whether a failed before there was a connection, in a way that may pass: whatever the method, a
// repeat cannot do twice what was not done once.
func passing(a *history.Attempt) bool {
	return a.FaultName == "connect_refused" || a.FaultName == "dns_temporary"
}

// couldRecover reports whether one more attempt of a failed call was called for.
func couldRecover(h *history.History, c *history.Call, allowed int) bool {
	a := c.Last()
	n := len(c.Made())
	switch {
	case a == nil || !c.Returned || c.Cancelled() || c.Outcome.Panic != "":
		return false
	case !retryable(a) || n >= allowed:
		return false
	case a.Stored || a.Replayed: // the key can have no other answer
		return false
	case c.Stream: // what was read of the body is gone, unless the client has kept it
		return false
	case !history.IdempotentMethod(c.Method) && !licensed(c, a) && !(c.MayRepeat && h.Declared.CanBeTold) && a.Status != 429 && !passing(a):
		return false
	}
	next := succeedsAt(c)
	return next > 0 && next <= allowed && timeLeft(h, c, a, n, next)
}

// succeedsAt returns the attempt that the call's own sequence would have answered well, where the way there
// is known to be passable; else 0.
func succeedsAt(c *history.Call) int {
	n := len(c.Attempts)
	last := c.Last().Fault
	if c.Endless || len(c.Planned) < n || c.Planned[n-1] != last {
		return 0 // not the end of its own sequence
	}
	for i := n; i < len(c.Planned); i++ {
		switch c.Planned[i] {
		case "ok":
			return i + 1
		case last:
		default:
			return 0
		}
	}
	return len(c.Planned) + 1
}

// timeLeft reports whether the waits for attempts k+1 to next fitted before the deadline and, after a
// Retry-After, into the client's declared patience.
func timeLeft(h *history.History, c *history.Call, a *history.Attempt, k, next int) bool {
	asked := a.AskedFor()
	var wait time.Duration
	for i := k; i < next; i++ {
		d := h.Declared.LongestDelay(i)
		if d == 0 {
			d = undeclaredWait
		}
		// The client may add its jitter to what was asked. The exchanges take time as well.
		wait += d + asked + max(0, a.Ended-a.At)
	}
	patience := h.Declared.MaxRetryAfter
	if patience == 0 {
		patience = undeclaredPatience
	}
	if asked > patience {
		return false
	}
	return c.Deadline <= 0 || c.Deadline-max(a.At, a.Ended) > wait+h.Grain
}
