package h2

import (
	"context"
	"errors"

	"golang.org/x/net/http2"
)

// frame does what RFC 9113 asks of a server that gets f. Its error is an http2.StreamError or an
// http2.ConnectionError where the client has broken the protocol, else one of the connection.
func (k *Conn) frame(f http2.Frame, max uint32) error {
	k.mu.Lock()
	closing := k.closing
	k.mu.Unlock()
	if closing {
		return nil
	}
	switch f := f.(type) {
	case *http2.SettingsFrame:
		return k.settings(f)
	case *http2.PingFrame:
		return k.ping(f)
	case *http2.MetaHeadersFrame:
		return k.headers(f, max)
	case *http2.DataFrame:
		return k.data(f)
	case *http2.WindowUpdateFrame:
		return k.windowUpdate(f)
	case *http2.RSTStreamFrame:
		k.mu.Lock()
		defer k.mu.Unlock()
		if f.StreamID > k.highest {
			return http2.ConnectionError(http2.ErrCodeProtocol) // idle: §5.1
		}
		if s := k.streams[f.StreamID]; s != nil {
			s.leave()
			k.changed.Broadcast()
		}
	case *http2.PushPromiseFrame:
		return http2.ConnectionError(http2.ErrCodeProtocol) // §8.4: a client cannot push
	}
	return nil // PRIORITY, GOAWAY, and what is not known (§4.1)
}

func (k *Conn) settings(f *http2.SettingsFrame) error {
	if f.IsAck() {
		return nil
	}
	k.mu.Lock()
	var bad error
	var table uint32
	hasTable := false
	_ = f.ForeachSetting(func(s http2.Setting) error {
		if err := s.Valid(); err != nil {
			bad = err
			return err
		}
		switch s.ID {
		case http2.SettingInitialWindowSize:
			delta := int64(s.Val) - k.peerWindow
			k.peerWindow = int64(s.Val)
			for _, st := range k.streams {
				st.sendWindow += delta // may become negative: §6.9.2
			}
		case http2.SettingMaxFrameSize:
			k.peerFrame = int(s.Val)
		case http2.SettingHeaderTableSize:
			table, hasTable = s.Val, true
		}
		return nil
	})
	k.ackDue++
	settled := k.settled
	k.changed.Broadcast()
	k.mu.Unlock()
	if bad != nil {
		return bad
	}
	if hasTable {
		k.wmu.Lock()
		k.enc.SetMaxDynamicTableSizeLimit(table)
		k.wmu.Unlock()
	}
	if settled {
		k.Acknowledge()
	}
	return nil
}

// Acknowledge acknowledges the client's SETTINGS, where that is due and not withheld.
func (k *Conn) Acknowledge() {
	_ = k.write(func() error {
		k.mu.Lock()
		k.settled = true
		n := k.ackDue
		if k.ackHeld || k.gone || k.closing {
			n = 0
		}
		k.ackDue -= n
		k.mu.Unlock()
		for range n {
			if err := k.fr.WriteSettingsAck(); err != nil {
				return err
			}
		}
		return nil
	})
}

func (k *Conn) ping(f *http2.PingFrame) error {
	if !f.IsAck() {
		return k.write(func() error { return k.fr.WritePing(true, f.Data) })
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.pings, f.Data)
	k.changed.Broadcast()
	return nil
}

func (k *Conn) windowUpdate(f *http2.WindowUpdateFrame) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	defer k.changed.Broadcast()
	if f.StreamID == 0 {
		if k.sendWindow += int64(f.Increment); k.sendWindow > maxWindow {
			return http2.ConnectionError(http2.ErrCodeFlowControl)
		}
		return nil
	}
	if f.StreamID > k.highest {
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if s := k.streams[f.StreamID]; s != nil {
		if s.sendWindow += int64(f.Increment); s.sendWindow > maxWindow {
			return http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
		}
	}
	return nil
}

