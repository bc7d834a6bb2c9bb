package world

import (
	"context"
	"net"
	"os"
	"strconv"
	"sync"
	"syscall"
)

const (
	// maxBacklog is Linux's somaxconn.
	maxBacklog = 4096

	// Listeners count up from firstPort, clients take Linux's ephemeral ports
	// in turn and then those of the next address in 127.0.0.0/8. No pair of
	// addresses comes twice in a run, so a history can name a connection by it.
	firstPort      = 20001
	ephemeralFirst = 32768
	ephemeralPorts = 60999 - ephemeralFirst + 1
)

var localhost = net.IPv4(127, 0, 0, 1)

// memoryNet is the in-memory network. Lock order: mu is never held while a
// memLink's lock is taken.
type memoryNet struct {
	owner   *Network
	backlog int

	mu        sync.Mutex
	closed    bool
	listeners map[int]*memListener
	ports     int     // listeners opened so far
	clients   int     // connections made so far
	links     memLink // head of the ring of links of which an end is open
}

func newMemoryNet(owner *Network) *memoryNet {
	n := &memoryNet{owner: owner, backlog: maxBacklog, listeners: make(map[int]*memListener)}
	n.links.prev, n.links.next = &n.links, &n.links
	return n
}

func (n *memoryNet) listen() (net.Listener, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	addr := &net.TCPAddr{IP: localhost, Port: firstPort + n.ports}
	switch {
	case n.closed:
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: addr, Err: net.ErrClosed}
	case addr.Port >= ephemeralFirst:
		return nil, &net.OpError{Op: "listen", Net: "tcp", Addr: addr, Err: os.NewSyscallError("bind", syscall.EADDRINUSE)}
	}
	n.ports++
	l := &memListener{net: n, addr: addr}
	l.acceptable.L = &n.mu
	n.listeners[addr.Port] = l
	return l, nil
}

func (n *memoryNet) dial(ctx context.Context, network, address string) (net.Conn, error) {
	to, err := resolve(network, address)
	if err != nil {
		return nil, dialError(network, nil, err)
	}
	if ctx.Err() != nil {
		return nil, dialError(network, to, contextError(ctx))
	}
	if !to.IP.IsLoopback() {
		return nil, dialError(network, to, os.NewSyscallError("connect", syscall.ENETUNREACH))
	}
	n.mu.Lock()
	l := n.listeners[to.Port]
	if l == nil || !to.IP.Equal(localhost) {
		n.mu.Unlock()
		return nil, refused(network, to)
	}
	if len(l.queue) < n.backlog {
		k := l.enqueue()
		n.mu.Unlock()
		n.owner.clientOpened()
		return &k.ends[0], nil
	}
	w := &dialWaiter{granted: make(chan *memLink, 1)}
	l.waiters = append(l.waiters, w)
	n.mu.Unlock()

	select {
	case k := <-w.granted:
		if k == nil {
			return nil, refused(network, to)
		}
		n.owner.clientOpened()
		return &k.ends[0], nil
	case <-ctx.Done():
		n.mu.Lock()
		l.drop(w)
		n.mu.Unlock()
		// The place may have come just before: the server then sees a
		// connection that its client has given up, as it would on TCP.
		select {
		case k := <-w.granted:
			if k != nil {
				n.owner.clientOpened()
				_ = k.ends[0].Close()
			}
		default:
		}
		return nil, dialError(network, to, contextError(ctx))
	}
}

// resolve turns an address into one of 127.0.0.0/8 or of elsewhere, without
// asking any resolver of the machine.
func resolve(network, address string) (*net.TCPAddr, error) {
	if network != "tcp" && network != "tcp4" {
		return nil, net.UnknownNetworkError(network)
	}
	host, service, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(service, 10, 16)
	if err != nil {
		return nil, &net.AddrError{Err: "unknown port", Addr: address}
	}
	to := &net.TCPAddr{IP: localhost, Port: int(port)}
	if host == "" || host == "localhost" {
		return to, nil
	}
	if to.IP = net.ParseIP(host); to.IP == nil {
		return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
	}
	return to, nil
}

// connect makes a link to addr and keeps it. The caller holds mu.
func (n *memoryNet) connect(addr *net.TCPAddr) *memLink {
	i := n.clients
	n.clients++
	ip, host := localhost, 1+i/ephemeralPorts
	if host > 1 {
		ip = net.IPv4(127, byte(host>>16), byte(host>>8), byte(host))
	}
	k := newMemLink(n, &net.TCPAddr{IP: ip, Port: ephemeralFirst + i%ephemeralPorts}, addr)
	k.prev, k.next = &n.links, n.links.next
	k.next.prev, k.prev.next = k, k
	return k
}

// forget drops a link of which both ends are closed.
func (n *memoryNet) forget(k *memLink) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if k.next == nil {
		return // close has dropped it already
	}
	k.prev.next, k.next.prev = k.next, k.prev
	k.prev, k.next = nil, nil
}

func (n *memoryNet) close() error {
	n.mu.Lock()
	if n.closed {
		n.mu.Unlock()
		return nil
	}
	n.closed = true
	for _, l := range n.listeners {
		l.shut()
	}
	var links []*memLink
	for k := n.links.next; k != &n.links; {
		next := k.next
		k.prev, k.next = nil, nil
		links = append(links, k)
		k = next
	}
	n.links.prev, n.links.next = &n.links, &n.links
	n.mu.Unlock()
	for _, k := range links {
		k.abort()
	}
	return nil
}
