package h2_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/retrychaos/retrychaos/harness/server/h2"
	"github.com/retrychaos/retrychaos/harness/world"
)

// TestConnections walks through what a client may do, right and wrong, and what RFC 9113 has a server do about it.
func TestConnections(t *testing.T) {
	answer := func(id uint32, n int) []string {
		return []string{fmt.Sprintf("HEADERS %d", id), fmt.Sprintf("DATA %d %d", id, n)}
	}
	for name, c := range map[string]struct {
		settings []http2.Setting
		do       func(p *peer)
		want     []string
	}{
		"a request without a body": {do: func(p *peer) { p.get(1) }, want: answer(1, 0)},
		"two streams at once": {do: func(p *peer) {
			p.head(1, false, request...)
			p.head(3, false, request...)
			p.must(p.WriteData(3, true, []byte("abc")))
			p.conn.SetReadDeadline(time.Now().Add(time.Second))
			time.Sleep(time.Second)
			p.must(p.WriteData(1, true, []byte("abcde")))
		}, want: append(answer(3, 3), answer(1, 5)...)},
		"PING (§6.7)":                     {do: func(p *peer) { p.must(p.WritePing(false, [8]byte{7})) }, want: []string{"PING ack=true 7"}},
		"a PING nobody asked for is none": {do: func(p *peer) { p.must(p.WritePing(true, [8]byte{7})) }},
		"trailers (§8.1)": {do: func(p *peer) {
			p.head(1, false, request...)
			p.must(p.WriteData(1, false, []byte("abc")))
			p.head(1, true, "x-sum", "1")
		}, want: answer(1, 3)},
		"trailers that do not end the stream (§8.1)": {do: func(p *peer) {
			p.head(1, false, request...)
			p.head(1, false, "x-sum", "1")
		}, want: []string{"RST_STREAM 1 PROTOCOL_ERROR"}},
		"padding counts (§6.9.1)": {do: func(p *peer) {
			p.head(1, false, request...)
			for range 600 {
				p.must(p.WriteDataPadded(1, false, []byte("a"), make([]byte, 250)))
			}
			p.must(p.WriteData(1, true, nil))
		}, want: nil}, // see below: only the answer is looked at
		"a header in two parts (§6.10)": {do: func(p *peer) {
			p.buf.Reset()
			for i := 0; i < len(request); i += 2 {
				p.must(p.enc.WriteField(hpack.HeaderField{Name: request[i], Value: request[i+1]}))
			}
			b := p.buf.Bytes()
			p.must(p.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: b[:5], EndStream: true}))
			p.must(p.WriteContinuation(1, true, b[5:]))
		}, want: answer(1, 0)},
		"an unknown frame (§4.1)": {do: func(p *peer) { p.must(p.WriteRawFrame(0xbb, 0, 0, []byte("x"))); p.get(1) }, want: answer(1, 0)},
		"PRIORITY (§5.3)":         {do: func(p *peer) { p.must(p.WritePriority(1, http2.PriorityParam{Weight: 3})); p.get(1) }, want: answer(1, 0)},
		"an even stream (§5.1.1)": {do: func(p *peer) { p.get(2) }, want: []string{"GOAWAY 0 PROTOCOL_ERROR", "closed"}},
		"a stream id that goes back (§5.1.1)": {do: func(p *peer) { p.get(5); time.Sleep(time.Second); p.head(3, false, request...) },
			want: append(answer(5, 0), "GOAWAY 5 PROTOCOL_ERROR", "closed")},
		"DATA on an idle stream (§5.1)":          {do: func(p *peer) { p.must(p.WriteData(1, true, nil)) }, want: []string{"GOAWAY 0 PROTOCOL_ERROR", "closed"}},
		"RST_STREAM on an idle stream (§6.4)":    {do: func(p *peer) { p.must(p.WriteRSTStream(1, http2.ErrCodeCancel)) }, want: []string{"GOAWAY 0 PROTOCOL_ERROR", "closed"}},
		"WINDOW_UPDATE on an idle stream (§5.1)": {do: func(p *peer) { p.must(p.WriteWindowUpdate(1, 1)) }, want: []string{"GOAWAY 0 PROTOCOL_ERROR", "closed"}},
		"PUSH_PROMISE (§8.4)": {do: func(p *peer) {
			p.get(1)
			p.must(p.WriteRawFrame(http2.FramePushPromise, http2.FlagPushPromiseEndHeaders, 1, []byte{0, 0, 0, 2}))
		}, want: []string{"closed"}}, // with or without the answer to 1, and a GOAWAY: see below
		"DATA behind the end (§5.1)": {do: func(p *peer) {
			p.head(1, false, append(slices.Clone(request), "x-hold", "1")...)
			p.must(p.WriteData(1, true, nil))
			p.must(p.WriteData(1, true, []byte("more")))
		}, want: []string{"RST_STREAM 1 STREAM_CLOSED"}},
		"no path (§8.3.1)":              {do: func(p *peer) { p.head(1, true, ":method", "GET", ":scheme", "http") }, want: []string{"RST_STREAM 1 PROTOCOL_ERROR"}},
		"a bad Content-Length":          {do: func(p *peer) { p.head(1, true, append(slices.Clone(request), "content-length", "-1")...) }, want: []string{"RST_STREAM 1 PROTOCOL_ERROR"}},
		"a window too large (§6.9.1)":   {do: func(p *peer) { p.must(p.WriteWindowUpdate(0, 1<<31-1)) }, want: []string{"GOAWAY 0 FLOW_CONTROL_ERROR", "closed"}},
		"a setting out of range (§6.5)": {do: func(p *peer) { p.must(p.WriteSettings(http2.Setting{ID: http2.SettingMaxFrameSize, Val: 1})) }, want: []string{"GOAWAY 0 PROTOCOL_ERROR", "closed"}},
		"a frame too large (§4.2)":      {do: func(p *peer) { p.must(p.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, 16385))) }, want: []string{"closed"}},
		"a small window of the client (§6.9.2)": {settings: []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 2}}, do: func(p *peer) {
			p.head(1, false, request...)
			p.must(p.WriteData(1, true, []byte("abcde")))
			p.expect("HEADERS 1", "DATA 1 2")
			p.must(p.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 3}))
			p.expect("DATA 1 1")
			p.must(p.WriteWindowUpdate(1, 10))
		}, want: []string{"DATA 1 2"}},
		"a client that takes larger frames (§4.2)": {settings: []http2.Setting{{ID: http2.SettingMaxFrameSize, Val: 20000}}, do: func(p *peer) {
			p.head(1, false, request...)
			p.must(p.WriteData(1, false, make([]byte, 16000)))
			p.must(p.WriteData(1, true, make([]byte, 3000)))
		}, want: []string{"HEADERS 1", "DATA 1 19000"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := world.Memory()
				addr, stop := serve(t, n, &h2.Server{Handler: func(s *h2.Stream) {
					if s.Request().Header.Get("X-Hold") != "" {
						<-s.Request().Context().Done()
						return
					}
					echo(s)
				}})
				defer stop()
				p := dial(t, n, addr, c.settings...)
				defer p.conn.Close()
				c.do(p)
				got := p.frames()
				switch {
				case name == "padding counts (§6.9.1)":
					if len(got) < 3 || !slices.Contains(got, "WINDOW_UPDATE 1") || got[len(got)-1] != "DATA 1 600" {
						t.Errorf("frames %q", got)
					}
				case len(c.want) == 1 && c.want[0] == "closed":
					if len(got) < 2 || got[len(got)-1] != "closed" || !strings.HasPrefix(got[len(got)-2], "GOAWAY") {
						t.Errorf("frames %q, want a GOAWAY and the end", got)
					}
				case !slices.Equal(got, c.want):
					t.Errorf("frames %q, want %q", got, c.want)
				}
			})
		})
	}
}
