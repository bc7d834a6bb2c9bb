package faults_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/world"
)

// An h2Sight is what a real net/http client sees of a fault over HTTP/2.
type h2Sight struct {
	text  string
	conns []string // on which connections; nil: fresh and reused
	where string
	is    func(err error) bool
	sent  int // requests that reach the server; 0: 1
}

func h2Sights() []h2Sight {
	fresh, reused := []string{"fresh"}, []string{"reused"}
	err := func(targets ...error) func(error) bool {
		return func(err error) bool {
			for _, target := range targets {
				if errors.Is(err, target) {
					return true
				}
			}
			return false
		}
	}
	timeout := func(err error) bool {
		var ne net.Error
		return errors.Is(err, context.DeadlineExceeded) && errors.As(err, &ne) && ne.Timeout()
	}
	stream := func(code http2.ErrCode) func(error) bool {
		return func(err error) bool {
			var se http2.StreamError // net/http's own type is found by its shape
			return errors.As(err, &se) && se.Code == code
		}
	}
	untyped := func(err error) bool {
		var se http2.StreamError
		var ne net.Error // *url.Error is one
		return errors.As(err, &ne) && !ne.Timeout() && !errors.As(err, &se) && !errors.Is(err, io.EOF) &&
			!errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET)
	}
	none := func(err error) bool { return err == nil }
	do, body, nowhere := faults.WhereDo, faults.WhereBodyRead, faults.WhereNowhere
	reset := []error{io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE}
	s := []h2Sight{
		{text: "ok", where: nowhere, is: none},
		{text: "latency delay=20ms", where: nowhere, is: none},
		{text: "hang", where: do, is: timeout},
		{text: "503", where: nowhere, is: none},
		{text: "malformed_json variant=html", where: faults.WhereDecoding, is: none},

		// Not processed: net/http sends it again by itself, whatever the method.
		{text: "h2_goaway last=below", where: nowhere, is: none, sent: 2},
		{text: "h2_goaway last=below then=open", where: nowhere, is: none, sent: 2},
		{text: "h2_goaway last=twice_lower", where: nowhere, is: none, sent: 2},
		{text: "h2_goaway last=raised", where: nowhere, is: none, sent: 2},
		{text: "h2_goaway last=below code=INTERNAL_ERROR", conns: reused, where: nowhere, is: none, sent: 2},
		{text: "h2_goaway last=below code=INTERNAL_ERROR", conns: fresh, where: do, is: untyped},
		{text: "h2_goaway last=twice_lower code=ENHANCE_YOUR_CALM then=open", conns: fresh, where: do, is: untyped},
		// Perhaps processed.
		{text: "h2_goaway@after_commit last=at", where: do, is: untyped},
		{text: "h2_goaway@after_commit last=above", where: do, is: untyped},
		{text: "h2_goaway@after_commit last=max", where: do, is: untyped},
		{text: "h2_goaway@after_commit last=at then=open", where: nowhere, is: none},
		{text: "h2_goaway@after_commit last=above code=INTERNAL_ERROR then=open", where: nowhere, is: none},
		{text: "h2_goaway@after_commit last=max then=open", where: nowhere, is: none},

		{text: "h2_rst_stream code=REFUSED_STREAM", where: nowhere, is: none, sent: 2},
		{text: "h2_rst_stream code=REFUSED_STREAM at=headers", where: body, is: stream(http2.ErrCodeRefusedStream)},
		// go.dev/issue/47635: net/http takes this one for a refusal too, although it is none.
		{text: "h2_rst_stream@after_commit code=PROTOCOL_ERROR", where: nowhere, is: none, sent: 2},
		{text: "h2_rst_stream@after_commit code=PROTOCOL_ERROR at=headers", where: body, is: stream(http2.ErrCodeProtocol)},
		{text: "h2_rst_stream@after_commit code=NO_ERROR at=answer", where: nowhere, is: none},

		{text: "h2_settings_never_acked", conns: fresh, where: do, is: timeout},
		{text: "h2_settings_never_acked@after_commit end=normal", conns: fresh, where: nowhere, is: none},
		{text: "h2_flow_control_stall variant=request", where: do, is: timeout},
		{text: "h2_flow_control_stall variant=response", where: body, is: timeout},

		{text: "h2_connection_closed end=fin", where: do, is: err(io.ErrUnexpectedEOF)},
		{text: "h2_connection_closed at=headers end=fin", where: body, is: err(io.ErrUnexpectedEOF)},
		{text: "h2_connection_closed at=body end=fin", where: body, is: err(io.ErrUnexpectedEOF)},
		// The reset is told to whichever of net/http's two sides comes first: what the other sees is an EOF.
		{text: "h2_connection_closed end=rst", where: do, is: err(reset...)},
		{text: "h2_connection_closed at=headers end=rst", where: body, is: err(reset...)},
		{text: "h2_connection_closed at=body end=rst", where: body, is: err(reset...)},
		{text: "h2_connection_closed@after_commit at=answer end=fin", where: nowhere, is: none},
		{text: "h2_connection_closed@after_commit at=answer end=rst", where: nowhere, is: none},
	}
	for code, is := range map[string]func(error) bool{
		"INTERNAL_ERROR": stream(http2.ErrCodeInternal), "CANCEL": stream(http2.ErrCodeCancel),
		"ENHANCE_YOUR_CALM": stream(http2.ErrCodeEnhanceYourCalm),
	} {
		s = append(s,
			h2Sight{text: "h2_rst_stream code=" + code, where: do, is: is},
			h2Sight{text: "h2_rst_stream@after_commit at=headers code=" + code, where: body, is: is},
			h2Sight{text: "h2_rst_stream@after_commit at=body code=" + code, where: body, is: is})
	}
	return s
}

