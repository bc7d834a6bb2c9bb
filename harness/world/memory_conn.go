package world

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// memLink is one in-memory connection: both of its ends and the lock that
// guards all of their fields except the fixed ones.
type memLink struct {
	net  *memoryNet
	mu   sync.Mutex
	ends [2]memConn // the client's, the server's

	prev, next *memLink // guarded by net.mu
}

// memConn is one end of a memLink. The words follow the kernel's: a state is
// kept as the two facts it is made of (finSent, finReceived), and dead is its
// TCP_CLOSE.
type memConn struct {
	link          *memLink
	peer          *memConn
	local, remote *net.TCPAddr

	readable, writable sync.Cond
	in                 buffer
	readDL, writeDL    deadline

	// pending is the kernel's sk_err: set by a reset, reported once, to
	// whichever of Read and Write asks first.
	pending syscall.Errno

	closed      bool // by Close on this end
	dead        bool // reset, or both FINs exchanged: nothing more is sent
	finSent     bool
	finReceived bool
	readShut    bool
	abortive    bool // SetLinger(0)
	writing     bool // a Write is under way; one at a time, as in package net
}

func newMemLink(n *memoryNet, client, server *net.TCPAddr) *memLink {
	k := &memLink{net: n}
	k.ends[0].init(k, &k.ends[1], client, server)
	k.ends[1].init(k, &k.ends[0], server, client)
	return k
}

func (c *memConn) init(k *memLink, peer *memConn, local, remote *net.TCPAddr) {
	c.link, c.peer, c.local, c.remote = k, peer, local, remote
	c.readable.L, c.writable.L = &k.mu, &k.mu
}

// LocalAddr returns this end's *net.TCPAddr, which is shared and not to be changed.
func (c *memConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr returns the other end's *net.TCPAddr, which is shared and not to be changed.
func (c *memConn) RemoteAddr() net.Addr { return c.remote }

// Read follows tcp_recvmsg: bytes that have arrived come first, then the FIN,
// then a pending reset, then the end that a shut or dead connection has.
func (c *memConn) Read(p []byte) (int, error) {
	c.link.net.owner.waitIfFrozen()
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	for {
		switch {
		case c.closed:
			return 0, c.opError("read", net.ErrClosed)
		case len(p) == 0:
			return 0, nil
		case c.readDL.passed:
			return 0, c.opError("read", os.ErrDeadlineExceeded)
		case c.in.len() > 0:
			n := c.in.read(p)
			if c.in.len() <= window/2 {
				// Not at every byte: a writer that is woken for each would
				// take a scheduling round trip to write a few bytes.
				c.peer.writable.Broadcast()
			}
			return n, nil
		case c.finReceived:
			return 0, io.EOF
		case c.pending != 0:
			return 0, c.takePending("read")
		case c.readShut || c.dead:
			return 0, io.EOF
		}
		c.readable.Wait()
	}
}

// Write follows tcp_sendmsg, and package net in returning only when all of p
// is in the window, or with an error.
func (c *memConn) Write(p []byte) (int, error) {
	c.link.net.owner.waitIfFrozen()
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	for c.writing && !c.closed {
		c.writable.Wait()
	}
	if c.closed {
		return 0, c.opError("write", net.ErrClosed)
	}
	c.writing = true
	defer func() {
		c.writing = false
		c.writable.Broadcast()
	}()

	n := 0
	for {
		switch {
		case c.closed:
			return n, c.opError("write", net.ErrClosed)
		case c.writeDL.passed:
			return n, c.opError("write", os.ErrDeadlineExceeded)
		case c.pending != 0:
			return n, c.takePending("write")
		case c.finSent || c.dead:
			return n, c.opError("write", os.NewSyscallError("write", syscall.EPIPE))
		case len(p) == 0:
			return 0, nil
		case c.peer.closed:
			// The peer is gone and answers the bytes with a RST. The write
			// itself has succeeded by then.
			c.reset()
			return len(p), nil
		case c.peer.readShut && c.peer.finSent:
			// Data for an end that can neither read nor write any more.
			c.peer.reset()
			c.reset()
			return len(p), nil
		}
		if k := c.peer.in.write(p[n:]); k > 0 {
			n += k
			c.peer.readable.Broadcast()
			if n == len(p) {
				return n, nil
			}
		}
		c.writable.Wait()
	}
}

// Close sends a FIN, or a RST if SetLinger(0) was set or if bytes that have
// arrived were not read. Blocked calls return net.ErrClosed.
func (c *memConn) Close() error {
	c.link.net.owner.waitIfFrozen()
	c.link.mu.Lock()
	if c.closed {
		c.link.mu.Unlock()
		return c.opError("close", net.ErrClosed)
	}
	c.closed = true
	unread := c.in.len() > 0
	c.in.discard()
	if !c.dead {
		if unread || c.abortive {
			c.dead = true
			c.peer.reset()
		} else {
			c.sendFIN()
		}
	}
	c.readDL.clear()
	c.writeDL.clear()
	c.readable.Broadcast()
	c.writable.Broadcast()
	both := c.peer.closed
	c.link.mu.Unlock()

	if c == &c.link.ends[0] {
		c.link.net.owner.clientClosed()
	}
	if both {
		c.link.net.forget(c.link)
	}
	return nil
}

// CloseWrite sends a FIN. It fails with ENOTCONN on a connection that has
// been reset or that both sides have ended.
func (c *memConn) CloseWrite() error {
	return c.shutdown(func() {
		c.sendFIN()
		c.writable.Broadcast()
	})
}

// CloseRead makes Read return io.EOF when nothing is left to read. The peer
// is not told, and what it sends can still be read, as on Linux.
func (c *memConn) CloseRead() error {
	return c.shutdown(func() {
		c.readShut = true
		c.readable.Broadcast()
	})
}

func (c *memConn) shutdown(f func()) error {
	c.link.net.owner.waitIfFrozen()
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	switch {
	case c.closed:
		return c.opError("close", net.ErrClosed)
	case c.dead:
		return c.opError("close", os.NewSyscallError("shutdown", syscall.ENOTCONN))
	}
	f()
	return nil
}

// SetLinger(0) makes Close send a RST. Any other value means a plain Close:
// there is no send queue to linger for.
func (c *memConn) SetLinger(sec int) error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.closed {
		return c.opError("set", net.ErrClosed)
	}
	c.abortive = sec == 0
	return nil
}

