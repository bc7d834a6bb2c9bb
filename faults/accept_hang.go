package faults

import "net"

func acceptHang() Entry {
	return Entry{
		Name:      "accept_hang",
		Doc:       "the SYN is answered and the connection stands, but nobody takes it: nothing is read and nothing is sent until the client goes",
		Category:  Transport,
		Phases:    []Phase{BeforeCommit},
		Protocols: []string{HTTP1},
		Sees: "nothing, until its own timeout: context.DeadlineExceeded, or net/http's TLS handshake timeout; Timeout() " +
			"is true. Without TLS the request has been written, and its fate is open",
		Where:   WhereDo,
		Example: "accept_hang",
		Level:   LevelConnection,
		check:   neverReused,
		blocks:  func(Fault) bool { return true },
		dial: func(d *dialling) (net.Conn, error) {
			begun := func(stream) error { d.Delivered(); return nil }
			return d.meet(begun, func(c *brokenConn, _ stream) {
				select {
				case <-c.gone:
				case <-d.closing:
				}
			})
		},
	}
}
