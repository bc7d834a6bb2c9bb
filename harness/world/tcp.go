package world

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// tcpNet is the loopback network. It keeps every live connection of both
// sides, so that close can end them.
type tcpNet struct {
	owner  *Network
	dialer net.Dialer

	mu        sync.Mutex
	closed    bool
	listeners map[*tcpListener]struct{}
	own       map[string]struct{} // addresses that were listened on here
	accepted  map[*acceptedConn]struct{}
	dialled   map[*dialledConn]struct{}
}

func newTCPNet(owner *Network) *tcpNet {
	return &tcpNet{
		owner:     owner,
		listeners: make(map[*tcpListener]struct{}),
		own:       make(map[string]struct{}),
		accepted:  make(map[*acceptedConn]struct{}),
		dialled:   make(map[*dialledConn]struct{}),
	}
}

func (n *tcpNet) listen() (net.Listener, error) {
	// "tcp" and not "tcp4": the word appears in every error of the connections.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	tl := &tcpListener{TCPListener: l.(*net.TCPListener), net: n}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		_ = l.Close()
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
	}
	n.listeners[tl] = struct{}{}
	n.own[l.Addr().String()] = struct{}{}
	return tl, nil
}

func (n *tcpNet) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if n.isClosed() {
		return nil, n.refusedAfterClose(network, addr)
	}
	c, err := n.dialer.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	tc, ok := c.(*net.TCPConn)
	if !ok {
		_ = c.Close()
		return nil, dialError(network, nil, net.UnknownNetworkError(network))
	}
	dc := &dialledConn{TCPConn: tc, net: n}
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		reset(tc)
		return nil, n.refusedAfterClose(network, addr)
	}
	n.dialled[dc] = struct{}{}
	n.mu.Unlock()
	n.owner.clientOpened()
	return dc, nil
}

func (n *tcpNet) isClosed() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.closed
}

func (n *tcpNet) refusedAfterClose(network, addr string) error {
	to, _ := net.ResolveTCPAddr("tcp", addr)
	return dialError(network, to, os.NewSyscallError("connect", syscall.ECONNREFUSED))
}

func (n *tcpNet) close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	listeners, accepted, dialled := n.listeners, n.accepted, n.dialled
	n.listeners, n.accepted, n.dialled = nil, nil, nil
	n.mu.Unlock()

	var errs []error
	for l := range listeners {
		// This resets what is still in the backlog.
		if err := l.TCPListener.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	for c := range accepted {
		reset(c.TCPConn)
	}
	for c := range dialled {
		// A connection to one of our listeners has just been reset by its
		// other end, and the client should find that out by itself: were its
		// socket closed under it, it would see "use of closed network
		// connection" and not a reset. A connection to elsewhere has no
		// other end of ours.
		if _, ours := n.own[c.RemoteAddr().String()]; !ours {
			c.cut.Store(true)
			reset(c.TCPConn)
		}
	}
	return errors.Join(errs...)
}

// reset closes c with a RST. The errors are those of a connection that has
// already ended, which is what is wanted.
func reset(c *net.TCPConn) {
	_ = c.SetLinger(0)
	_ = c.Close()
}

// tcpListener tracks what it accepts.
type tcpListener struct {
	*net.TCPListener
	net *tcpNet
}

// Accept waits for the next connection. It returns an error that is
// net.ErrClosed once the listener or the network has been closed.
func (l *tcpListener) Accept() (net.Conn, error) {
	tc, err := l.AcceptTCP()
	if err != nil {
		return nil, err
	}
	c := &acceptedConn{TCPConn: tc, net: l.net}
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	if l.net.closed {
		reset(tc)
		return nil, &net.OpError{Op: "accept", Net: "tcp", Addr: l.Addr(), Err: net.ErrClosed}
	}
	l.net.accepted[c] = struct{}{}
	return c, nil
}

// Close stops listening and resets what is still in the backlog.
func (l *tcpListener) Close() error {
	l.net.mu.Lock()
	delete(l.net.listeners, l)
	l.net.mu.Unlock()
	return l.TCPListener.Close()
}

// acceptedConn is the server's side of a loopback connection.
type acceptedConn struct {
	*net.TCPConn
	net *tcpNet
}

// Close closes the connection and forgets it.
func (c *acceptedConn) Close() error {
	c.net.mu.Lock()
	delete(c.net.accepted, c)
	c.net.mu.Unlock()
	return c.TCPConn.Close()
}

// dialledConn is the client's side of a loopback connection.
type dialledConn struct {
	*net.TCPConn
	net    *tcpNet
	closed atomic.Bool
	cut    atomic.Bool // the network has closed the socket already
}

// Close closes the connection. The first call ends its count in Network.Open.
func (c *dialledConn) Close() error {
	if c.closed.Swap(true) {
		return c.TCPConn.Close() // reports net.ErrClosed
	}
	c.net.mu.Lock()
	delete(c.net.dialled, c)
	c.net.mu.Unlock()
	c.net.owner.clientClosed()
	if err := c.TCPConn.Close(); err != nil && !c.cut.Load() {
		return err
	}
	return nil
}
