package faults

import "net"

func closeAtAccept() Entry {
	return Entry{
		Name:      "close_at_accept",
		Doc:       "the connection is accepted and closed at once, before a byte was read",
		Category:  Transport,
		Phases:    []Phase{BeforeCommit},
		Protocols: []string{HTTP1},
		Params:    []Param{endParam(func(Fault) End { return EndFIN }, string(EndFIN), EndFIN, EndRST)},
		Sees: "io.EOF (fin) or syscall.ECONNRESET (rst), from the TLS handshake where there is one. Without TLS the " +
			"request may have been written, and net/http has other errors, without a sentinel, for when it was not",
		Where:   WhereDo,
		Example: "close_at_accept end=rst",
		Level:   LevelConnection,
		check:   neverReused,
		dial: func(d *dialling) (net.Conn, error) {
			end := func(far stream) error {
				if err := d.finish(far, d.fault.End); err != nil {
					return err
				}
				d.Delivered()
				return nil
			}
			return d.meet(end, func(_ *brokenConn, far stream) {
				if d.fault.End == EndFIN {
					discard(far, linger)
				}
			})
		},
	}
}
