package faults

func connectionReset() Entry {
	return Entry{
		Name:      "connection_reset",
		Doc:       "the connection is aborted (RST) without a byte of an answer",
		Category:  Transport,
		Phases:    []Phase{BeforeCommit, AfterCommit, CommitLate},
		Protocols: []string{HTTP1},
		Sees: "syscall.ECONNRESET; on a reused connection net/http may first resend an idempotent or keyed " +
			"request by itself",
		Where:   WhereDo,
		Example: "connection_reset@after_commit",
		deliver: func(d *delivery) error {
			if err := d.hijack(); err != nil {
				return err
			}
			return d.finish(EndRST)
		},
	}
}
