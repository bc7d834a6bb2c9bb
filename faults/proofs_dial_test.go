package faults_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// A dialProof says what the dialling side finds for one effect of LevelConnection.
type dialProof struct {
	text  string
	err   func(err error) bool // the dial fails so; nil where there is a connection
	send  string               // what a raw client sends
	bytes string               // the bytes that come
	end   string               // byFIN, byRST, silence
	shake func(err error) bool // instead of send: how the handshake of a raw TLS client fails
	see   func(err error) bool // what Do of net/http returns
	tls   bool                 // in what world the client is
}

func dialProofs() []dialProof {
	is := func(target error) func(error) bool { return func(err error) bool { return errors.Is(err, target) } }
	dns := func(found, temporary bool) func(error) bool {
		return func(err error) bool {
			var e *net.DNSError
			var op *net.OpError
			return errors.As(err, &e) && e.IsNotFound == found && e.IsTemporary == temporary && e.Name == serverName &&
				errors.As(err, &op) && op.Op == "dial"
		}
	}
	alert := func(text string) func(error) bool {
		return func(err error) bool {
			var op *net.OpError
			// The type of the alert is not exported; its text is all that tells it from others.
			return errors.As(err, &op) && op.Op == "remote error" && strings.HasSuffix(err.Error(), text)
		}
	}
	refused := func(err error) bool {
		var op *net.OpError
		return errors.Is(err, syscall.ECONNREFUSED) && errors.As(err, &op) && op.Op == "dial"
	}
	timeout := func(err error) bool {
		var ne net.Error
		return errors.Is(err, context.DeadlineExceeded) && errors.As(err, &ne) && ne.Timeout()
	}
	certificate := func(inner func(error) bool) func(error) bool {
		return func(err error) bool {
			var v *tls.CertificateVerificationError
			return errors.As(err, &v) && inner(err)
		}
	}
	untrusted := certificate(func(err error) bool { var e x509.UnknownAuthorityError; return errors.As(err, &e) })
	expired := certificate(func(err error) bool {
		var e x509.CertificateInvalidError
		return errors.As(err, &e) && e.Reason == x509.Expired
	})
	wrongName := certificate(func(err error) bool { var e x509.HostnameError; return errors.As(err, &e) && e.Host == serverName })
	// Without TLS net/http may not have got to sending the request when it sees the end, and has other errors then.
	some := func(err error) bool { return !timeout(err) }
	return []dialProof{
		{text: "connect_refused", err: refused, see: refused},
		{text: "connect_refused", err: refused, see: refused, tls: true},
		{text: "dns_not_found", err: dns(true, false), see: dns(true, false)},
		{text: "dns_temporary", err: dns(false, true), see: dns(false, true)},
		{text: "accept_hang", send: rawRequest, end: silence, see: timeout},
		{text: "accept_hang", send: hello, end: silence, see: timeout, tls: true},
		{text: "close_at_accept end=fin", end: byFIN, see: some},
		{text: "close_at_accept end=rst", end: byRST, see: some},
		{text: "close_at_accept end=fin", end: byFIN, see: is(io.EOF), tls: true},
		{text: "close_at_accept end=rst", end: byRST, see: is(syscall.ECONNRESET), tls: true},
		{text: "tls_handshake_failure", send: hello, bytes: "\x15\x03\x03\x00\x02\x02\x28", end: byFIN, see: alert("handshake failure"), tls: true},
		{text: "tls_version_refused", send: hello, bytes: "\x15\x03\x03\x00\x02\x02\x46", end: byFIN, see: alert("protocol version not supported"), tls: true},
		{text: "tls_handshake_hang", send: hello, end: silence, see: timeout, tls: true},
		{text: "tls_close_in_handshake end=fin", send: hello, end: byFIN, see: is(io.EOF), tls: true},
		{text: "tls_close_in_handshake end=rst", send: hello, end: byRST, see: is(syscall.ECONNRESET), tls: true},
		{text: "tls_bad_certificate variant=untrusted", shake: untrusted, see: untrusted, tls: true},
		{text: "tls_bad_certificate variant=expired", shake: expired, see: expired, tls: true},
		{text: "tls_bad_certificate variant=wrong_name", shake: wrongName, see: wrongName, tls: true},
	}
}

// dialKeys are the combinations that are proven here.
func dialKeys(t *testing.T) []string {
	var keys []string
	for _, p := range dialProofs() {
		if k := key(parse(t, p.text)); !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	return keys
}
