package retry_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/retry"
)

// A rawServer answers each request by a function that owns the connection, so
// that a test can put anything on the wire, over TCP or over net.Pipe.
type rawServer struct {
	answer func(n int, req *http.Request, conn net.Conn) (keep bool)

	mu       sync.Mutex
	requests int
	raw      []string // each request's bytes, as they came
	wg       sync.WaitGroup
}

func (s *rawServer) serve(conn net.Conn) {
	s.wg.Go(func() {
		defer conn.Close()
		var seen bytes.Buffer
		r := bufio.NewReader(io.TeeReader(conn, &seen))
		for {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			body, _ := io.ReadAll(req.Body)
			req.Body = io.NopCloser(bytes.NewReader(body))
			s.mu.Lock()
			s.requests++
			n := s.requests
			s.raw = append(s.raw, seen.String())
			s.mu.Unlock()
			seen.Reset()
			if !s.answer(n, req, conn) {
				return
			}
		}
	})
}

func (s *rawServer) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests
}

// pipe returns a transport whose connections lead to s, in memory.
func (s *rawServer) pipe(t *testing.T) *http.Transport {
	tr := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		c1, c2 := net.Pipe()
		s.serve(c2)
		return c1, nil
	}}
	t.Cleanup(func() { tr.CloseIdleConnections(); s.wg.Wait() })
	return tr
}

// tcp returns a transport and a URL that lead to s over the loopback network.
func (s *rawServer) tcp(t *testing.T) (*http.Transport, string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			s.serve(conn)
		}
	})
	tr := new(http.Transport)
	t.Cleanup(func() { l.Close(); tr.CloseIdleConnections(); s.wg.Wait() })
	return tr, "http://" + l.Addr().String()
}

// reply answers req well.
func reply(req *http.Request, conn net.Conn) bool {
	if req.Method == "HEAD" {
		return write(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n")
	}
	return write(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
}

func write(conn net.Conn, s string) bool {
	_, err := io.WriteString(conn, s)
	return err == nil
}

// A roundTripper is a stub transport.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		io.Copy(io.Discard, req.Body)
		req.Body.Close()
	}
	return f(req)
}

func response(status int, header ...string) *http.Response {
	h := make(http.Header)
	for i := 0; i+1 < len(header); i += 2 {
		h.Add(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(bytes.NewReader([]byte("body"))), ProtoMajor: 1, ProtoMinor: 1}
}

// answers gives one outcome after the other, an int for a status and an error
// for itself, and counts them. The last one is repeated.
type answers struct {
	outcomes []any
	calls    int
	at       []time.Time
	keys     []string
	bodies   []string
}

func (a *answers) RoundTrip(req *http.Request) (*http.Response, error) {
	outcome := a.outcomes[min(a.calls, len(a.outcomes)-1)]
	a.calls++
	a.at = append(a.at, time.Now())
	a.keys = append(a.keys, req.Header.Get("Idempotency-Key"))
	if req.Body != nil {
		b, _ := io.ReadAll(req.Body)
		req.Body.Close()
		a.bodies = append(a.bodies, string(b))
	}
	switch o := outcome.(type) {
	case int:
		return response(o), nil
	case *http.Response:
		return o, nil
	case error:
		return nil, o
	}
	panic("unknown outcome")
}

func newClient(t *testing.T, p retry.Policy, rt http.RoundTripper, opts ...retry.Option) *retry.Client {
	t.Helper()
	c, err := retry.NewClient(p, append(opts, retry.WithTransport(rt))...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func request(t *testing.T, ctx context.Context, method, url string, body io.Reader) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// instant is a policy without noticeable waits, for tests on real sockets.
var instant = retry.Policy{BaseDelay: 1, MaxDelay: 1, Jitter: retry.NoJitter}

func asType[E error](t *testing.T, err error) E {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("no %T in %v", e, err)
	}
	return e
}

// passThrough hides the type of the transport that it holds.
type passThrough struct{ http.RoundTripper }

// oneCookie is a jar that always holds a=1.
type oneCookie struct{}

func (oneCookie) SetCookies(*url.URL, []*http.Cookie) {}
func (oneCookie) Cookies(*url.URL) []*http.Cookie     { return []*http.Cookie{{Name: "a", Value: "1"}} }
