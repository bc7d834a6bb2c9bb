package faults

func hang() Entry {
	return Entry{
		Name:      "hang",
		Doc:       "the request is read and nothing is ever answered; the connection stays open until the client goes",
		Category:  Transport,
		Phases:    []Phase{BeforeCommit, AfterCommit, CommitLate},
		Protocols: []string{HTTP1, HTTP2},
		Sees:      "nothing, until its own timeout: context.DeadlineExceeded, Timeout() is true",
		Where:     WhereDo,
		Example:   "hang@after_commit",
		blocks:    func(Fault) bool { return true },
		deliver: func(d *delivery) error {
			if d.Stream != nil {
				d.delivered()
				d.patience(0)
				return nil
			}
			if err := d.hijack(); err != nil {
				return err
			}
			return d.finish(EndHang)
		},
	}
}
