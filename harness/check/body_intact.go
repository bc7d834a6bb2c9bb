package check

import (
	"fmt"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

// The classic: the body was read by the first attempt, and the second one goes out empty
// (stripe/stripe-go#647), or announces a length that never comes (go-resty/resty#334).
//
// An attempt that ended before its announced length proves nothing where the client went away while it was
// sending: the application cancelled, the deadline came, or it had been sending for a while. Where it ended
// at once by itself, the body was lost. One whose fault left the body unread proves nothing either.
var bodyIntact = Check{
	ID:     "body.intact",
	Holds:  "every attempt carries the bytes and header fields that the application gave",
	Level:  Must,
	Source: "RFC 9110 §9.2.2; stripe/stripe-go#647",
	Judge:  judgeBodyIntact,
}

func judgeBodyIntact(h *history.History) Verdict {
	var bad breaches
	var notes []string
	whole, unread := 0, 0
	for _, c := range h.Calls {
		for _, a := range c.Attempts {
			if a.Connection {
				continue // no request arrived
			}
			if len(a.HeaderDiff) > 0 {
				bad.add(c, 5, "call %s: attempt %d lacks or alters what the application set: %s", c.ID, a.N, strings.Join(a.HeaderDiff, ", "))
			}
			if a.Redirected(c) {
				continue
			}
			switch {
			case a.BodyUnread:
				unread++
			case a.BodyBroken && excused(h, c, a):
				notes = append(notes, fmt.Sprintf("call %s: attempt %d ended after %d of %d bytes as the client went away", c.ID, a.N, a.BodyLen, c.BodyLen))
			case a.BodyBroken:
				bad.add(c, 9, "call %s: attempt %d broke off after %d of %d bytes of its body", c.ID, a.N, a.BodyLen, c.BodyLen)
			case a.BodyLen == 0 && c.BodyLen > 0:
				bad.add(c, 10, "call %s: attempt %d came without its body of %d bytes", c.ID, a.N, c.BodyLen)
			case a.BodyLen != c.BodyLen:
				bad.add(c, 8, "call %s: attempt %d carried %d bytes instead of %d", c.ID, a.N, a.BodyLen, c.BodyLen)
			case a.BodyHash != c.BodyHash && c.BodyLen > 0:
				bad.add(c, 7, "call %s: attempt %d carried %d bytes, as it should, but other ones", c.ID, a.N, a.BodyLen)
			default:
				whole++
			}
		}
	}
	var v Verdict
	switch {
	case len(bad) > 0:
		v = bad.fail()
	case whole == 0 && len(notes) == 0 && unread > 0:
		v = skipped("no attempt's body was read to its end: its fault came first")
	case whole == 0 && len(notes) > 0:
		v = unknown("no attempt was received whole: the client went away each time")
	case whole == 0:
		v = skipped("no attempt arrived")
	default:
		v = pass("%s, each with the bytes and header fields that the application gave", plural(whole, "attempt"))
	}
	v.Notes = capNotes(notes)
	return v
}

// sending is how long an attempt must have lasted for its client to have given up while it was sending. A
// body that is not there is noticed at once.
const sending = 10 * time.Millisecond

// excused reports whether a broken body can be the client's leave: cancelled, out of time, or held up by a
// fault.
func excused(h *history.History, c *history.Call, a *history.Attempt) bool {
	within := func(t time.Duration) bool { return t > 0 && t >= a.At-h.Grain && t <= a.Ended+h.Grain }
	return within(c.CancelAt) || within(c.Deadline) || a.Ended-a.At > max(sending, h.Grain) ||
		strings.HasPrefix(a.FaultName, "expect_continue") // its client may have been waiting for a 100
}
