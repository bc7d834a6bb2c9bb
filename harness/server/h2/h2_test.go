package h2_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/server/h2"
	"github.com/retrychaos/retrychaos/harness/world"
)

// serve starts s on n, and returns its address and what ends it.
func serve(t *testing.T, n *world.Network, s *h2.Server) (addr string, stop func()) {
	t.Helper()
	l, err := n.Listen()
	if err != nil {
		t.Fatal(err)
	}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { _ = s.ServeConn(c, nil) })
		}
	})
	return l.Addr().String(), func() {
		l.Close()
		n.Close()
		conns.Wait()
	}
}

// echo answers 200 with the body that it got.
func echo(s *h2.Stream) {
	s.Acknowledge()
	body, err := io.ReadAll(s.Request().Body)
	if err == nil && s.WriteHead(200, http.Header{"Content-Type": {"text/plain"}}, false) == nil {
		_ = s.WriteData(body, true)
	}
}

// A peer is a client made of a framer.
type peer struct {
	*testing.T
	conn net.Conn
	*http2.Framer
	buf bytes.Buffer
	enc *hpack.Encoder
}

func dial(t *testing.T, n *world.Network, addr string, settings ...http2.Setting) *peer {
	t.Helper()
	c, err := n.DialContext(context.Background(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	p := &peer{T: t, conn: c, Framer: http2.NewFramer(c, c)}
	p.AllowIllegalWrites = true
	p.enc = hpack.NewEncoder(&p.buf)
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	p.must(p.WriteSettings(settings...))
	return p
}

func (p *peer) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// head sends HEADERS; fields come in pairs.
func (p *peer) head(id uint32, end bool, fields ...string) {
	p.Helper()
	p.buf.Reset()
	for i := 0; i < len(fields); i += 2 {
		p.must(p.enc.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]}))
	}
	p.must(p.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: p.buf.Bytes(), EndHeaders: true, EndStream: end}))
}

func (p *peer) get(id uint32) { p.Helper(); p.head(id, true, request...) }

var request = []string{":method", "POST", ":scheme", "http", ":path", "/a", ":authority", "server"}

// frames returns what comes until nothing more does, but for the server's own beginning and its acknowledgements.
func (p *peer) frames() (list []string) {
	p.Helper()
	for {
		p.conn.SetReadDeadline(time.Now().Add(time.Second))
		f, err := p.ReadFrame()
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return list
		case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
			return append(list, "closed")
		case err != nil:
			p.Fatal(err)
		}
		id := f.Header().StreamID
		switch f := f.(type) {
		case *http2.HeadersFrame:
			list = append(list, fmt.Sprintf("HEADERS %d", id))
		case *http2.DataFrame:
			list = append(list, fmt.Sprintf("DATA %d %d", id, len(f.Data())))
		case *http2.RSTStreamFrame:
			list = append(list, fmt.Sprintf("RST_STREAM %d %s", id, f.ErrCode))
		case *http2.GoAwayFrame:
			list = append(list, fmt.Sprintf("GOAWAY %d %s", f.LastStreamID, f.ErrCode))
		case *http2.PingFrame:
			list = append(list, fmt.Sprintf("PING ack=%v %d", f.IsAck(), f.Data[0]))
		case *http2.WindowUpdateFrame:
			if id != 0 {
				list = append(list, fmt.Sprintf("WINDOW_UPDATE %d", id))
			}
		}
	}
}

func (p *peer) expect(want ...string) {
	p.Helper()
	if got := p.frames(); !slices.Equal(got, want) {
		p.Errorf("frames %q, want %q", got, want)
	}
}

// TestWindowIsKept: a client that sends more than the window allows is stopped (§6.9.1).
func TestWindowIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := world.Memory()
		stalled := make(chan bool, 1)
		addr, stop := serve(t, n, &h2.Server{Handler: func(s *h2.Stream) {
			stalled <- s.AwaitStall()
			<-s.Request().Context().Done()
		}})
		defer stop()
		p := dial(t, n, addr)
		defer p.conn.Close()
		p.head(1, false, request...)
		for range 3 {
			p.must(p.WriteData(1, false, make([]byte, 16384)))
		}
		p.must(p.WriteData(1, false, make([]byte, 16383)))
		if !<-stalled {
			t.Error("the window is used up and nobody is stalled")
		}
		p.expect()
		p.must(p.WriteData(1, false, []byte("x")))
		p.expect("RST_STREAM 1 FLOW_CONTROL_ERROR")
	})
}

