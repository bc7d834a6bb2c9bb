package faults

import (
	"bytes"
	"net/http"
	"time"
)

// The good answers whose body comes slowly. There is no failure in them but impatience.

func dribble() Entry {
	return Entry{
		Name:      "dribble",
		Doc:       "the good answer, its body byte by byte with a delay behind each",
		Category:  None,
		Phases:    []Phase{AfterCommit},
		Protocols: []string{HTTP1},
		Params:    []Param{required(delayParam("how long after a byte the next one comes", time.Nanosecond))},
		Sees:      "a good answer, or its own timeout (context.DeadlineExceeded, Timeout() is true) where that is shorter",
		Where:     WhereNowhere,
		Example:   "dribble delay=10ms",
		deliver:   func(d *delivery) error { return d.trickle(reply(d.Reply), 1, d.fault.Delay) },
	}
}

func bandwidth() Entry {
	return Entry{
		Name:      "bandwidth",
		Doc:       "the good answer, its body at a rate; size= makes it longer, by spaces behind the JSON",
		Category:  None,
		Phases:    []Phase{AfterCommit},
		Protocols: []string{HTTP1},
		Params: []Param{
			rateParam("bytes per second at which the body goes out"),
			sizeParam("size", KindSize, "bytes that the body is made long, where it is shorter", 16<<20, 0, func(f *Fault) *int { return &f.Size }),
		},
		Sees:    "a good answer, or its own timeout (context.DeadlineExceeded, Timeout() is true) where that is shorter",
		Where:   WhereNowhere,
		Example: "bandwidth rate=64KiB size=256KiB",
		deliver: func(d *delivery) error {
			r := d.Reply
			r.Body = append(bytes.Clone(r.Body), bytes.Repeat([]byte(" "), max(0, d.fault.Size-len(r.Body)))...)
			step := max(1, d.fault.Rate/ticks)
			return d.trickle(reply(r), step, time.Duration(step)*time.Second/time.Duration(d.fault.Rate))
		},
	}
}

// trickle sends a whole answer by net/http, its body in portions of step bytes with a pause behind each but
// the last.
func (d *delivery) trickle(r Reply, step int, pause time.Duration) error {
	if len(r.Body) == 0 || d.R.Method == http.MethodHead {
		return ErrNotApplicable
	}
	n := min(step, len(r.Body))
	if err := d.begin(r, n); err != nil {
		return err
	}
	d.delivered() // the slowness begins
	for rest := r.Body[n:]; len(rest) > 0; rest = rest[n:] {
		if d.patience(pause) != timeUp {
			d.drop()
			return nil
		}
		n = min(step, len(rest))
		if _, err := d.W.Write(rest[:n]); err != nil {
			break // the client has had enough
		}
		if err := http.NewResponseController(d.W).Flush(); err != nil {
			break
		}
	}
	return nil
}

func slowClose() Entry {
	return Entry{
		Name: "slow_close",
		Doc: "the good answer with a body that the connection's end delimits (RFC 9112 §6.3): all of it, and the FIN only " +
			"after delay=, or never (hang)",
		Category:  Transport,
		Phases:    []Phase{AfterCommit, BeforeCommit, CommitLate},
		Protocols: []string{HTTP1},
		Params: []Param{
			delayParam("how long after the body the FIN comes", 0),
			endParam(slowCloseEnd, "hang, with delay= fin", EndHang, EndFIN),
		},
		Sees:    "a slow good answer (fin), or with all of the body in hand its own timeout (context.DeadlineExceeded, Timeout() is true)",
		Where:   WhereBodyRead,
		Example: "slow_close delay=2s",
		check: func(f Fault) (about, msg string) {
			switch {
			case f.End == EndHang && f.Delay > 0:
				return "end", "end=hang never closes: delay= has no meaning with it"
			case f.End == EndFIN && f.Delay == 0:
				return "end", "end=fin needs delay=: a FIN right behind the body is a good answer"
			case f.End == EndFIN && f.Phase != AfterCommit:
				return "phase", "the good answer, which " + string(f.Phase) + " would make a lie: use after_commit or end=hang"
			}
			return "", ""
		},
		category: func(f Fault) Category {
			if f.End == EndFIN {
				return None
			}
			return Transport
		},
		blocks:  func(f Fault) bool { return f.End == EndHang },
		deliver: deliverSlowClose,
	}
}

func slowCloseEnd(f Fault) End {
	if f.Delay > 0 {
		return EndFIN
	}
	return EndHang
}

func deliverSlowClose(d *delivery) error {
	r, _, err := d.part()
	if err != nil {
		return err
	}
	r.Header.Del("Content-Length")
	r.Header.Set("Connection", "close")
	if err := d.sendRaw(r, len(r.Body)); err != nil {
		return err
	}
	d.delivered() // the silence begins
	if d.fault.Delay > 0 && d.silence(d.fault.Delay) != timeUp {
		return nil
	}
	return d.finish(d.fault.End)
}
