// Package h2 is a frame-level HTTP/2 server (RFC 9113): it reads and writes frames by golang.org/x/net's Framer
// and hpack and leaves what is answered, refused or broken to its Handler. A server made of net/http would
// correct what a fault wants to get wrong.
//
// What it does by itself is what every server owes: the preface and SETTINGS, flow control in both directions,
// PING, trailers, and the errors of RFC 9113 §5.4 where a client breaks the protocol. It negotiates nothing:
// [Server.ServeConn] wants a connection on which HTTP/2 is agreed, by prior knowledge (§3.3) or by ALPN.
package h2