// TestClientLeaves: RST_STREAM ends the request's context and its body, and so does the connection's end.
func TestClientLeaves(t *testing.T) {
	for name, leave := range map[string]func(p *peer){
		"RST_STREAM": func(p *peer) { p.must(p.WriteRSTStream(1, http2.ErrCodeCancel)) },
		"FIN":        func(p *peer) { p.conn.Close() },
		"RST":        func(p *peer) { p.conn.(world.Conn).SetLinger(0); p.conn.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := world.Memory()
				errs := make(chan error, 2)
				addr, stop := serve(t, n, &h2.Server{Handler: func(s *h2.Stream) {
					_, err := io.ReadAll(s.Request().Body)
					errs <- err
					<-s.Request().Context().Done()
					errs <- s.WriteHead(200, http.Header{}, true)
				}})
				defer stop()
				p := dial(t, n, addr)
				defer p.conn.Close()
				p.head(1, false, request...)
				synctest.Wait()
				leave(p)
				if err := <-errs; err != io.ErrUnexpectedEOF {
					t.Errorf("the body ends by %v", err)
				}
				if err := <-errs; err == nil {
					t.Error("an answer can be given to nobody")
				}
			})
		})
	}
}

// TestClosedBehindTheAnswer: a client that has its whole answer may close the connection before the server does what it
// meant to do behind it. That is no failure; without the whole answer it is one.
func TestClosedBehindTheAnswer(t *testing.T) {
	for name, after := range map[string]func(s *h2.Stream) error{
		"FIN":   func(s *h2.Stream) error { return s.CloseConn(faults.EndFIN) },
		"RST":   func(s *h2.Stream) error { return s.CloseConn(faults.EndRST) },
		"reset": func(s *h2.Stream) error { return s.Reset(0) },
	} {
		for _, whole := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, whole answer: %v", name, whole), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					n := world.Memory()
					errs := make(chan error, 1)
					addr, stop := serve(t, n, &h2.Server{Handler: func(s *h2.Stream) {
						err := s.WriteHead(200, http.Header{}, whole)
						<-s.Request().Context().Done()
						errs <- errors.Join(err, after(s))
					}})
					defer stop()
					p := dial(t, n, addr)
					p.get(1)
					synctest.Wait()
					p.conn.Close()
					if err := <-errs; (err == nil) != whole {
						t.Errorf("it comes to %v", err)
					}
				})
			})
		}
	}
}

// TestMaxStreams: the limit is announced, and a stream beyond it is refused (§5.1.2). It is case
// settings-max-streams of harness/testdata/http2-safe-retry.json.
func TestMaxStreams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := world.Memory()
		addr, stop := serve(t, n, &h2.Server{MaxStreams: 2, Handler: echo})
		defer stop()
		p := dial(t, n, addr)
		defer p.conn.Close()
		f, err := p.ReadFrame()
		p.must(err)
		if v, ok := f.(*http2.SettingsFrame).Value(http2.SettingMaxConcurrentStreams); !ok || v != 2 {
			t.Errorf("announced: %d, %v", v, ok)
		}
		for _, id := range []uint32{1, 3, 5} {
			p.head(id, false, request...)
		}
		p.expect("RST_STREAM 5 REFUSED_STREAM")
		p.must(p.WriteData(1, true, nil))
		p.expect("HEADERS 1", "DATA 1 0")
		p.get(7)
		p.expect("HEADERS 7", "DATA 7 0")
	})
}

// TestMaxStreamsQueue: a client that knows the limit waits, or opens another connection, and nothing is refused.
func TestMaxStreamsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := world.Memory()
		var mu sync.Mutex
		served := 0
		addr, stop := serve(t, n, &h2.Server{MaxStreams: 1, Handler: func(s *h2.Stream) {
			mu.Lock()
			served++
			mu.Unlock()
			time.Sleep(time.Second)
			echo(s)
		}})
		defer stop()
		tr := &http.Transport{DialContext: n.DialContext, Protocols: new(http.Protocols)}
		tr.Protocols.SetUnencryptedHTTP2(true)
		defer tr.CloseIdleConnections()
		c := &http.Client{Transport: tr}
		var wg sync.WaitGroup
		for i := range 5 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * 10 * time.Millisecond) // the first has seen the server's SETTINGS
				resp, err := c.Post("http://"+addr+"/a", "text/plain", strings.NewReader("x"))
				if err != nil {
					t.Error(err)
					return
				}
				io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
			})
		}
		wg.Wait()
		if served != 5 {
			t.Errorf("%d requests for 5 calls: some were refused", served)
		}
	})
}

