package faults

import "net/http"

func stallBody() Entry {
	return Entry{
		Name:      "stall_body",
		Doc:       "a good head and a part of the body, then silence; after delay= the rest of the body, FIN or RST",
		Category:  Transport,
		Phases:    []Phase{AfterCommit, BeforeCommit, CommitLate},
		Protocols: []string{HTTP1},
		Params: []Param{
			afterParam("0.5", sentFirst),
			delayParam("how long the silence lasts; 0: for ever", 0),
			endParam(stallEnd, "hang, with delay= normal", EndHang, EndFIN, EndRST, EndNormal),
		},
		Sees: "status 200, then nothing until its own timeout (context.DeadlineExceeded, Timeout() is true); with delay= " +
			"io.ErrUnexpectedEOF (fin), syscall.ECONNRESET (rst) or a slow good answer (normal)",
		Where:   WhereBodyRead,
		Example: "stall_body after=10 delay=5s end=rst",
		check: func(f Fault) (about, msg string) {
			switch {
			case f.End == EndHang && f.Delay > 0:
				return "end", "end=hang is silent for ever: delay= has no meaning with it"
			case f.End != EndHang && f.Delay == 0:
				return "end", "end=" + string(f.End) + " is never reached: the silence lasts for ever unless delay= ends it"
			case f.End == EndNormal && f.Phase != AfterCommit:
				return "phase", "a stall that ends normally is a good answer, which " + string(f.Phase) +
					" would make a lie: use after_commit, or end=fin or end=rst"
			}
			return "", ""
		},
		category: func(f Fault) Category {
			if f.End == EndNormal {
				return None
			}
			return Transport
		},
		blocks:  func(f Fault) bool { return f.End == EndHang },
		byHTTP:  func(f Fault) bool { return f.End == EndNormal },
		deliver: deliverStall,
	}
}

// stallEnd is what a stall comes to where the text does not say.
func stallEnd(f Fault) End {
	if f.Delay > 0 {
		return EndNormal
	}
	return EndHang
}

func deliverStall(d *delivery) error {
	r, n, err := d.part()
	if err != nil {
		return err
	}
	if d.fault.End == EndNormal {
		return d.stallByNetHTTP(r, n)
	}
	if err := d.sendRaw(r, n); err != nil {
		return err
	}
	d.delivered() // the silence begins
	if d.fault.Delay > 0 && d.silence(d.fault.Delay) != timeUp {
		return nil // nobody is left to see the end; the connection is closed on the way out
	}
	return d.finish(d.fault.End)
}

// stallByNetHTTP leaves the connection with net/http, which keeps it for the next request.
func (d *delivery) stallByNetHTTP(r Reply, n int) error {
	if err := d.begin(r, n); err != nil {
		return err
	}
	d.delivered()
	if d.patience(d.fault.Delay) != timeUp {
		d.drop()
		return nil
	}
	if _, err := d.W.Write(r.Body[n:]); err != nil {
		return err
	}
	return http.NewResponseController(d.W).Flush()
}
