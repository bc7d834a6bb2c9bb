package retry_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/retrychaos/retrychaos/retry"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// dropSecond answers the first request of all and drops the connection on the
// second and later ones without a byte: what net/http replays.
func dropSecond(n int, req *http.Request, conn net.Conn) bool {
	return n == 1 && reply(req, conn)
}

func TestNetHTTPDoesNotReplay(t *testing.T) {
	for _, tt := range []struct {
		name, method, key, body string
		bare                    int // how often net/http alone sends it
	}{
		{"GET", "GET", "", "", 2},
		{"HEAD", "HEAD", "", "", 2},
		{"OPTIONS", "OPTIONS", "", "", 2},
		{"GET with a body", "GET", "", "q", 2},
		{"keyed DELETE", "DELETE", "k", "", 2},
		{"keyed POST", "POST", "k", "x", 2},
		{"keyed POST without a body", "POST", "k", "", 2},
		{"POST", "POST", "", "x", 1},
		{"PUT", "PUT", "", "x", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			send := func(do func(*http.Request) (*http.Response, error), url string) (reused bool) {
				var body io.Reader
				if tt.body != "" {
					body = strings.NewReader(tt.body)
				}
				warm, err := do(request(t, t.Context(), "GET", url, nil))
				if err != nil {
					t.Fatal(err)
				}
				io.Copy(io.Discard, warm.Body)
				warm.Body.Close()
				first := true
				ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
					reused = reused || first && info.Reused
					first = false
				}})
				req := request(t, ctx, tt.method, url, body)
				if tt.key != "" {
					req.Header.Set("Idempotency-Key", tt.key)
				}
				if resp, err := do(req); err == nil {
					resp.Body.Close()
					t.Error("the dropped request succeeded")
				}
				return reused
			}
			// net/http does not keep a connection whose writing goroutine was held up for 50 ms, as on a busy machine
			// (maxWriteWaitBeforeConnReuse): that says nothing, and there is a server anew.
			reusing := func(client func(http.RoundTripper) func(*http.Request) (*http.Response, error)) *rawServer {
				for range 100 {
					s := &rawServer{answer: dropSecond}
					tr, url := s.tcp(t)
					if send(client(tr), url) {
						return s
					}
				}
				t.Fatal("no connection is ever reused")
				return nil
			}

			bare := reusing(func(tr http.RoundTripper) func(*http.Request) (*http.Response, error) {
				return (&http.Client{Transport: tr}).Do
			})
			if got := bare.count() - 1; got != tt.bare {
				t.Errorf("net/http alone sent it %d times, want %d: the test has lost its ground", got, tt.bare)
			}

			p := instant
			p.MaxAttempts = 1
			var last retry.Attempt
			ours := reusing(func(tr http.RoundTripper) func(*http.Request) (*http.Response, error) {
				return newClient(t, p, tr, retry.WithHook(func(_ context.Context, a retry.Attempt) { last = a })).Do
			})
			if got := ours.count() - 1; got != 1 {
				t.Errorf("sent %d times in one attempt", got)
			}
			if last.Wire.Sent != 1 || last.Wire.Hops != 1 || !last.Wire.Reused || last.Wire.FirstByte {
				t.Errorf("wire %+v", last.Wire)
			}
			if last.Decision.Category != retry.CategoryTransport || last.Decision.Outcome != retry.Unknown {
				t.Errorf("decision %v", last.Decision)
			}
		})
	}
}