func (k *Conn) headers(f *http2.MetaHeadersFrame, max uint32) error {
	k.mu.Lock()
	id := f.StreamID
	if s := k.streams[id]; s != nil {
		defer k.mu.Unlock()
		// Trailers: they end the request, and say nothing that we need (§8.1).
		if !f.StreamEnded() || s.ended {
			return http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol}
		}
		s.ended = true
		k.changed.Broadcast()
		return nil
	}
	if id%2 == 0 || id <= k.highest {
		defer k.mu.Unlock()
		if id%2 == 1 && f.StreamEnded() {
			return nil // trailers of a stream that we are done with
		}
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if k.away && id > k.last {
		k.mu.Unlock()
		return nil // §6.8: discarded, and so not processed
	}
	k.highest = id
	if len(k.streams) >= int(max) {
		k.mu.Unlock()
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeRefusedStream} // §5.1.2
	}
	s := &Stream{conn: k, id: id, sendWindow: k.peerWindow, recvWindow: initialWindow, ended: f.StreamEnded()}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	k.streams[id] = s
	k.mu.Unlock()
	r, err := s.request(f)
	if err != nil {
		k.forget(s)
		return http2.StreamError{StreamID: id, Code: http2.ErrCodeProtocol} // §8.1.1
	}
	s.req = r
	k.pool.Add(1)
	go func() {
		defer k.pool.Done()
		defer k.forget(s)
		k.srv.Handler(s)
	}()
	return nil
}

// forget lets go of a stream and gives what of its body was never read back to the connection.
func (k *Conn) forget(s *Stream) {
	k.mu.Lock()
	delete(k.streams, s.id)
	s.leave()
	k.credit += int64(len(s.body))
	s.body = nil
	k.changed.Broadcast()
	k.mu.Unlock()
	_ = k.giveBack(nil)
}

// giveBack opens the windows of the connection, and of s if there is one, by what was read, once it is enough.
func (k *Conn) giveBack(s *Stream) error {
	return k.write(func() error {
		k.mu.Lock()
		if k.gone || k.closing {
			k.mu.Unlock()
			return nil
		}
		take := func(credit, window *int64) (n int64) {
			if *credit < creditStep {
				return 0
			}
			n, *credit = *credit, 0
			*window += n
			return n
		}
		conn, stream := take(&k.credit, &k.recvWindow), int64(0)
		if s != nil && !s.ended && !s.reset {
			stream = take(&s.credit, &s.recvWindow)
		}
		k.mu.Unlock()
		if conn > 0 {
			if err := k.fr.WriteWindowUpdate(0, uint32(conn)); err != nil {
				return err
			}
		}
		if stream > 0 {
			return k.fr.WriteWindowUpdate(s.id, uint32(stream))
		}
		return nil
	})
}

func (k *Conn) data(f *http2.DataFrame) error {
	size := int64(f.Length) // padding counts: §6.9.1
	k.mu.Lock()
	if f.StreamID > k.highest && !k.away {
		k.mu.Unlock()
		return http2.ConnectionError(http2.ErrCodeProtocol)
	}
	if k.recvWindow -= size; k.recvWindow < 0 {
		k.mu.Unlock()
		return http2.ConnectionError(http2.ErrCodeFlowControl)
	}
	s := k.streams[f.StreamID]
	spare := size // what nobody will read
	var bad error
	switch {
	case s == nil || s.reset:
	case s.ended:
		bad = http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeStreamClosed}
	case size > s.recvWindow:
		bad = http2.StreamError{StreamID: f.StreamID, Code: http2.ErrCodeFlowControl}
	default:
		s.recvWindow -= size
		s.body = append(s.body, f.Data()...)
		s.ended = f.StreamEnded()
		spare = size - int64(len(f.Data()))
	}
	k.credit += spare
	if s != nil {
		s.credit += spare // padding; for a stream that is over it has no meaning
	}
	k.changed.Broadcast()
	k.mu.Unlock()
	return errors.Join(k.giveBack(s), bad)
}
