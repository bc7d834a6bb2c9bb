package faults

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
)

// Alerts of RFC 8446 §6.2.
const (
	alertHandshakeFailure = 40
	alertProtocolVersion  = 70
)

// maxRecord bounds the fragment of a TLS record (RFC 8446 §5.1).
const maxRecord = 1 << 14

// readHello reads one TLS record, which is the client's first: its ClientHello. An error means that the
// client did not send one, and so cannot meet what was to follow.
func readHello(c net.Conn) error {
	var head [5]byte
	if _, err := io.ReadFull(c, head[:]); err != nil {
		return err
	}
	n := binary.BigEndian.Uint16(head[3:])
	if head[0] != 22 || n > maxRecord {
		return errors.New("no TLS handshake record")
	}
	_, err := io.CopyN(io.Discard, c, int64(n))
	return err
}

// alert makes an entry's effect: the ClientHello is answered with a fatal alert, then FIN.
func alert(code byte) func(d *dialling) (net.Conn, error) {
	return func(d *dialling) (net.Conn, error) {
		return d.meet(nil, func(_ *brokenConn, far stream) {
			if readHello(far) != nil {
				return
			}
			// Record type 21, version 1.2 as in every record of 1.3, two bytes: fatal, code.
			if _, err := far.Write([]byte{21, 3, 3, 0, 2, 2, code}); err != nil {
				return
			}
			d.Delivered()
			_ = d.finish(far, EndFIN)
			discard(far, linger)
		})
	}
}
