package serve

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
)

// bounded is the listener of one run: it bounds open connections and received bytes, and ends all connections when
// it is closed.
type bounded struct {
	*net.TCPListener
	maxConns int
	left     atomic.Int64 // bytes that may still be received

	mu      sync.Mutex
	conns   map[*conn]struct{}
	closed  bool
	reached string // the bound that was reached first
}

// listen opens a port on host.
func listen(host string, maxConns int, maxBytes int64) (*bounded, error) {
	l, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	b := &bounded{TCPListener: l.(*net.TCPListener), maxConns: maxConns, conns: map[*conn]struct{}{}}
	b.left.Store(maxBytes)
	return b, nil
}

// full notes that a bound was reached. Callers hold mu.
func (b *bounded) full(format string, args ...any) {
	if b.reached == "" {
		b.reached = fmt.Sprintf(format, args...)
	}
}

// bound says which bound was reached, "" for none.
func (b *bounded) bound() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.reached
}

// Accept waits for the next connection. One beyond the bounds is reset.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		tc, err := b.AcceptTCP()
		if err != nil {
			return nil, err
		}
		c := &conn{TCPConn: tc, from: b}
		b.mu.Lock()
		switch {
		case b.closed:
		case len(b.conns) >= b.maxConns:
			b.full("more than %d connections at once: the others were reset", b.maxConns)
		case b.left.Load() <= 0:
		default:
			b.conns[c] = struct{}{}
			b.mu.Unlock()
			return c, nil
		}
		b.mu.Unlock()
		reset(tc)
	}
}

// Close stops listening and resets every connection.
func (b *bounded) Close() error {
	b.mu.Lock()
	b.closed = true
	conns := b.conns
	b.conns = nil
	b.mu.Unlock()
	err := b.TCPListener.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	for c := range conns {
		reset(c.TCPConn)
	}
	return err
}

// reset closes with a RST. Its errors are those of a connection that has ended already.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// conn is one connection of a run. All but reading and closing is the TCP connection's own, so that faults can break
// it.
type conn struct {
	*net.TCPConn
	from *bounded
}

// Read reads, as long as the run may receive.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	if n > 0 && c.from.left.Add(-int64(n)) < 0 {
		c.from.mu.Lock()
		c.from.full("more bytes were received than a run may: its connections were reset")
		c.from.mu.Unlock()
		reset(c.TCPConn)
		return 0, net.ErrClosed
	}
	return n, err
}

// Close closes the connection and forgets it.
func (c *conn) Close() error {
	c.from.mu.Lock()
	delete(c.from.conns, c)
	c.from.mu.Unlock()
	return c.TCPConn.Close()
}
