package faults

import "net"

func tlsHandshakeFailure() Entry {
	return Entry{
		Name:      "tls_handshake_failure",
		Doc:       "the ClientHello is answered with the fatal alert handshake_failure (RFC 8446 §6.2), then FIN",
		Category:  Transport,
		Phases:    []Phase{BeforeCommit},
		Protocols: []string{HTTP1},
		Sees:      "*net.OpError whose Op is remote error (the alert itself has no exported type); nothing was sent",
		Where:     WhereDo,
		Example:   "tls_handshake_failure",
		Level:     LevelConnection,
		TLS:       true,
		check:     neverReused,
		dial:      alert(alertHandshakeFailure),
	}
}

func tlsVersionRefused() Entry {
	return Entry{
		Name:      "tls_version_refused",
		Doc:       "the ClientHello is answered with the fatal alert protocol_version (RFC 8446 §6.2), then FIN",
		Category:  Transport,
		Phases:    []Phase{BeforeCommit},
		Protocols: []string{HTTP1},
		Sees:      "*net.OpError whose Op is remote error (the alert itself has no exported type); nothing was sent",
		Where:     WhereDo,
		Example:   "tls_version_refused",
		Level:     LevelConnection,
		TLS:       true,
		check:     neverReused,
		dial:      alert(alertProtocolVersion),
	}
}

func tlsHandshakeHang() Entry {
	return Entry{
		Name:      "tls_handshake_hang",
		Doc:       "the ClientHello is read and never answered; the connection stays open until the client goes",
		Category:  Transport,
		Phases:    []Phase{BeforeCommit},
		Protocols: []string{HTTP1},
		Sees: "nothing, until its own timeout: context.DeadlineExceeded, or net/http's TLS handshake timeout; " +
			"Timeout() is true; nothing was sent",
		Where:   WhereDo,
		Example: "tls_handshake_hang",
		Level:   LevelConnection,
		TLS:     true,
		check:   neverReused,
		blocks:  func(Fault) bool { return true },
		dial: func(d *dialling) (net.Conn, error) {
			return d.meet(nil, func(_ *brokenConn, far stream) {
				if readHello(far) != nil {
					return
				}
				d.Delivered()
				discard(far, 0)
			})
		},
	}
}

func tlsCloseInHandshake() Entry {
	return Entry{
		Name:      "tls_close_in_handshake",
		Doc:       "the ClientHello is read, then the connection is closed without a byte of an answer",
		Category:  Transport,
		Phases:    []Phase{BeforeCommit},
		Protocols: []string{HTTP1},
		Params:    []Param{endParam(func(Fault) End { return EndFIN }, string(EndFIN), EndFIN, EndRST)},
		Sees:      "io.EOF (fin) or syscall.ECONNRESET (rst); nothing was sent",
		Where:     WhereDo,
		Example:   "tls_close_in_handshake end=rst",
		Level:     LevelConnection,
		TLS:       true,
		check:     neverReused,
		dial: func(d *dialling) (net.Conn, error) {
			return d.meet(nil, func(_ *brokenConn, far stream) {
				if readHello(far) != nil {
					return
				}
				if err := d.finish(far, d.fault.End); err != nil {
					return
				}
				d.Delivered()
				if d.fault.End == EndFIN {
					discard(far, linger)
				}
			})
		},
	}
}
