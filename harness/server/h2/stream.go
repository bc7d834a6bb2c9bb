package h2

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/retrychaos/retrychaos/faults"
)

// linger is how long a connection whose writing side we have closed waits for the client to close its own.
const linger = 500 * time.Millisecond

// errGone is what writing to a client that has gone comes to.
var errGone = errors.New("h2: the client has gone, or the stream is closed")

// A Stream is one request and what is done about it. Its methods are for the goroutine of its Handler; it
// satisfies [faults.Stream].
type Stream struct {
	conn   *Conn
	id     uint32
	req    *http.Request
	ctx    context.Context
	cancel context.CancelFunc

	// Guarded by conn.mu.
	body       []byte // what has arrived and was not read
	ended      bool   // the client has sent END_STREAM
	left       bool   // the client has reset the stream, or gone
	reset      bool   // by us
	answered   bool   // we have sent END_STREAM
	sendWindow int64
	recvWindow int64
	credit     int64 // read and not yet given back to recvWindow
}

// Conn returns the stream's connection.
func (s *Stream) Conn() *Conn { return s.conn }

// RemoteAddr is the client's address.
func (k *Conn) RemoteAddr() string { return k.nc.RemoteAddr().String() }

// Request returns the request. Its body is read as it arrives, which opens the window for more; its context
// ends when the client resets the stream or goes.
func (s *Stream) Request() *http.Request { return s.req }

// ID is the stream's identifier.
func (s *Stream) ID() uint32 { return s.id }

// leave notes that nobody waits for the stream any more. Callers hold conn.mu.
func (s *Stream) leave() {
	s.left = true
	s.cancel()
}

// request makes the *http.Request of a header (RFC 9113 §8.3.1).
func (s *Stream) request(f *http2.MetaHeadersFrame) (*http.Request, error) {
	method, path, authority := f.PseudoValue("method"), f.PseudoValue("path"), f.PseudoValue("authority")
	if method == "" || path == "" || f.PseudoValue("scheme") == "" || f.Truncated {
		return nil, errors.New("a pseudo-header field is missing")
	}
	u, err := url.ParseRequestURI(path)
	if err != nil {
		return nil, err
	}
	r := &http.Request{
		Method: method, URL: u, RequestURI: path, Host: authority, Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: http.Header{}, RemoteAddr: s.conn.RemoteAddr(), ContentLength: -1, Body: (*body)(s),
	}
	for _, h := range f.RegularFields() {
		name := http.CanonicalHeaderKey(h.Name)
		r.Header[name] = append(r.Header[name], h.Value)
	}
	if v := r.Header.Get("Content-Length"); v != "" {
		if r.ContentLength, err = strconv.ParseInt(v, 10, 64); err != nil || r.ContentLength < 0 {
			return nil, fmt.Errorf("a Content-Length of %.40q", v)
		}
	}
	if f.StreamEnded() && r.ContentLength < 0 {
		r.ContentLength = 0
	}
	return r.WithContext(s.ctx), nil
}

// body reads a request's body.
type body Stream

func (b *body) Read(p []byte) (int, error) {
	s, k := (*Stream)(b), b.conn
	k.mu.Lock()
	for len(s.body) == 0 && !s.ended && !s.left {
		k.changed.Wait()
	}
	n := copy(p, s.body)
	s.body = s.body[n:]
	switch {
	case n == 0 && len(p) > 0 && s.ended && !s.left:
		k.mu.Unlock()
		return 0, io.EOF
	case n == 0 && s.left:
		k.mu.Unlock()
		return 0, io.ErrUnexpectedEOF
	}
	k.credit += int64(n)
	s.credit += int64(n)
	k.mu.Unlock()
	_ = k.giveBack(s) // where the client has gone, the next read says so
	return n, nil
}

func (b *body) Close() error { return nil }

// AwaitStall waits until the client cannot send more of its body because the stream's window is used up. It
// reports false where the body was over before, or the client has gone, or the world is closing.
func (s *Stream) AwaitStall() bool {
	k := s.conn
	k.mu.Lock()
	defer k.mu.Unlock()
	for s.recvWindow > 0 && !s.ended && !s.left {
		k.changed.Wait()
	}
	return !s.ended && !s.left
}

// Acknowledge acknowledges the client's SETTINGS; see [Conn.Acknowledge].
func (s *Stream) Acknowledge() { s.conn.Acknowledge() }

// WithholdAck leaves the client's SETTINGS unacknowledged for as long as the connection lasts. It reports
// whether there was something to withhold: false where the first SETTINGS are acknowledged already.
func (s *Stream) WithholdAck() bool {
	k := s.conn
	k.wmu.Lock()
	defer k.wmu.Unlock()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.settled {
		return k.ackHeld
	}
	k.settled, k.ackHeld = true, true
	return true
}

// WriteHead sends the response's header; end says that nothing follows (END_STREAM).
func (s *Stream) WriteHead(status int, h http.Header, end bool) error {
	k := s.conn
	return k.write(func() error {
		if s.closed() {
			return errGone
		}
		k.hbuf.Reset()
		field := func(name, value string) error { return k.enc.WriteField(hpack.HeaderField{Name: name, Value: value}) }
		if err := field(":status", strconv.Itoa(status)); err != nil {
			return err
		}
		for _, name := range slices.Sorted(maps.Keys(h)) {
			for _, v := range h[name] {
				if err := field(strings.ToLower(name), v); err != nil {
					return err
				}
			}
		}
		block := k.hbuf.Bytes()
		first := true
		for first || len(block) > 0 {
			n := min(len(block), maxFrame)
			part := block[:n]
			block = block[n:]
			var err error
			if first {
				err = k.fr.WriteHeaders(http2.HeadersFrameParam{
					StreamID: s.id, BlockFragment: part, EndStream: end, EndHeaders: len(block) == 0})
			} else {
				err = k.fr.WriteContinuation(s.id, len(block) == 0, part)
			}
			if err != nil {
				return err
			}
			first = false
		}
		if end {
			s.answer()
		}
		return nil
	})
}

