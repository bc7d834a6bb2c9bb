package server

import (
	"errors"
	"fmt"
	"net"
	"sync"

	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/server/h2"
)

// frames is the HTTP/2 front of a Server.
type frames struct {
	server *Server
	h2     *h2.Server

	mu       sync.Mutex
	listener net.Listener
	conns    map[net.Conn]bool
	closed   bool
	serving  sync.WaitGroup // connections
	foreign  bool           // the finding of a client that speaks something else has been made
}

func newFrames(s *Server) *frames {
	f := &frames{server: s, conns: map[net.Conn]bool{}}
	f.h2 = &h2.Server{Handler: f.stream}
	return f
}

// stream takes one attempt over HTTP/2.
func (f *frames) stream(st *h2.Stream) {
	conn := st.Conn().Value.(*connInfo)
	f.server.attempt(nil, st, st.Request(), conn)
}

func (f *frames) serve(l net.Listener) error {
	f.mu.Lock()
	f.listener = l
	closed := f.closed
	f.mu.Unlock()
	if closed {
		return l.Close()
	}
	for {
		c, err := l.Accept()
		f.mu.Lock()
		if f.closed {
			f.mu.Unlock()
			if err == nil {
				_ = c.Close()
			}
			return nil
		}
		if err != nil {
			f.mu.Unlock()
			return err
		}
		f.conns[c] = true
		f.serving.Add(1)
		f.mu.Unlock()
		go func() {
			defer f.serving.Done()
			f.conn(c)
		}()
	}
}

func (f *frames) conn(c net.Conn) {
	defer func() {
		f.mu.Lock()
		delete(f.conns, c)
		f.mu.Unlock()
	}()
	err := f.h2.ServeConn(c, &connInfo{n: int(f.server.conns.Add(1))})
	var preface *h2.PrefaceError
	if errors.As(err, &preface) {
		f.other(preface.Got)
	}
}

// other notes a client that does not speak HTTP/2, so that nobody takes it for a network error.
func (f *frames) other(got []byte) {
	f.mu.Lock()
	told := f.foreign
	f.foreign = true
	f.mu.Unlock()
	if told {
		return
	}
	s := f.server
	s.mu.Lock()
	defer s.mu.Unlock()
	s.findings = append(s.findings, history.Finding{Kind: history.FindingUnmatched,
		Text: fmt.Sprintf("the server of this scenario speaks HTTP/2 with prior knowledge, and a connection began with %q", got)})
}

func (f *frames) close() error {
	f.mu.Lock()
	f.closed = true
	var err error
	if f.listener != nil {
		err = f.listener.Close()
	}
	for c := range f.conns {
		_ = c.Close()
	}
	f.mu.Unlock()
	f.serving.Wait()
	if errors.Is(err, net.ErrClosed) {
		err = nil
	}
	return err
}
