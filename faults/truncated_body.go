package faults

import "net/http"

func truncatedBody() Entry {
	return Entry{
		Name:      "truncated_body",
		Doc:       "a good head, a part of the body that it announced, then the connection is closed (FIN) or aborted (RST)",
		Category:  Transport,
		Phases:    []Phase{AfterCommit, BeforeCommit, CommitLate},
		Protocols: []string{HTTP1},
		Params: []Param{
			afterParam("0.5", sentFirst),
			endParam(func(Fault) End { return EndFIN }, string(EndFIN), EndFIN, EndRST),
		},
		Sees:    "status 200, then io.ErrUnexpectedEOF (fin) or syscall.ECONNRESET (rst)",
		Where:   WhereBodyRead,
		Example: "truncated_body after=0.5 end=rst",
		deliver: func(d *delivery) error {
			r, n, err := d.part()
			if err != nil {
				return err
			}
			if err := d.sendRaw(r, n); err != nil {
				return err
			}
			return d.finish(d.fault.End)
		},
	}
}

// part returns the reply and how much of its body goes out: half where the fault does not say, and never the
// whole, which would be no fault.
func (d *delivery) part() (Reply, int, error) {
	r := reply(d.Reply)
	if len(r.Body) == 0 || d.R.Method == http.MethodHead {
		return r, 0, ErrNotApplicable
	}
	return r, min(d.fault.After.Of(len(r.Body), len(r.Body)/2), len(r.Body)-1), nil
}
