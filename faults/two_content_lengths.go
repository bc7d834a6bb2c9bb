package faults

import "strconv"

func twoContentLengths() Entry {
	return Entry{
		Name: "two_content_lengths",
		Doc: "a whole answer with two Content-Length lines that differ, the true one first, then the connection is closed " +
			"(FIN); its framing is not valid (RFC 9112 §6.3)",
		Category:  InvalidResponse,
		Phases:    []Phase{AfterCommit, BeforeCommit, CommitLate},
		Protocols: []string{HTTP1},
		Sees:      "message cannot contain multiple Content-Length headers (an error without a type of its own)",
		Where:     WhereDo,
		Example:   "two_content_lengths",
		deliver: func(d *delivery) error {
			r := reply(d.Reply)
			if len(r.Body) == 0 || d.R.Method == "HEAD" {
				return ErrNotApplicable
			}
			r.Header.Add("Content-Length", strconv.Itoa(len(r.Body)/2))
			if err := d.sendRaw(r, len(r.Body)); err != nil {
				return err
			}
			return d.finish(EndFIN)
		},
	}
}
