package faults

import "net"

func dnsNotFound() Entry {
	return Entry{
		Name:      "dns_not_found",
		Doc:       "the host name does not exist (NXDOMAIN, RFC 1035 §4.1.1): no address, no connection",
		Category:  Transport,
		Phases:    []Phase{BeforeCommit},
		Protocols: []string{HTTP1},
		Sees:      "*net.DNSError with IsNotFound; nothing was sent, and resolvers remember the answer (RFC 2308)",
		Where:     WhereDo,
		Example:   "dns_not_found",
		Level:     LevelConnection,
		check:     neverReused,
		dial:      lookup(net.DNSError{Err: "no such host", IsNotFound: true}),
	}
}

func dnsTemporary() Entry {
	return Entry{
		Name:      "dns_temporary",
		Doc:       "the resolver fails for the time being (SERVFAIL, RFC 1035 §4.1.1): no address, no connection",
		Category:  Transport,
		Phases:    []Phase{BeforeCommit},
		Protocols: []string{HTTP1},
		Sees:      "*net.DNSError with IsTemporary; nothing was sent",
		Where:     WhereDo,
		Example:   "dns_temporary times=2",
		Level:     LevelConnection,
		check:     neverReused,
		dial:      lookup(net.DNSError{Err: "server misbehaving", IsTemporary: true}),
	}
}

// lookup makes an entry's effect: the dial ends as net.Dialer's does when its resolver gives that error.
func lookup(answer net.DNSError) func(d *dialling) (net.Conn, error) {
	return func(d *dialling) (net.Conn, error) {
		answer := answer
		answer.Name = d.host
		d.Delivered()
		d.Over()
		return nil, &net.OpError{Op: "dial", Net: d.network, Err: &answer}
	}
}