// What net/http does not resend, the loop does, and counts.
func TestDroppedReusedConnectionIsRepeated(t *testing.T) {
	s := &rawServer{answer: func(n int, req *http.Request, conn net.Conn) bool {
		return n != 2 && reply(req, conn)
	}}
	tr, url := s.tcp(t)
	var attempts []retry.Attempt
	c := newClient(t, instant, tr, retry.WithHook(func(_ context.Context, a retry.Attempt) { attempts = append(attempts, a) }))
	for range 2 {
		resp, err := c.Do(request(t, t.Context(), "GET", url, nil))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	if s.count() != 3 || len(attempts) != 3 {
		t.Errorf("%d requests, %d attempts, want 3 and 3", s.count(), len(attempts))
	}
}

// The request on the wire is byte for byte what net/http alone sends.
func TestRequestIsUnchanged(t *testing.T) {
	for _, method := range []string{"GET", "HEAD", "OPTIONS", "DELETE", "TRACE", "POST", "PUT", "PROPFIND", "QUERY"} {
		for _, body := range []string{"", "hello"} {
			var raw [2]string
			for i := range raw {
				s := &rawServer{answer: func(_ int, req *http.Request, conn net.Conn) bool { return reply(req, conn) }}
				tr := s.pipe(t)
				var rd io.Reader
				if body != "" {
					rd = strings.NewReader(body)
				}
				req := request(t, t.Context(), method, "http://server/p?q=1", rd)
				req.Header.Set("X-Test", "1")
				do := (&http.Client{Transport: tr}).Do
				if i == 1 {
					do = newClient(t, retry.Policy{}, tr).Do
				}
				resp, err := do(req)
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				s.mu.Lock()
				raw[i] = s.raw[0]
				s.mu.Unlock()
			}
			if raw[0] != raw[1] {
				t.Errorf("%s with body %q:\nnet/http\n%s\nretry\n%s", method, body, raw[0], raw[1])
			}
		}
	}
}

func TestHTTP2RequestIsWellFormed(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if r.ProtoMajor != 2 || len(b) != 0 || err != nil || len(r.TransferEncoding) != 0 || r.ContentLength > 0 {
			t.Errorf("%s: %s, body %q, error %v, header %v", r.Method, r.Proto, b, err, r.Header)
		}
		w.Write([]byte("ok"))
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	c := newClient(t, instant, srv.Client().Transport)
	for _, method := range []string{"GET", "HEAD", "DELETE", "OPTIONS", "POST"} {
		resp, err := c.Do(request(t, t.Context(), method, srv.URL, nil))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); err != nil || method != "HEAD" && string(b) != "ok" {
			t.Errorf("%s: %q, %v", method, b, err)
		}
		resp.Body.Close()
	}
}

// http2Server resets every stream as refused until it has refused n, and then
// answers 200. It returns the transport and a counter of streams.
func http2Server(t *testing.T, refuse int) (*http.Transport, *int) {
	streams := new(int)
	serve := func(conn net.Conn) {
		defer conn.Close()
		// Both sides of a pipe writing at once would wait for each other.
		out := make(chanWriter, 1000)
		defer close(out)
		go func() {
			for b := range out {
				conn.Write(b)
			}
		}()
		io.ReadFull(conn, make([]byte, len(http2.ClientPreface)))
		fr := http2.NewFramer(out, conn)
		fr.WriteSettings()
		for {
			f, err := fr.ReadFrame()
			if err != nil {
				return
			}
			switch f := f.(type) {
			case *http2.SettingsFrame:
				if !f.IsAck() {
					fr.WriteSettingsAck()
				}
			case *http2.HeadersFrame:
				*streams++
				if *streams <= refuse {
					fr.WriteRSTStream(f.StreamID, http2.ErrCodeRefusedStream)
					continue
				}
				var block bytes.Buffer
				hpack.NewEncoder(&block).WriteField(hpack.HeaderField{Name: ":status", Value: "200"})
				fr.WriteHeaders(http2.HeadersFrameParam{StreamID: f.StreamID, BlockFragment: block.Bytes(), EndHeaders: true, EndStream: true})
			}
		}
	}
	var conns []net.Conn
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	tr.DialContext = func(context.Context, string, string) (net.Conn, error) {
		c1, c2 := net.Pipe()
		go serve(c2)
		conns = append(conns, c1)
		return c1, nil
	}
	t.Cleanup(func() {
		for _, c := range conns {
			c.Close()
		}
	})
	return tr, streams
}

