package faults

import (
	"bytes"
	"time"
)

func truncatedHead() Entry {
	return Entry{
		Name:      "truncated_head",
		Doc:       "a good status line and a part of the header section (RFC 9112 §8), then silence, FIN or RST",
		Category:  Transport,
		Phases:    []Phase{BeforeCommit, AfterCommit, CommitLate},
		Protocols: []string{HTTP1},
		Params: []Param{
			afterParam("0.5", "how much of the header section goes out: bytes (10) or a fraction (0.5); its end stays back"),
			openEnds(),
		},
		Sees:    "io.ErrUnexpectedEOF (fin, and rst too: net/http hides what ended the head), or its own timeout (hang); nothing of the status",
		Where:   WhereDo,
		Example: "truncated_head after=10 end=rst",
		blocks:  func(f Fault) bool { return f.End == EndHang },
		deliver: func(d *delivery) error {
			b := head(reply(d.Reply), time.Now())
			line := bytes.IndexByte(b, '\n') + 1
			section := len(b) - line
			n := min(d.fault.After.Of(section, section/2), section-1)
			if err := d.hijack(); err != nil {
				return err
			}
			if err := d.write(b[:line+n]); err != nil {
				return err
			}
			return d.finish(d.fault.End)
		},
	}
}