func TestWhatAGoClientSeesOverHTTP2(t *testing.T) {
	for _, s := range h2Sights() {
		conns := s.conns
		if conns == nil {
			conns = []string{"fresh", "reused"}
		}
		for _, conn := range conns {
			t.Run(s.text+" "+conn, func(t *testing.T) {
				inBoth(t, func(t *testing.T, n *world.Network) { s.look(t, n, conn == "reused") })
			})
		}
	}
}

func (s h2Sight) look(t *testing.T, n *world.Network, reused bool) {
	f := parse(t, s.text)
	plan := []faults.Fault{f}
	if reused {
		plan = []faults.Fault{{}, f}
	}
	r, stop := newH2Rig(t, n, plan...)
	defer stop()
	limit := 10 * time.Second
	if f.Blocks() {
		limit = 150 * time.Millisecond
	}
	c := r.h2Client(limit)
	defer c.CloseIdleConnections()
	before := 0
	if reused {
		r.warm(c)
		before = 1
	}
	payload := "{}"
	if f.BeforeBody() {
		payload = strings.Repeat("x", 100_000) // more than the window
	}
	// A plain POST, which over HTTP/1.1 net/http never sends twice.
	resp, err := c.Post(r.url(), "application/json", strings.NewReader(payload))
	where := faults.WhereDo
	if err == nil {
		defer resp.Body.Close()
		var body []byte
		where = faults.WhereBodyRead
		if body, err = io.ReadAll(resp.Body); err == nil {
			where = faults.WhereNowhere
			if strict(body, "c1") != nil && resp.StatusCode == 200 {
				where = faults.WhereDecoding
			}
		}
	}
	if where != s.where || !s.is(err) {
		t.Errorf("it fails at %s: %v (%s), want %s", where, err, chain(err), s.where)
	}
	if got := r.served() - before; got != max(s.sent, 1) {
		t.Errorf("%d requests reached the server, want %d", got, max(s.sent, 1))
	}
}

// chain names the types of an error.
func chain(err error) (out string) {
	for ; err != nil; err = errors.Unwrap(err) {
		out += fmt.Sprintf(" %T", err)
	}
	return out
}

// TestHTTP2ReplayWithoutAKey: an unkeyed POST whose stream is reset with PROTOCOL_ERROR after it was carried out
// is carried out twice by one Do (go.dev/issue/47635).
func TestHTTP2ReplayWithoutAKey(t *testing.T) {
	inBoth(t, func(t *testing.T, n *world.Network) {
		r, stop := newH2Rig(t, n, parse(t, "h2_rst_stream@after_commit code=PROTOCOL_ERROR"), faults.Fault{})
		defer stop()
		c := r.h2Client(10 * time.Second)
		defer c.CloseIdleConnections()
		resp, err := c.Post(r.url(), "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		commits := 0
		for _, e := range r.events() {
			if e.what == "commit" {
				commits++
			}
		}
		if commits != 2 {
			t.Errorf("%d commits, want 2", commits)
		}
	})
}

// TestUpload: the server's windows open as it reads, so that 4 MiB go through, and several streams at once.
func TestUpload(t *testing.T) {
	inBoth(t, func(t *testing.T, n *world.Network) {
		r, stop := newH2Rig(t, n)
		defer stop()
		c := r.h2Client(time.Minute)
		defer c.CloseIdleConnections()
		const streams = 3
		errs := make(chan error, streams)
		warmed := r.warmHTTP2(c)
		dialled := n.Dialled()
		for range streams {
			go func() {
				req, _ := http.NewRequest("PUT", r.url(), io.LimitReader(zeros{}, 4<<20))
				req.Trailer = http.Header{"X-Sum": {"1"}}
				resp, err := c.Do(req)
				if err == nil {
					_, err = io.Copy(io.Discard, resp.Body)
					resp.Body.Close()
				}
				errs <- err
			}()
		}
		for range streams {
			if err := <-errs; err != nil {
				t.Error(err)
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.bytes != streams*4<<20 || r.handled != streams+warmed {
			t.Errorf("%d bytes of %d requests have arrived", r.bytes, r.handled)
		}
		if n.Dialled() != dialled {
			t.Errorf("%d connections more, want the one that is there for all", n.Dialled()-dialled)
		}
	})
}

// warmHTTP2 sends requests until one has reused a connection, and returns how many. net/http puts a connection of HTTP/2
// in its pool on the goroutine that has dialled it, which can be later than the end of the first request on it.
func (r *rig) warmHTTP2(c *http.Client) int {
	r.t.Helper()
	for n := 1; ; n++ {
		reused := false
		ctx := httptrace.WithClientTrace(r.t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }})
		req, err := http.NewRequestWithContext(ctx, "GET", r.url(), nil)
		if err != nil {
			r.t.Fatal(err)
		}
		resp, err := c.Do(req)
		if err != nil {
			r.t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if reused {
			return n
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
