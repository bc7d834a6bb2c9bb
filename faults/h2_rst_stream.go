package faults

const (
	refusedStream = "REFUSED_STREAM"
	noError       = "NO_ERROR"
)

func h2RSTStream() Entry {
	return Entry{
		Name: "h2_rst_stream",
		Doc: "the stream is reset before, within or behind the response, and the connection goes on; REFUSED_STREAM says that " +
			"nothing was processed, NO_ERROR behind the whole answer that the rest of the request is not needed",
		Category:  Transport,
		Phases:    []Phase{BeforeCommit, AfterCommit, CommitLate},
		Protocols: []string{HTTP2},
		Params: []Param{
			codeWordParam("INTERNAL_ERROR", refusedStream, "INTERNAL_ERROR", "CANCEL", "ENHANCE_YOUR_CALM", "PROTOCOL_ERROR", noError),
			atParam(AtStart, AtStart, AtHeaders, AtBody, AtAnswer),
		},
		Sees: "a stream error that errors.As finds by its shape (go.dev/issue/53896), at Do (start) or at Body.Read (headers, body); " +
			"on REFUSED_STREAM and, although it promises nothing, on PROTOCOL_ERROR (go.dev/issue/47635) net/http sends the request again " +
			"by itself, whatever its method, up to 7 times with growing waits, where it has GetBody or no body. Behind the whole answer: the answer",
		Where:   WhereDo,
		Example: "h2_rst_stream code=REFUSED_STREAM",
		check: func(f Fault) (about, msg string) {
			switch {
			case f.Code == noError && f.At != AtAnswer:
				return "at", "NO_ERROR comes behind a whole answer (RFC 9113 §8.1): at=answer"
			case f.At == AtAnswer && f.Code != noError:
				return "at", "behind a whole answer the code is NO_ERROR (RFC 9113 §8.1)"
			case f.At == AtAnswer && f.Phase != AfterCommit:
				return "phase", "at=answer gives the good answer, which " + string(f.Phase) + " would make a lie: use after_commit"
			case f.Code == refusedStream && f.Phase != BeforeCommit:
				return "phase", "REFUSED_STREAM says that the request was not processed, which " + string(f.Phase) +
					" would make a lie (RFC 9113 §8.7)"
			case f.Code == refusedStream && f.At == AtBody:
				return "at", "a server that refuses a stream has no body to send: at=start, or at=headers for a broken one (RFC 9113 §8.7)"
			}
			return "", ""
		},
		category: func(f Fault) Category {
			if f.At == AtAnswer {
				return None
			}
			return Transport
		},
		beforeBody: func(f Fault) bool { return f.At == AtAnswer },
		deliver: func(d *delivery) error {
			if err := d.needStream(); err != nil {
				return err
			}
			var err error
			if d.fault.At == AtAnswer {
				d.unread(0)
				err = d.answer(d.Reply)
			} else {
				err = d.startStream(d.fault.At)
			}
			if err != nil {
				return err
			}
			if err := d.Stream.Reset(h2Code(d.fault.Code)); err != nil {
				return err
			}
			d.delivered()
			return nil
		},
	}
}
