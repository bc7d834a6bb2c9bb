package faults

func h2FlowControlStall() Entry {
	return Entry{
		Name: "h2_flow_control_stall",
		Doc: "request: the window of the request's body is never opened, so that one of more than 65,535 octets stops there " +
			"(RFC 9113 §6.9.2); response: HEADERS, and no DATA ever, as if the client's window were closed",
		Category:  Transport,
		Phases:    []Phase{BeforeCommit, AfterCommit, CommitLate},
		Protocols: []string{HTTP2},
		Params:    []Param{variantParam("which side stalls", stallResponse, stallRequest, stallResponse)},
		Sees: "nothing, until its own timeout (context.DeadlineExceeded, Timeout() is true): at Do (request) or at Body.Read, " +
			"after a good head (response)",
		Where:   WhereBodyRead,
		Example: "h2_flow_control_stall variant=request",
		check: func(f Fault) (about, msg string) {
			if f.Variant == stallRequest && f.Phase != BeforeCommit {
				return "phase", "a request that has not arrived whole cannot have been carried out: variant=request is before_commit"
			}
			return "", ""
		},
		blocks:     func(Fault) bool { return true },
		beforeBody: func(f Fault) bool { return f.Variant == stallRequest },
		deliver: func(d *delivery) error {
			if err := d.needStream(); err != nil {
				return err
			}
			if d.fault.Variant == stallRequest {
				if !d.Stream.AwaitStall() {
					return ErrNotApplicable
				}
				d.unread(0)
			} else if err := d.startStream(AtHeaders); err != nil {
				return err
			}
			d.delivered()
			d.patience(0)
			return nil
		},
	}
}

// The variants of h2_flow_control_stall.
const (
	stallRequest  = "request"
	stallResponse = "response"
)
