package faults

func h2SettingsNeverAcked() Entry {
	return Entry{
		Name: "h2_settings_never_acked",
		Doc: "the client's SETTINGS are never acknowledged on this connection, which must be a fresh one; the request is " +
			"answered well (normal) or never (hang)",
		Category:  Transport,
		Phases:    []Phase{BeforeCommit, AfterCommit, CommitLate},
		Protocols: []string{HTTP2},
		Params:    []Param{endParam(func(Fault) End { return EndHang }, string(EndHang), EndHang, EndNormal)},
		Sees: "hang: nothing, until its own timeout (context.DeadlineExceeded, Timeout() is true); normal: the good answer. " +
			"net/http does not wait for the acknowledgement (RFC 9113 §6.5.3 would allow it a SETTINGS_TIMEOUT)",
		Where:   WhereDo,
		Example: "h2_settings_never_acked@after_commit end=normal",
		check: func(f Fault) (about, msg string) {
			switch {
			case f.On == Reused:
				return "on", "on a reused connection the SETTINGS have been acknowledged long ago"
			case f.End == EndNormal && f.Phase != AfterCommit:
				return "phase", "end=normal is a good answer, which " + string(f.Phase) + " would make a lie: use after_commit, or end=hang"
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
		keepAck: true,
		deliver: func(d *delivery) error {
			if err := d.needStream(); err != nil {
				return err
			}
			if !d.Stream.WithholdAck() {
				return ErrNotApplicable
			}
			if d.fault.End == EndNormal {
				return d.answer(d.Reply)
			}
			d.delivered()
			d.patience(0)
			return nil
		},
	}
}
