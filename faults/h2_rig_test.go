package faults_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/server/h2"
	"github.com/retrychaos/retrychaos/harness/world"
)

// newH2Rig is newRig over HTTP/2.
func newH2Rig(t *testing.T, n *world.Network, plan ...faults.Fault) (*rig, func()) {
	t.Helper()
	l, err := n.Listen()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, net: n, addr: l.Addr().String(), start: time.Now(), closing: make(chan struct{}),
		plan: plan, status: http.StatusOK, exact: n.Kind() == world.Virtual}
	r.moved = sync.NewCond(&r.mu)
	srv := &h2.Server{Handler: func(s *h2.Stream) { r.serve(&faults.Exchange{Stream: s, R: s.Request()}) }}
	var conns sync.WaitGroup
	conns.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns.Go(func() { _ = srv.ServeConn(c, nil) })
		}
	})
	return r, func() {
		r.close()
		r.idle()
		l.Close()
		n.Close()
		conns.Wait()
	}
}

// h2Client is a real net/http client of the rig, with prior knowledge.
func (r *rig) h2Client(timeout time.Duration) *http.Client {
	t := &http.Transport{DialContext: r.net.DialContext, Protocols: new(http.Protocols)}
	t.Protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Timeout: timeout, Transport: t}
}

// A rawH2 is an HTTP/2 client made of a framer. It writes down every frame that it gets. It does not acknowledge
// SETTINGS: a write behind a reset would be told of it in place of the read.
type rawH2 struct {
	t    *testing.T
	conn net.Conn
	fr   *http2.Framer
	buf  bytes.Buffer
	enc  *hpack.Encoder
}

// dialH2 connects and sends the preface with empty SETTINGS.
func (r *rig) dialH2() *rawH2 {
	r.t.Helper()
	c := r.dial()
	k := &rawH2{t: r.t, conn: c, fr: http2.NewFramer(c, c)}
	k.enc = hpack.NewEncoder(&k.buf)
	k.fr.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		r.t.Fatal(err)
	}
	k.must(k.fr.WriteSettings())
	return k
}

func (k *rawH2) must(err error) {
	k.t.Helper()
	if err != nil {
		k.t.Fatal(err)
	}
}

// head sends the header of a POST.
func (k *rawH2) head(id uint32, end bool) {
	k.t.Helper()
	k.buf.Reset()
	for _, f := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":authority", "server"}, {":path", "/charges/c1"}} {
		k.must(k.enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]}))
	}
	k.must(k.fr.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: k.buf.Bytes(), EndHeaders: true, EndStream: end}))
}

// post sends a POST with a body of two bytes.
func (k *rawH2) post(id uint32) {
	k.t.Helper()
	k.head(id, false)
	k.must(k.fr.WriteData(id, true, []byte("{}")))
}

// read returns the frames that come, in words, until there are n of them, and then how the connection goes on:
// by FIN, RST or silence for as long as wait. A PING is answered.
func (k *rawH2) read(n int, wait time.Duration) (frames []string, end string) {
	k.t.Helper()
	for {
		d := patience
		if len(frames) >= n {
			d = wait
		}
		k.conn.SetReadDeadline(time.Now().Add(d))
		f, err := k.fr.ReadFrame()
		switch {
		case err == nil:
			frames = append(frames, k.words(f))
		case errors.Is(err, io.EOF):
			return frames, byFIN
		case errors.Is(err, syscall.ECONNRESET):
			return frames, byRST
		case errors.Is(err, os.ErrDeadlineExceeded):
			return frames, silence
		default:
			k.t.Fatalf("reading: %v", err)
		}
	}
}

// words writes a frame down, with all that it says.
func (k *rawH2) words(f http2.Frame) string {
	k.t.Helper()
	end := ""
	if f.Header().Flags.Has(http2.FlagDataEndStream) {
		switch f.(type) {
		case *http2.DataFrame, *http2.MetaHeadersFrame:
			end = " END_STREAM"
		}
	}
	id := f.Header().StreamID
	switch f := f.(type) {
	case *http2.SettingsFrame:
		if f.IsAck() {
			return "SETTINGS ACK"
		}
		s := "SETTINGS"
		_ = f.ForeachSetting(func(v http2.Setting) error { s += fmt.Sprintf(" %s=%d", v.ID, v.Val); return nil })
		return s
	case *http2.MetaHeadersFrame:
		s := fmt.Sprintf("HEADERS %d", id)
		dates := 0
		for _, h := range f.Fields {
			if h.Name == "date" {
				if _, err := time.Parse(http.TimeFormat, h.Value); err != nil {
					k.t.Errorf("date: %v", err)
				}
				dates++
				continue
			}
			s += " " + h.Name + "=" + h.Value
		}
		if dates != 1 {
			k.t.Errorf("%d date fields in %s", dates, s)
		}
		return s + end
	case *http2.DataFrame:
		return fmt.Sprintf("DATA %d %s", id, f.Data()) + end
	case *http2.RSTStreamFrame:
		return fmt.Sprintf("RST_STREAM %d %s", id, f.ErrCode)
	case *http2.GoAwayFrame:
		return fmt.Sprintf("GOAWAY %d %s", f.LastStreamID, f.ErrCode) + string(f.DebugData())
	case *http2.WindowUpdateFrame:
		return fmt.Sprintf("WINDOW_UPDATE %d %d", id, f.Increment)
	case *http2.PingFrame:
		if !f.IsAck() {
			k.must(k.fr.WritePing(true, f.Data))
			return "PING"
		}
		return "PING ACK"
	}
	return strings.ToUpper(f.Header().Type.String())
}
