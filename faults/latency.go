package faults

import "time"

func latency() Entry {
	return Entry{
		Name:      "latency",
		Doc:       "the good answer comes late; before_commit does not commit for a client that has gone meanwhile",
		Category:  None,
		Phases:    []Phase{BeforeCommit, AfterCommit, CommitLate},
		Protocols: []string{HTTP1, HTTP2},
		Params: []Param{
			required(delayParam("how long the server is silent before it answers", time.Nanosecond)),
		},
		Sees:    "a good answer, or its own timeout (context.DeadlineExceeded, Timeout() is true) where that is shorter",
		Where:   WhereNowhere,
		Example: "latency delay=200ms",
		run:     runLatency,
		byHTTP:  func(Fault) bool { return true },
		// The delay itself says how late the commit is.
		noLate: true,
	}
}

func required(p Param) Param {
	p.Required = true
	return p
}

// runLatency has the commit on the one or the other side of the delay. A good answer always has an effect:
// what the phase changes is whether there is one when nobody waits for the answer any more.
func runLatency(d *delivery) error {
	d.delivered() // the silence begins
	if d.fault.Phase == AfterCommit {
		d.Commit()
	}
	var end why
	if d.fault.Phase == CommitLate {
		d.sleep(d.fault.Delay)
		if d.Commit(); d.R.Context().Err() != nil {
			end = clientGone
		}
	} else {
		end = d.patience(d.fault.Delay)
	}
	if end != timeUp || closed(d.Closing) {
		d.drop()
		return nil
	}
	d.Commit() // where it has happened already this changes nothing
	return d.answer(d.Reply)
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