type chanWriter chan []byte

func (c chanWriter) Write(b []byte) (int, error) {
	c <- bytes.Clone(b)
	return len(b), nil
}

func TestRefusedStreams(t *testing.T) {
	for _, tt := range []struct {
		name, method, body string
		refuse, streams    int
		ok                 bool
		attempts           int
	}{
		{"GET once", "GET", "", 1, 2, true, 0},
		{"POST once", "POST", "x", 1, 2, true, 0},
		{"POST without a body once", "POST", "", 1, 2, true, 0},
		{"endless GET", "GET", "", 100, 4, false, 0},
		{"endless POST", "POST", "x", 100, 4, false, 0},
		{"endless POST without a body", "POST", "", 100, 4, false, 0},
		// net/http gives up after 7, and says why; the loop goes on.
		{"eight POSTs", "POST", "x", 8, 9, true, 10},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr, streams := http2Server(t, tt.refuse)
				var body io.Reader
				if tt.body != "" {
					body = strings.NewReader(tt.body)
				}
				c := newClient(t, retry.Policy{AttemptTimeout: retry.NoTimeout, MaxAttempts: tt.attempts}, tr)
				resp, err := c.Do(request(t, t.Context(), tt.method, "http://server/", body))
				if (err == nil) != tt.ok {
					t.Errorf("error %v", err)
				}
				if err == nil {
					resp.Body.Close()
				}
				if errors.Is(err, context.Canceled) {
					t.Errorf("looks canceled: %v", err)
				}
				if *streams != tt.streams {
					t.Errorf("%d streams, want %d (%v)", *streams, tt.streams, err)
				}
			})
		})
	}
}

// Redirects are hops of one attempt, not replays.
func TestRedirectsAreNotReplays(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/end" {
			http.Redirect(w, r, "/end", http.StatusTemporaryRedirect)
			return
		}
		b, _ := io.ReadAll(r.Body)
		w.Write(b)
	}))
	defer srv.Close()
	var attempts []retry.Attempt
	c := newClient(t, instant, srv.Client().Transport, retry.WithHook(func(_ context.Context, a retry.Attempt) { attempts = append(attempts, a) }))
	// Keyed, so that the body's GetBody is withheld from net/http, and still
	// there for the redirect.
	req := request(t, retry.WithIdempotencyKey(t.Context()), "POST", srv.URL, strings.NewReader("hello"))
	resp, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, _ := io.ReadAll(resp.Body); string(b) != "hello" {
		t.Errorf("body %q", b)
	}
	if len(attempts) != 1 || attempts[0].Wire.Hops != 2 || attempts[0].Wire.Sent != 2 || attempts[0].Wire.Resent() != 0 {
		t.Errorf("attempts %+v", attempts)
	}
}

// What net/http resent in a call that went well is missing from what the calls
// have that share their attempts with it.
func TestResentInASuccess(t *testing.T) {
	for resent, want := range map[int]int{0: 4, 2: 2, 3: 1} {
		status := 200
		rt := roundTripper(func(req *http.Request) (*http.Response, error) {
			hooks := httptrace.ContextClientTrace(req.Context())
			for range resent {
				hooks.GetConn("server")
				hooks.GotConn(httptrace.GotConnInfo{})
				hooks.WroteHeaders()
			}
			hooks.GotConn(httptrace.GotConnInfo{})
			hooks.WroteHeaders()
			return response(status), nil
		})
		c := newClient(t, instant, rt)
		ctx := retry.WithSharedAttempts(t.Context())
		resp, err := c.Do(request(t, ctx, "GET", "http://server/", nil))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		status, resent = 503, 0
		resp, err = c.Do(request(t, ctx, "GET", "http://server/", nil))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if e := retry.Explain(resp); len(e.Attempts) != want {
			t.Errorf("%d attempts, want %d", len(e.Attempts), want)
		}
	}
}