func (s *Stream) answer() {
	s.conn.mu.Lock()
	s.answered = true
	s.conn.mu.Unlock()
}

// WriteData sends a part of the response's body as the client's windows allow; end says that it is the last.
func (s *Stream) WriteData(b []byte, end bool) error {
	k := s.conn
	for first := true; first || len(b) > 0; first = false {
		k.mu.Lock()
		for len(b) > 0 && min(s.sendWindow, k.sendWindow) <= 0 && !s.left && !k.gone {
			k.changed.Wait()
		}
		n := int(max(0, min(int64(len(b)), s.sendWindow, k.sendWindow, int64(k.peerFrame))))
		s.sendWindow -= int64(n)
		k.sendWindow -= int64(n)
		k.mu.Unlock()
		part := b[:n]
		b = b[n:]
		err := k.write(func() error {
			if s.closed() {
				return errGone
			}
			if end && len(b) == 0 {
				s.answer()
			}
			return k.fr.WriteData(s.id, end && len(b) == 0, part)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Stream) closed() bool {
	k := s.conn
	k.mu.Lock()
	defer k.mu.Unlock()
	return s.left || s.reset || k.gone || k.closing
}

// Reset sends RST_STREAM, unless the client has had its whole answer and closed the connection first.
func (s *Stream) Reset(code uint32) error {
	k := s.conn
	return k.write(func() error {
		k.mu.Lock()
		over := k.gone && s.answered
		k.mu.Unlock()
		if over {
			return nil
		}
		if s.closed() {
			return errGone
		}
		k.mu.Lock()
		s.reset = true
		k.mu.Unlock()
		return k.fr.WriteRSTStream(s.id, http2.ErrCode(code))
	})
}

// GoAway sends GOAWAY. From then on streams above last that are opened are not looked at (RFC 9113 §6.8). A
// server must not raise the number, which is lowered to the last one sent, and must not deny a stream that has
// reached its application: where another one is above last, nothing is sent.
func (s *Stream) GoAway(last, code uint32) error {
	k := s.conn
	return k.write(func() error {
		k.mu.Lock()
		if k.away {
			last = min(last, k.last)
		}
		if k.highest > max(last, s.id) {
			k.mu.Unlock()
			return fmt.Errorf("GOAWAY with %d would deny stream %d: %w", last, k.highest, faults.ErrNotApplicable)
		}
		k.away, k.last = true, last
		k.mu.Unlock()
		return k.fr.WriteGoAway(last, http2.ErrCode(code), nil)
	})
}

// RaiseGoAway sends GOAWAY twice, the second with a higher number, as no server may. The client gets both at once:
// one that goes after the first could else miss the second.
func (s *Stream) RaiseGoAway(last, higher, code uint32) error {
	k := s.conn
	return k.write(func() error {
		k.mu.Lock()
		k.away, k.last = true, higher
		k.mu.Unlock()
		return errors.Join(k.fr.WriteGoAway(last, http2.ErrCode(code), nil), k.fr.WriteGoAway(higher, http2.ErrCode(code), nil))
	})
}

// RoundTrip sends a PING and waits for its acknowledgement, so that whatever was sent before has arrived. It
// gives up where the client goes or the world is closing.
func (s *Stream) RoundTrip() error {
	k := s.conn
	k.mu.Lock()
	k.pinged++
	var data [8]byte
	for i := range data {
		data[i] = byte(k.pinged >> (8 * i))
	}
	k.pings[data] = true
	k.mu.Unlock()
	if err := k.write(func() error { return k.fr.WritePing(false, data) }); err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for k.pings[data] && !k.gone {
		k.changed.Wait()
	}
	if k.pings[data] {
		return errGone
	}
	return nil
}

// CloseConn closes the connection with all of its streams: in order (FIN), or by a reset (RST). After a FIN
// what the client still sends is thrown away until it closes its side, or for half a second. A client that has
// had its whole answer may have closed the connection first: then there is nothing left to close.
func (s *Stream) CloseConn(end faults.End) error {
	k := s.conn
	k.wmu.Lock()
	defer k.wmu.Unlock()
	k.mu.Lock()
	gone, away, answered := k.gone, k.away, s.answered
	k.closing = true
	k.mu.Unlock()
	switch {
	case gone && answered:
		return nil
	case gone && away && end == faults.EndFIN:
		return nil // the client has closed it, as a GOAWAY asks it to
	case gone:
		return errGone
	}
	if end == faults.EndRST {
		if err := faults.ResetConn(k.nc); err != nil && !answered {
			return err
		}
		return nil
	}
	half, ok := k.nc.(interface{ CloseWrite() error })
	if !ok {
		return k.nc.Close()
	}
	if err := half.CloseWrite(); err != nil && !away && !answered { // the client may have closed it in between
		return err
	}
	_ = k.nc.SetReadDeadline(time.Now().Add(linger)) // fails where the client has closed its side already
	return nil
}

// ConnEnds reports whether the connection takes no further request: GOAWAY was sent on it, or it was closed.
func (s *Stream) ConnEnds() bool {
	k := s.conn
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.away || k.closing || k.gone
}
