package faults

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// A Network is what a Dialer needs of the world; *world.Network is one. Its connections have the methods
// of *net.TCPConn that stream names.
type Network interface {
	Listen() (net.Listener, error)
	DialContext(ctx context.Context, network, addr string) (net.Conn, error)
}

// stream is a connection of a Network.
type stream interface {
	net.Conn
	CloseRead() error
	CloseWrite() error
	SetLinger(sec int) error
}

// A Dialer makes connections that break on purpose: it is to faults of LevelConnection what Apply is to the
// others. Nothing is pretended: refused connections are refused by the network, and whatever else happens
// is done by a listener of the Dialer's own, the trap, to which the client is connected in place of the
// server. So the addresses in errors are not the server's. A Dialer is safe for concurrent use.
type Dialer struct {
	net  Network
	ca   *Authority // nil where the server speaks no TLS
	trap net.Listener
	work sync.WaitGroup

	closing chan struct{}

	dialling sync.Mutex // one dial to the trap at a time, so that what it accepts is known
	nobody   string     // an address where nobody listens, once one was needed; with dialling

	mu     sync.Mutex
	closed bool
	held   map[stream]struct{} // the trap's side of the connections
}

// NewDialer opens the trap on n. ca is nil where the server speaks no TLS; then faults of TLS are refused.
func NewDialer(n Network, ca *Authority) (*Dialer, error) {
	trap, err := n.Listen()
	if err != nil {
		return nil, fmt.Errorf("faults: opening the trap: %w", err)
	}
	return &Dialer{net: n, ca: ca, trap: trap, closing: make(chan struct{}), held: map[stream]struct{}{}}, nil
}

// Close ends every connection that still hangs and waits until the trap is done with all of them. A second
// Close does nothing.
func (d *Dialer) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	close(d.closing)
	for c := range d.held {
		_ = c.SetLinger(0)
		_ = c.Close()
	}
	d.mu.Unlock()
	err := d.trap.Close()
	d.work.Wait()
	return err
}

// A Connecting is how a fault tells of the connection that it strikes. Its functions are called from any
// goroutine, each as often as its fact becomes known; none may be nil.
type Connecting struct {
	// Delivered: the wire effect has happened or, for silence, begun.
	Delivered func()
	// Over: the connection has ended, or was never made.
	Over func()
	// Sent: the client has begun to send something that may be its request.
	Sent func()
	// Failed: the fault could not be delivered, and that is not the client's doing.
	Failed func(err error)
}

// Dial does f to a connection that is about to be made, and returns what the client gets. host is the name
// that the client asked for, for faults of name resolution.
func (d *Dialer) Dial(ctx context.Context, network, host string, f Fault, tell Connecting) (net.Conn, error) {
	f = f.filled()
	e, ok := Lookup(f.Name)
	var err error
	switch {
	case !ok || e.Level != LevelConnection:
		err = fmt.Errorf("faults: %s is no fault of a connection", f)
	case e.TLS && d.ca == nil:
		err = fmt.Errorf("faults: %s needs a server that speaks TLS", f)
	}
	if err != nil {
		tell.Failed(err)
		return nil, err
	}
	return e.dial(&dialling{Dialer: d, Connecting: tell, ctx: ctx, network: network, host: host, fault: f})
}

// A dialling is one fault on its way to one connection.
type dialling struct {
	*Dialer
	Connecting
	ctx           context.Context
	network, host string
	fault         Fault
}

// failed ends a dial that the fault could not be done to. A client that has gone is nobody's failure.
func (d *dialling) failed(err error) (net.Conn, error) {
	if d.ctx.Err() == nil {
		d.Failed(err)
	}
	d.Over()
	return nil, err
}

// refusals is how often another address is tried after one where somebody did listen.
const refusals = 8

// refused dials an address where nobody listens.
func (d *dialling) refused() error {
	d.Dialer.dialling.Lock()
	defer d.Dialer.dialling.Unlock()
	for range refusals {
		if d.nobody == "" {
			l, err := d.net.Listen()
			if err != nil {
				return err
			}
			d.nobody = l.Addr().String()
			_ = l.Close()
		}
		c, err := d.net.DialContext(d.ctx, d.network, d.nobody)
		if err != nil {
			return err
		}
		// The kernel has given the port away in the meantime, perhaps to this very connection.
		_ = c.Close()
		d.nobody = ""
	}
	return errors.New("faults: every address that was tried is listened on")
}

// connect makes a connection to the trap and returns both of its ends.
func (d *dialling) connect() (near, far stream, err error) {
	d.Dialer.dialling.Lock()
	defer d.Dialer.dialling.Unlock()
	c, err := d.net.DialContext(d.ctx, d.network, d.trap.Addr().String())
	if err != nil {
		return nil, nil, err
	}
	near, ok := c.(stream)
	if !ok {
		_ = c.Close()
		return nil, nil, fmt.Errorf("faults: a connection of type %T cannot be broken", c)
	}
	for {
		c, err := d.trap.Accept()
		if err != nil {
			_ = near.Close()
			return nil, nil, err
		}
		// Whoever else has come by is not meant.
		if far, ok := c.(stream); ok && far.RemoteAddr().String() == near.LocalAddr().String() {
			return near, far, nil
		}
		_ = c.Close()
	}
}

// meet connects the client to the trap, where serve does the wire effect; the trap's side is closed when it
// returns. at, if not nil, comes before the client learns of its connection.
func (d *dialling) meet(at func(far stream) error, serve func(c *brokenConn, far stream)) (net.Conn, error) {
	near, far, err := d.connect()
	if err != nil {
		return d.failed(err)
	}
	if !d.hold(far) {
		_ = far.Close()
		_ = near.Close()
		return d.failed(net.ErrClosed)
	}
	c := &brokenConn{stream: near, gone: make(chan struct{}), sent: d.Sent, tls: d.ca != nil}
	if at != nil {
		if err := at(far); err != nil {
			defer d.work.Done()
			d.drop(far)
			_ = near.Close()
			return d.failed(err)
		}
	}
	go func() {
		defer d.work.Done()
		serve(c, far)
		d.drop(far)
		d.Over()
	}()
	return c, nil
}

// hold keeps far until drop, and makes Close wait for work.Done; it returns false if the Dialer is closed.
func (d *Dialer) hold(far stream) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.held[far] = struct{}{}
	d.work.Add(1)
	return true
}

func (d *Dialer) drop(far stream) {
	d.mu.Lock()
	delete(d.held, far)
	d.mu.Unlock()
	_ = far.Close() // the client may have closed first: there is nothing to tell
}

// finish ends the trap's side as end says.
func (d *dialling) finish(far stream, end End) error {
	if end == EndRST {
		if err := far.SetLinger(0); err != nil {
			return err
		}
		return far.Close()
	}
	return far.CloseWrite()
}

// discard reads what the client sends until it goes, or for so long (0: no limit): a close with bytes unread
// would be a RST.
func discard(far net.Conn, limit time.Duration) {
	if limit > 0 {
		_ = far.SetReadDeadline(time.Now().Add(limit))
	}
	_, _ = io.Copy(io.Discard, far)
}

// brokenConn is the client's side of a connection to the trap.
type brokenConn struct {
	stream
	tls  bool // what is written is the handshake, and no request
	sent func()
	once sync.Once
	gone chan struct{} // closed when the client has closed
}

func (c *brokenConn) Write(b []byte) (int, error) {
	if !c.tls && len(b) > 0 {
		c.sent()
	}
	return c.stream.Write(b)
}

func (c *brokenConn) Close() error {
	err := c.stream.Close()
	c.once.Do(func() { close(c.gone) })
	return err
}
