package faults

import "strconv"

// The faults of a Content-Length that is not that of the body (RFC 9112 §6.2).

func byParam(doc string) Param {
	return numberParam("by", doc, 1, maxBody, 10, func(f *Fault) *int { return &f.By })
}

func contentLengthShort() Entry {
	return Entry{
		Name: "content_length_short",
		Doc: "the whole body behind a Content-Length that is too short, so that its end belongs to nothing; then the " +
			"connection is closed (FIN)",
		Category:  Decoding,
		Phases:    []Phase{AfterCommit, BeforeCommit, CommitLate},
		Protocols: []string{HTTP1},
		Params:    []Param{byParam("how many bytes are not announced; one byte at least is")},
		Sees:      "status 200 and the beginning of the body, which does not decode; no error of the connection",
		Where:     WhereDecoding,
		Example:   "content_length_short by=3",
		deliver: func(d *delivery) error {
			return d.misannounced(func(length int) int { return max(1, length-d.fault.By) }, EndFIN)
		},
	}
}

func contentLengthLong() Entry {
	return Entry{
		Name: "content_length_long",
		Doc: "the whole body behind a Content-Length that is too long, so that it is not complete (RFC 9112 §8); then " +
			"silence, FIN or RST",
		Category:  Transport,
		Phases:    []Phase{AfterCommit, BeforeCommit, CommitLate},
		Protocols: []string{HTTP1},
		Params:    []Param{byParam("how many bytes are announced and never come"), openEnds()},
		Sees:      "status 200, then io.ErrUnexpectedEOF (fin), syscall.ECONNRESET (rst) or its own timeout (hang), with all of the body in hand",
		Where:     WhereBodyRead,
		Example:   "content_length_long by=1 end=hang",
		blocks:    func(f Fault) bool { return f.End == EndHang },
		deliver: func(d *delivery) error {
			return d.misannounced(func(length int) int { return length + d.fault.By }, d.fault.End)
		},
	}
}

// misannounced sends the whole body with another length in the head.
func (d *delivery) misannounced(length func(true int) int, end End) error {
	r, _, err := d.part()
	if err != nil {
		return err
	}
	n := length(len(r.Body))
	if n == len(r.Body) {
		return ErrNotApplicable // a body of one byte cannot be announced shorter
	}
	r.Header.Set("Content-Length", strconv.Itoa(n))
	if err := d.sendRaw(r, len(r.Body)); err != nil {
		return err
	}
	return d.finish(end)
}