// SetDeadline sets both deadlines.
func (c *memConn) SetDeadline(t time.Time) error { return c.setDeadlines(t, true, true) }

// SetReadDeadline sets the deadline of pending and later reads.
func (c *memConn) SetReadDeadline(t time.Time) error { return c.setDeadlines(t, true, false) }

// SetWriteDeadline sets the deadline of pending and later writes.
func (c *memConn) SetWriteDeadline(t time.Time) error { return c.setDeadlines(t, false, true) }

func (c *memConn) setDeadlines(t time.Time, read, write bool) error {
	c.link.mu.Lock()
	defer c.link.mu.Unlock()
	if c.closed {
		return &net.OpError{Op: "set", Net: "tcp", Addr: c.local, Err: net.ErrClosed}
	}
	if read {
		c.readDL.set(t, &c.readable)
	}
	if write {
		c.writeDL.set(t, &c.writable)
	}
	return nil
}

// sendFIN ends this end's stream. The caller holds the lock.
func (c *memConn) sendFIN() {
	if c.finSent {
		return
	}
	c.finSent = true
	c.peer.finReceived = true
	c.peer.readable.Broadcast()
	if c.finReceived {
		c.dead, c.peer.dead = true, true
	}
}

// reset is the arrival of a RST at this end, as in tcp_reset: what has arrived
// before stays readable. The caller holds the lock.
func (c *memConn) reset() {
	if c.dead {
		return
	}
	c.pending = syscall.ECONNRESET
	if c.finReceived && !c.finSent {
		c.pending = syscall.EPIPE // the kernel's CLOSE_WAIT
	}
	c.dead = true
	c.readable.Broadcast()
	c.writable.Broadcast()
}

// abort resets both ends, as a box between them might.
func (k *memLink) abort() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ends[0].reset()
	k.ends[1].reset()
}

func (c *memConn) takePending(call string) error {
	err := c.opError(call, os.NewSyscallError(call, c.pending))
	c.pending = 0
	return err
}

func (c *memConn) opError(op string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}
