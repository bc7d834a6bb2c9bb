package faults

import (
	"crypto/tls"
	"net"
)

func tlsBadCertificate() Entry {
	return Entry{
		Name:      "tls_bad_certificate",
		Doc:       "the handshake goes well but for the server's certificate, which a client must refuse: from an unknown authority, expired, or for another name",
		Category:  Transport,
		Phases:    []Phase{BeforeCommit},
		Protocols: []string{HTTP1},
		Params: []Param{variantParam("what is wrong with the certificate", certUntrusted,
			certUntrusted, certExpired, certWrongName)},
		Sees: "*tls.CertificateVerificationError, in it x509.UnknownAuthorityError, x509.CertificateInvalidError or " +
			"x509.HostnameError; nothing was sent, and waiting does not help",
		Where:   WhereDo,
		Example: "tls_bad_certificate variant=expired",
		Level:   LevelConnection,
		TLS:     true,
		check:   neverReused,
		dial: func(d *dialling) (net.Conn, error) {
			cert, err := d.ca.broken(d.fault.Variant)
			if err != nil {
				return d.failed(err)
			}
			return d.meet(nil, func(_ *brokenConn, far stream) {
				shown := false
				server := tls.Server(far, &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
					shown = true
					return &cert, nil
				}})
				err := server.Handshake()
				if shown {
					d.Delivered()
				}
				if err == nil {
					// The client did not verify, or did not mind. What it sends now goes to a stranger.
					d.Sent()
				}
				_ = d.finish(far, EndFIN)
				discard(far, linger)
			})
		},
	}
}
