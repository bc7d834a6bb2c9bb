package world

import (
	"context"
	"net"
	"sync/atomic"
)

// Kind names one of the two worlds.
type Kind string

const (
	// Virtual is fake time in a bubble over an in-memory network.
	Virtual Kind = "virtual"
	// Loopback is real time over TCP on 127.0.0.1.
	Loopback Kind = "loopback"
)

// Conn is what a fault needs of a connection, on either side of it.
// *net.TCPConn and the connections of every Network satisfy it.
// Its methods may be called from several goroutines at once.
type Conn interface {
	net.Conn

	// CloseRead shuts the reading side: reads give what has arrived, then io.EOF.
	CloseRead() error

	// CloseWrite sends a FIN and leaves the reading side open.
	CloseWrite() error

	// SetLinger(0) makes the following Close send a RST.
	SetLinger(sec int) error
}

// Network is the network of one run. Make it with [Memory] or [TCP].
// Its methods may be called from several goroutines at once.
type Network struct {
	kind    Kind
	fabric  fabric
	open    atomic.Int64
	dialled atomic.Int64
	frozen  atomic.Bool
}

// fabric is what differs between the two networks.
type fabric interface {
	listen() (net.Listener, error)
	dial(ctx context.Context, network, addr string) (net.Conn, error)
	close() error
}

// Memory returns a new in-memory network. Ports are counted from a fixed
// number, so that the same run has the same addresses every time it is
// replayed; two networks therefore share addresses but reach only themselves.
func Memory() *Network {
	n := &Network{kind: Virtual}
	n.fabric = newMemoryNet(n)
	return n
}

// TCP returns a new network on the loopback interface of this machine.
func TCP() *Network {
	n := &Network{kind: Loopback}
	n.fabric = newTCPNet(n)
	return n
}

// Kind says which of the two networks this is.
func (n *Network) Kind() Kind { return n.kind }

// Listen opens a listener on 127.0.0.1 with a port of the network's choice.
// The connections that it accepts satisfy [Conn]. It fails once the network
// has been closed.
func (n *Network) Listen() (net.Listener, error) {
	n.waitIfFrozen()
	return n.fabric.listen()
}

// DialContext connects to addr; it fits http.Transport.DialContext. As the
// kernel does, it succeeds when the connection is in the listener's backlog,
// before it is accepted. The returned connection satisfies [Conn] and counts
// in [Network.Open] until the client closes it.
//
// Errors are those of net.Dialer: an *net.OpError holding ECONNREFUSED where
// nobody listens, and one that is context.Canceled or context.DeadlineExceeded
// (and then says Timeout) if ctx ends first. The memory network resolves
// "localhost" and IP addresses only; any other name is not found, and no real
// lookup is ever made.
func (n *Network) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	n.waitIfFrozen()
	c, err := n.fabric.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// Open is the number of connections that the client has dialled and not yet
// closed itself. That the server or [Network.Close] ended one changes nothing.
func (n *Network) Open() int { return int(n.open.Load()) }

// Dialled is the number of connections that were established by DialContext.
func (n *Network) Dialled() int { return int(n.dialled.Load()) }

// Close closes the listeners and resets every connection: whoever still uses
// one sees ECONNRESET. Later dials are refused. A second Close does nothing.
//
// On the loopback network the server's sockets are closed, so the server's own
// calls see net.ErrClosed, while the client's sockets stay open, reset, until
// the client closes them (or the garbage collector does). A memory network
// must be closed inside the bubble that used it; closing a frozen one does nothing.
func (n *Network) Close() error {
	if n.frozen.Load() {
		return nil
	}
	return n.fabric.close()
}

// Freeze makes every later call on a memory network and on its connections
// block for ever. Unlike Close it may be called outside the bubble, and it is
// meant for after an abandoned [Bubble]: a client that dials in a hot loop
// stops using the processor, and since its goroutine waits for something
// outside the bubble, virtual time stops with it. It cannot be undone, and has
// no effect on a loopback network.
func (n *Network) Freeze() {
	if n.kind == Virtual {
		n.frozen.Store(true)
	}
}

func (n *Network) waitIfFrozen() {
	if n.frozen.Load() {
		<-forever
	}
}

func (n *Network) clientOpened() {
	n.dialled.Add(1)
	n.open.Add(1)
}

func (n *Network) clientClosed() { n.open.Add(-1) }

// forever is never closed. It is made outside every bubble, so a goroutine
// that waits for it is not durably blocked and keeps its bubble's clock still.
var forever = make(chan struct{})
