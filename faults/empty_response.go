package faults

func emptyResponse() Entry {
	return Entry{
		Name:      "empty_response",
		Doc:       "the connection is closed in order (FIN) without a byte of an answer",
		Category:  Transport,
		Phases:    []Phase{BeforeCommit, AfterCommit, CommitLate},
		Protocols: []string{HTTP1},
		Sees: "io.EOF; on a reused connection net/http may first resend an idempotent or keyed request by itself, " +
			"and says of the others that the server closed an idle connection or EOF",
		Where:   WhereDo,
		Example: "empty_response@after_commit on=reused",
		deliver: func(d *delivery) error {
			if err := d.hijack(); err != nil {
				return err
			}
			return d.finish(EndFIN)
		},
	}
}
