package faults

func h2ConnectionClosed() Entry {
	return Entry{
		Name: "h2_connection_closed",
		Doc: "the connection is closed (FIN) or aborted (RST) without a GOAWAY: with the stream open, before or within the " +
			"response, or between streams, behind the whole answer",
		Category:  Transport,
		Phases:    []Phase{BeforeCommit, AfterCommit, CommitLate},
		Protocols: []string{HTTP2},
		Params: []Param{
			atParam(AtStart, AtStart, AtHeaders, AtBody, AtAnswer),
			endParam(func(Fault) End { return EndFIN }, string(EndFIN), EndFIN, EndRST),
		},
		Sees: "io.ErrUnexpectedEOF (fin), syscall.ECONNRESET or, where net/http's writing side was told of the reset, " +
			"io.ErrUnexpectedEOF (rst), at Do (start) or at Body.Read (headers, body); net/http does not send the request again. Behind the whole answer: the answer, and the next request goes to a new connection",
		Where:   WhereDo,
		Example: "h2_connection_closed@after_commit at=headers end=rst",
		check: func(f Fault) (about, msg string) {
			if f.At == AtAnswer && f.Phase != AfterCommit {
				return "phase", "at=answer gives the good answer, which " + string(f.Phase) + " would make a lie: use after_commit"
			}
			return "", ""
		},
		category: func(f Fault) Category {
			if f.At == AtAnswer {
				return None
			}
			return Transport
		},
		deliver: func(d *delivery) error {
			if err := d.needStream(); err != nil {
				return err
			}
			var err error
			if d.fault.At == AtAnswer {
				err = d.answer(d.Reply)
			} else {
				err = d.startStream(d.fault.At)
			}
			if err != nil {
				return err
			}
			if err := d.Stream.CloseConn(d.fault.End); err != nil {
				return err
			}
			d.delivered()
			return nil
		},
	}
}
