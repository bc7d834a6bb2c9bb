package faults

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

func interim() Entry {
	return Entry{
		Name: "interim",
		Doc: "interim answers (1xx), and then the good answer (normal), the status of then=, or nothing: silence (hang), " +
			"FIN or RST",
		Category:  None,
		Phases:    []Phase{AfterCommit, BeforeCommit, CommitLate},
		Protocols: []string{HTTP1},
		Params: []Param{
			interimCode(),
			numberParam("count", "how many interim answers", 1, 1000, 1, func(f *Fault) *int { return &f.Count }),
			sampled(answerCode("then", "the status of the final answer, from 300 to 599; unless said, the good one", 0), "503"),
			endParam(func(Fault) End { return EndNormal }, string(EndNormal), EndNormal, EndHang, EndFIN, EndRST),
		},
		Sees: "nothing of the interim answers (httptrace.ClientTrace.Got1xxResponse does); the final answer, or " +
			"its own timeout (hang), io.ErrUnexpectedEOF (fin), syscall.ECONNRESET (rst)",
		Where:   WhereDo,
		Example: "interim code=102 count=3 then=503",
		check: func(f Fault) (about, msg string) {
			switch {
			case f.Status != 0 && f.End != EndNormal:
				return "end", "end=" + string(f.End) + " and then= exclude each other: there is a final answer or there is none"
			case f.Status != 0 && f.Status < 500 && f.Phase != BeforeCommit:
				return "phase", fmt.Sprintf("%d at %s: a server that commits must not say that it refused", f.Status, f.Phase)
			case f.Status == 0 && f.End == EndNormal && f.Phase != AfterCommit:
				return "phase", "the good answer, which " + string(f.Phase) + " would make a lie: use after_commit, then= or another end"
			}
			return "", ""
		},
		category: func(f Fault) Category {
			switch {
			case f.Status != 0:
				return Status
			case f.End == EndNormal:
				return None
			}
			return Transport
		},
		blocks:  func(f Fault) bool { return f.End == EndHang },
		deliver: deliverInterim,
	}
}

func interimCode() Param {
	const def = http.StatusEarlyHints
	p := numberParam("code", "the interim code: 100, or from 102 to 199", 100, 199, def, func(f *Fault) *int { return &f.Interim })
	set := p.set
	p.set = func(f *Fault, v value) error {
		if err := set(f, v); err != nil {
			return err
		}
		if f.Interim == http.StatusSwitchingProtocols {
			return fmt.Errorf("101 is a final answer (RFC 9110 §15.2.2): want another interim code")
		}
		return nil
	}
	return p
}

func deliverInterim(d *delivery) error {
	f := d.fault
	if f.End == EndNormal && f.Phase != CommitLate {
		for range f.Count {
			d.W.WriteHeader(f.Interim)
		}
		if f.Status == 0 {
			return d.answer(d.Reply)
		}
		return d.respond(statusReply(f, time.Now()))
	}
	if err := d.hijack(); err != nil {
		return err
	}
	text := http.StatusText(f.Interim)
	if text == "" {
		text = fmt.Sprintf("status code %d", f.Interim)
	}
	line := fmt.Sprintf("HTTP/1.1 %d %s\r\n\r\n", f.Interim, text)
	if err := d.write([]byte(strings.Repeat(line, f.Count))); err != nil {
		return err
	}
	if f.End == EndNormal {
		return d.respond(statusReply(f, time.Now()))
	}
	return d.finish(f.End)
}
