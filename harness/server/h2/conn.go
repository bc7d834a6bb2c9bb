package h2

import (
	"bytes"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

const (
	initialWindow = 65535    // of RFC 9113 §6.9.2, for streams and for the connection
	connWindow    = 16 << 20 // of the connection: streams that are left unread must not block the others
	maxWindow     = 1<<31 - 1
	maxFrame      = 16384 // of RFC 9113 §4.2, the size that every peer takes
	maxHeaderList = 1 << 20
	creditStep    = 16384 // what has been read is given back to the windows in steps of so much, at least
	prefaceLimit  = 10 * time.Second
)

// ackGrace is how long the acknowledgement of the client's first SETTINGS waits for a request, which may want
// it withheld. RFC 9113 §6.5.3 asks for one as soon as possible; clients that send a request do not wait for it.
const ackGrace = time.Second

// A Server answers HTTP/2 connections. Its fields are fixed before the first one.
type Server struct {
	// Handler is called in a goroutine of its own for every stream that a client opens, when its header has
	// arrived. When it returns, the stream is forgotten; nothing is sent for a stream that is not ended.
	Handler func(*Stream)
	// MaxStreams is SETTINGS_MAX_CONCURRENT_STREAMS; 0: 250. A stream beyond it is refused (§5.1.2).
	MaxStreams uint32
}

// A Conn is one connection.
type Conn struct {
	srv  *Server
	nc   net.Conn
	fr   *http2.Framer
	pool sync.WaitGroup // streams at work

	// Value is the Handler's own, for what it knows of the connection. It is set by ServeConn.
	Value any

	wmu  sync.Mutex   // one writer at a time; taken before mu where both are
	out  bytes.Buffer // frames of the writer, which go out together
	enc  *hpack.Encoder
	hbuf bytes.Buffer

	mu         sync.Mutex
	changed    sync.Cond // with mu: a window, a stream, an acknowledgement or the connection has changed
	streams    map[uint32]*Stream
	highest    uint32 // of the streams opened
	last       uint32 // of the last GOAWAY sent
	away       bool   // a GOAWAY was sent
	gone       bool   // the client has gone, or the connection was closed
	closing    bool   // closed by us: what still arrives is thrown away
	sendWindow int64
	recvWindow int64
	credit     int64 // read and not yet given back to recvWindow
	peerWindow int64 // SETTINGS_INITIAL_WINDOW_SIZE of the client
	peerFrame  int
	ackDue     int  // SETTINGS of the client not yet acknowledged
	ackHeld    bool // by WithholdAck, for good
	settled    bool // Acknowledge has been called, or the grace is over
	pings      map[[8]byte]bool
	pinged     uint64
}

// wrongVersion is said to a client that speaks HTTP/1.1, which would else see a network error.
const wrongVersion = "HTTP/1.1 505 HTTP Version Not Supported\r\nConnection: close\r\nContent-Type: text/plain\r\nContent-Length: 34\r\n\r\n" +
	"this server speaks only HTTP/2 h2c"

// A PrefaceError is returned for a connection that does not begin as HTTP/2 has it (RFC 9113 §3.4). Got holds
// what came instead.
type PrefaceError struct{ Got []byte }

func (e *PrefaceError) Error() string {
	return "h2: the connection does not begin with the HTTP/2 preface"
}

// ServeConn answers c until it ends, and closes it. It returns when the handlers of its streams have returned.
// The error is nil, a *PrefaceError, or what broke the connection; io.EOF is none.
func (s *Server) ServeConn(c net.Conn, value any) error {
	k := &Conn{
		srv: s, nc: c, Value: value, streams: map[uint32]*Stream{},
		sendWindow: initialWindow, recvWindow: initialWindow, peerWindow: initialWindow, peerFrame: maxFrame,
		pings: map[[8]byte]bool{},
	}
	k.changed.L = &k.mu
	k.fr = http2.NewFramer(&k.out, c)
	k.enc = hpack.NewEncoder(&k.hbuf)
	k.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	k.fr.MaxHeaderListSize = maxHeaderList
	k.fr.SetMaxReadFrameSize(maxFrame)
	defer k.pool.Wait()
	defer k.end()
	err := k.serve()
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return err
}

func (k *Conn) serve() error {
	if err := k.preface(); err != nil {
		var other *PrefaceError
		if errors.As(err, &other) {
			_, _ = io.WriteString(k.nc, wrongVersion)
		}
		return err
	}
	max := k.srv.MaxStreams
	if max == 0 {
		max = 250
	}
	err := k.write(func() error {
		if err := k.fr.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: max}); err != nil {
			return err
		}
		return k.fr.WriteWindowUpdate(0, connWindow-initialWindow)
	})
	if err != nil {
		return err
	}
	k.mu.Lock()
	k.recvWindow = connWindow
	k.mu.Unlock()
	grace := time.AfterFunc(ackGrace, func() { k.Acknowledge() })
	defer grace.Stop()
	for {
		f, err := k.fr.ReadFrame()
		if err == nil {
			err = k.frame(f, max)
		} else if errors.Is(err, http2.ErrFrameTooLarge) {
			err = http2.ConnectionError(http2.ErrCodeFrameSize)
		}
		var stream http2.StreamError
		var conn http2.ConnectionError
		switch {
		case err == nil:
		case errors.As(err, &stream):
			k.resetStream(stream.StreamID, stream.Code)
		case errors.As(err, &conn):
			k.mu.Lock()
			last, closing := k.highest, k.closing
			k.mu.Unlock()
			if !closing {
				_ = k.goAway(last, http2.ErrCode(conn))
			}
			return err
		default:
			return err
		}
	}
}

// preface reads the 24 octets that begin a connection.
func (k *Conn) preface() error {
	_ = k.nc.SetReadDeadline(time.Now().Add(prefaceLimit))
	buf := make([]byte, len(http2.ClientPreface))
	n := 0
	for n < len(buf) {
		m, err := k.nc.Read(buf[n:])
		n += m
		if string(buf[:n]) != http2.ClientPreface[:n] {
			return &PrefaceError{buf[:n]}
		}
		if err != nil {
			return err
		}
	}
	return k.nc.SetReadDeadline(time.Time{})
}

// end lets go of the connection and of whoever waits on it.
func (k *Conn) end() {
	k.mu.Lock()
	k.gone = true
	for _, s := range k.streams {
		s.leave()
	}
	k.changed.Broadcast()
	k.mu.Unlock()
	_ = k.nc.Close()
}

// write runs f, which writes frames, while nobody else does, and then sends them at once: what belongs together
// arrives together.
func (k *Conn) write(f func() error) error {
	k.wmu.Lock()
	defer k.wmu.Unlock()
	k.out.Reset()
	if err := f(); err != nil || k.out.Len() == 0 {
		return err
	}
	_, err := k.nc.Write(k.out.Bytes())
	return err
}

// resetStream ends a stream that the client has got wrong, or that is refused.
func (k *Conn) resetStream(id uint32, code http2.ErrCode) {
	k.mu.Lock()
	if s := k.streams[id]; s != nil {
		s.reset = true
		s.leave()
		k.changed.Broadcast()
	}
	k.mu.Unlock()
	_ = k.write(func() error { return k.fr.WriteRSTStream(id, code) })
}

func (k *Conn) goAway(last uint32, code http2.ErrCode) error {
	return k.write(func() error {
		k.mu.Lock()
		k.away, k.last = true, last
		k.mu.Unlock()
		return k.fr.WriteGoAway(last, code, nil)
	})
}