// TestGoAwayIsHonest: whatever a fault asks for, the number never grows and never denies a stream that has reached
// the application (§6.8); only RaiseGoAway does what it is told.
func TestGoAwayIsHonest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := world.Memory()
		step := map[uint32]chan func(s *h2.Stream){1: make(chan func(*h2.Stream)), 3: make(chan func(*h2.Stream))}
		addr, stop := serve(t, n, &h2.Server{Handler: func(s *h2.Stream) {
			for f := range step[s.ID()] {
				f(s)
			}
		}})
		defer stop()
		p := dial(t, n, addr)
		defer p.conn.Close()
		p.get(1)
		p.get(3)
		synctest.Wait()
		errs := make(chan error, 1)
		step[1] <- func(s *h2.Stream) { errs <- s.GoAway(0, 0) }
		if err := <-errs; !errors.Is(err, faults.ErrNotApplicable) {
			t.Errorf("stream 3 is denied by stream 1: %v", err)
		}
		step[3] <- func(s *h2.Stream) { errs <- errors.Join(s.GoAway(1<<31-1, 0), s.GoAway(1, 0), s.GoAway(3, 2)) }
		if err := <-errs; err != nil {
			t.Error(err)
		}
		p.get(5) // is not looked at: there is no step for it
		synctest.Wait()
		step[3] <- func(s *h2.Stream) { errs <- s.RaiseGoAway(0, 7, 0) }
		if err := <-errs; err != nil {
			t.Error(err)
		}
		p.expect("GOAWAY 2147483647 NO_ERROR", "GOAWAY 1 NO_ERROR", "GOAWAY 1 INTERNAL_ERROR", "GOAWAY 0 NO_ERROR", "GOAWAY 7 NO_ERROR")
		close(step[1])
		close(step[3])
	})
}

// TestPreface: what is no HTTP/2 is told so in HTTP/1.1, and the caller learns what came.
func TestPreface(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := world.Memory()
		l, err := n.Listen()
		if err != nil {
			t.Fatal(err)
		}
		defer n.Close()
		result := make(chan error, 1)
		go func() {
			c, err := l.Accept()
			if err == nil {
				err = (&h2.Server{Handler: echo}).ServeConn(c, nil)
			}
			result <- err
		}()
		c, err := n.DialContext(t.Context(), "tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		io.WriteString(c, "GET / HTTP/1.1\r\nHost: a\r\n\r\n")
		got, _ := io.ReadAll(c)
		if !bytes.HasPrefix(got, []byte("HTTP/1.1 505 ")) {
			t.Errorf("answer %q", got)
		}
		c.Close()
		var preface *h2.PrefaceError
		if err := <-result; !errors.As(err, &preface) || !bytes.HasPrefix(preface.Got, []byte("GET")) {
			t.Errorf("error %v", err)
		}
	})
}

// TestAcknowledgement: the first SETTINGS are acknowledged by the Handler's leave, or after a while where no
// request comes; later ones at once (§6.5.3).
func TestAcknowledgement(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := world.Memory()
		addr, stop := serve(t, n, &h2.Server{Handler: echo})
		defer stop()
		p := dial(t, n, addr)
		defer p.conn.Close()
		start := time.Now()
		ack := func() time.Duration {
			for {
				f, err := p.ReadFrame()
				p.must(err)
				if s, ok := f.(*http2.SettingsFrame); ok && s.IsAck() {
					return time.Since(start)
				}
			}
		}
		if d := ack(); d != time.Second {
			t.Errorf("acknowledged after %v", d)
		}
		p.must(p.WriteSettings())
		if d := ack(); d != time.Second {
			t.Errorf("the second are acknowledged after %v", d)
		}
	})
}
