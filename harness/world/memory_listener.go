package world

import (
	"net"
	"slices"
	"sync"
)

// memListener is a listener of a memoryNet, whose lock guards it.
type memListener struct {
	net        *memoryNet
	addr       *net.TCPAddr
	acceptable sync.Cond
	closed     bool
	queue      []*memLink    // the backlog: connected, not yet accepted
	waiters    []*dialWaiter // dials for which the backlog had no place
}

// dialWaiter is a dial that waits for a place in the backlog. It is granted a
// link, or nil when the listener closes.
type dialWaiter struct {
	granted chan *memLink // holds one, so that granting never waits
}

// Addr returns the *net.TCPAddr listened on, which is shared and not to be changed.
func (l *memListener) Addr() net.Addr { return l.addr }

// Accept waits for the next connection; it satisfies Conn. The error is
// net.ErrClosed once the listener or the network has been closed.
func (l *memListener) Accept() (net.Conn, error) {
	l.net.owner.waitIfFrozen()
	l.net.mu.Lock()
	defer l.net.mu.Unlock()
	for len(l.queue) == 0 && !l.closed {
		l.acceptable.Wait()
	}
	if l.closed {
		return nil, l.opError("accept")
	}
	k := l.queue[0]
	l.queue[0] = nil
	l.queue = l.queue[1:]
	if len(l.waiters) > 0 {
		w := l.waiters[0]
		l.waiters = slices.Delete(l.waiters, 0, 1)
		w.granted <- l.enqueue()
	}
	return &k.ends[1], nil
}

// Close stops listening, resets the connections that were not accepted and
// refuses the dials that wait for a place in the backlog.
func (l *memListener) Close() error {
	l.net.owner.waitIfFrozen()
	l.net.mu.Lock()
	if l.closed {
		l.net.mu.Unlock()
		return l.opError("close")
	}
	queued := l.shut()
	l.net.mu.Unlock()
	for _, k := range queued {
		_ = k.ends[1].SetLinger(0)
		_ = k.ends[1].Close()
	}
	return nil
}

// shut ends the listener and returns what was in its backlog. The caller holds
// the lock.
func (l *memListener) shut() []*memLink {
	queued := l.queue
	l.closed, l.queue = true, nil
	delete(l.net.listeners, l.addr.Port)
	for _, w := range l.waiters {
		w.granted <- nil
	}
	l.waiters = nil
	l.acceptable.Broadcast()
	return queued
}

// enqueue connects a client. The caller holds the lock.
func (l *memListener) enqueue() *memLink {
	k := l.net.connect(l.addr)
	l.queue = append(l.queue, k)
	l.acceptable.Signal()
	return k
}

// drop takes w off the list. The caller holds the lock.
func (l *memListener) drop(w *dialWaiter) {
	if i := slices.Index(l.waiters, w); i >= 0 {
		l.waiters = slices.Delete(l.waiters, i, i+1)
	}
}

func (l *memListener) opError(op string) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: l.addr, Err: net.ErrClosed}
}
