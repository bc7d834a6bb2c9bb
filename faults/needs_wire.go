package faults

// NeedsWire reports whether f can only be done to a connection: by taking it from net/http to leave it silent,
// closed, reset or filled with what net/http would not send, or by waiting for a fresh or a reused one. What
// needs no wire (ok, latency, a whole answer that says no or makes no sense) can also be served by whatever
// stands in for a connection. An entry that does not say needs a wire.
func (f Fault) NeedsWire() bool {
	if f.On != AnyConn {
		return true
	}
	if f.IsOK() {
		return false
	}
	e, ok := Lookup(f.Name)
	return !ok || e.byHTTP == nil || !e.byHTTP(f.filled())
}

// answeredByHTTP is the byHTTP of effects that are sent by respond.
func answeredByHTTP(f Fault) bool { return f.Phase != CommitLate && f.End != EndFIN }
