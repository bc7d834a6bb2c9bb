package faults

import "io"

func partialRequest() Entry {
	return Entry{
		Name: "partial_request",
		Doc: "a part of the request's body is read and the rest is not; the connection then stays open and silent, " +
			"is closed (FIN) or aborted (RST), without a byte of an answer",
		Category:   Transport,
		Phases:     []Phase{BeforeCommit},
		Protocols:  []string{HTTP1},
		BeforeBody: true,
		Params: []Param{
			afterParam("0.5", "how much of the request's body is read: bytes (10) or a fraction (0.5); one byte at least is left"),
			endParam(func(Fault) End { return EndFIN }, string(EndFIN), EndHang, EndFIN, EndRST),
		},
		Sees: "its own timeout (hang: context.DeadlineExceeded, Timeout() is true), io.EOF (fin), syscall.ECONNRESET (rst); " +
			"while it still writes a large body it may be the error of that write instead (EPIPE, ECONNRESET)",
		Where:   WhereDo,
		Example: "partial_request after=1000 end=rst",
		blocks:  func(f Fault) bool { return f.End == EndHang },
		run:     runPartialRequest,
	}
}

func runPartialRequest(d *delivery) error {
	total := int(d.R.ContentLength)
	after := d.fault.After
	switch {
	case total == 0:
		return ErrNotApplicable // there is no body
	case total < 0 && (!after.Set || after.IsFraction):
		return ErrNotApplicable // no fraction of an unknown length
	case total < 0:
		total = maxAmount
	}
	waits := d.expectsContinue()
	body, release, err := d.takeBody()
	if err != nil {
		return err
	}
	defer release()
	if waits {
		if err := d.write([]byte(continueLine)); err != nil {
			return err
		}
	}
	n, err := io.CopyN(io.Discard, body, int64(min(after.Of(total, total/2), total-1)))
	d.unread(int(n))
	if err != nil {
		return ErrBrokenOff
	}
	if d.fault.End != EndHang {
		return d.finish(d.fault.End)
	}
	d.delivered() // the silence begins
	d.stare()
	return nil
}

// continueLine is the interim answer that asks for the body (RFC 9110 §15.2.1).
const continueLine = "HTTP/1.1 100 Continue\r\n\r\n"
