package retry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrychaos/retrychaos/retry"
)

// A stream is a body that http.NewRequest cannot replay.
type stream struct{ io.Reader }

func TestBodyWithoutGetBody(t *testing.T) {
	for _, tt := range []struct {
		name     string
		limit    int64
		outcomes []any
		bodies   int
	}{
		{"not buffered", 0, []any{429}, 1},
		{"not buffered", 0, []any{errDial}, 1},
		{"buffered", 5, []any{429}, 4},
		{"too long", 4, []any{errDial}, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &answers{outcomes: tt.outcomes}
			start := time.Now()
			resp, err := newClient(t, retry.Policy{MaxBufferedBody: tt.limit}, a).
				Do(request(t, t.Context(), "POST", "http://server/", stream{strings.NewReader("hello")}))
			if len(a.bodies) != tt.bodies {
				t.Fatalf("%s: bodies %q", tt.name, a.bodies)
			}
			for _, b := range a.bodies {
				if b != "hello" {
					t.Errorf("%s: body %q", tt.name, b)
				}
			}
			if tt.bodies > 1 {
				return
			}
			if time.Since(start) != 0 {
				t.Error("slept before giving up")
			}
			if err == nil {
				resp.Body.Close()
				err = retry.Explain(resp)
				asType[*retry.StatusError](t, err)
			} else if !errors.Is(err, errDial) {
				t.Errorf("%v", err)
			}
			asType[*retry.BodyError](t, err)
		})
	}
}

func TestGetBodyFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		req := request(t, t.Context(), "PUT", "http://server/", strings.NewReader("x"))
		req.GetBody = func() (io.ReadCloser, error) { return nil, errUnknown }
		_, err := newClient(t, retry.Policy{}, &answers{outcomes: []any{errReset}}).Do(req)
		asType[*retry.BodyError](t, err)
		if !errors.Is(err, errUnknown) || !errors.Is(err, errReset) {
			t.Errorf("%v", err)
		}
	})
}

// A discarded response is read to its end and closed before the wait.
func TestDiscardedResponse(t *testing.T) {
	t.Run("short", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			rd := strings.NewReader(strings.Repeat("x", 1000))
			body := &closeRecorder{Reader: rd}
			first := response(503)
			first.Body = body
			c := newClient(t, retry.Policy{}, &answers{outcomes: []any{first, 200}}, retry.WithHook(func(_ context.Context, a retry.Attempt) {
				if a.Number == 2 && (!body.closed || rd.Len() != 0) {
					t.Error("the first response was not drained and closed before the second attempt")
				}
			}))
			go func() {
				synctest.Wait() // for the sleep
				if !body.closed {
					t.Error("not closed before the sleep")
				}
			}()
			resp, err := c.Do(request(t, t.Context(), "GET", "http://server/", nil))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		})
	})
	t.Run("endless", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			body := &closeRecorder{Reader: zeros{}}
			first := response(503)
			first.Body = body
			resp, err := newClient(t, retry.Policy{}, &answers{outcomes: []any{first, 200}}).Do(request(t, t.Context(), "GET", "http://server/", nil))
			if err != nil || !body.closed {
				t.Fatal(err, body.closed)
			}
			resp.Body.Close()
		})
	})
	t.Run("stalled", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			first := response(503)
			first.Body, _ = io.Pipe()
			start := time.Now()
			resp, err := newClient(t, retry.Policy{Jitter: retry.NoJitter}, &answers{outcomes: []any{first, 200}}).
				Do(request(t, t.Context(), "GET", "http://server/", nil))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if d := time.Since(start); d > 1500*time.Millisecond {
				t.Errorf("took %v", d)
			}
		})
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestConnectionIsReusedAfterAStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rawServer{answer: func(n int, req *http.Request, conn net.Conn) bool {
			if n < 3 {
				return write(conn, "HTTP/1.1 503 Busy\r\nContent-Length: 5000\r\n\r\n"+strings.Repeat("x", 5000))
			}
			return reply(req, conn)
		}}
		var reused []bool
		c := newClient(t, retry.Policy{}, s.pipe(t), retry.WithHook(func(_ context.Context, a retry.Attempt) { reused = append(reused, a.Wire.Reused) }))
		resp, err := c.Do(request(t, t.Context(), "GET", "http://server/", nil))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if len(reused) != 3 || reused[0] || !reused[1] || !reused[2] {
			t.Errorf("reused: %v", reused)
		}
	})
}

// The last response is read with its attempt's context: that ends with the
// body, and the attempt's timeout covers it.
func TestLastBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rawServer{answer: func(n int, _ *http.Request, conn net.Conn) bool {
			write(conn, "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
			time.Sleep(5 * time.Second)
			return write(conn, "cd")
		}}
		tr := s.pipe(t)
		var ctx context.Context
		rt := roundTripper(func(req *http.Request) (*http.Response, error) { ctx = req.Context(); return tr.RoundTrip(req) })

		resp, err := newClient(t, retry.Policy{}, rt).Do(request(t, t.Context(), "GET", "http://server/", nil))
		if err != nil {
			t.Fatal(err)
		}
		if ctx.Err() != nil {
			t.Error("the attempt's context ended with the header")
		}
		if b, err := io.ReadAll(resp.Body); string(b) != "abcd" || err != nil {
			t.Errorf("%q, %v", b, err)
		}
		if ctx.Err() == nil {
			t.Error("the attempt's context outlives the body")
		}
		resp.Body.Close()

		resp, err = newClient(t, retry.Policy{AttemptTimeout: 2 * time.Second}, rt).Do(request(t, t.Context(), "GET", "http://server/", nil))
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); string(b) != "ab" || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%q, %v", b, err)
		}
		resp.Body.Close()

		resp, err = newClient(t, retry.Policy{}, rt).Do(request(t, t.Context(), "GET", "http://server/", nil))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if ctx.Err() == nil {
			t.Error("the attempt's context outlives Close")
		}
	})
}

// A body in memory can still be written at once, which ends the attempt like
// reading it. Others are not said to be able to.
func TestLastBodyWritesItself(t *testing.T) {
	for _, inMemory := range []bool{true, false} {
		var ctx context.Context
		rt := roundTripper(func(req *http.Request) (*http.Response, error) {
			ctx = req.Context()
			var body io.Reader = strings.NewReader("body")
			if !inMemory {
				body = struct{ io.Reader }{body}
			}
			return &http.Response{StatusCode: 200, Body: io.NopCloser(body)}, nil
		})
		resp, err := newClient(t, retry.Policy{}, rt).Do(request(t, t.Context(), "GET", "http://server/", nil))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, ok := resp.Body.(io.WriterTo)
		if ok != inMemory {
			t.Fatalf("in memory %v: %T", inMemory, resp.Body)
		}
		if !inMemory {
			continue
		}
		full := errors.New("the disk is full")
		if _, err := body.WriteTo(writer(func([]byte) (int, error) { return 0, full })); err != full || ctx.Err() != nil {
			t.Errorf("%v, and the attempt: %v", err, ctx.Err())
		}
		var b strings.Builder
		if n, err := body.WriteTo(&b); n != int64(b.Len()) || err != nil {
			t.Errorf("%d of %q, %v", n, b.String(), err)
		}
		if ctx.Err() == nil {
			t.Error("the attempt's context outlives the body")
		}
	}
}

type writer func([]byte) (int, error)

func (w writer) Write(p []byte) (int, error) { return w(p) }

// A server that answers before it has read the upload leaves the transport
// reading the first body while the next attempt begins.
func TestEarlyResponseToALargeUpload(t *testing.T) {
	upload := bytes.Repeat([]byte("0123456789abcdef"), 4<<20/16)
	var n int
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n++; n < 4 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		b, err := io.ReadAll(r.Body)
		if !bytes.Equal(b, upload) || err != nil {
			t.Errorf("the last attempt has %d bytes, %v", len(b), err)
		}
	})}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(l)
	defer s.Close()
	for _, body := range []io.Reader{bytes.NewReader(upload), stream{bytes.NewReader(upload)}} {
		n = 0
		p := instant
		p.MaxBufferedBody = 4 << 20
		// The server may reset the connection on which it did not read, so
		// that an attempt may end either way; PUT is repeated in both.
		resp, err := newClient(t, p, new(http.Transport)).Do(request(t, t.Context(), "PUT", "http://"+l.Addr().String(), body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != 200 || n != 4 {
			t.Errorf("%v after %d", resp.Status, n)
		}
	}
}

func decodeJSON(resp *http.Response) (v struct{ A int }, err error) {
	return v, json.NewDecoder(resp.Body).Decode(&v)
}

func TestFetch(t *testing.T) {
	const head = "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n"
	for _, tt := range []struct {
		name   string
		method string
		first  string
		want   int // requests
		target any
	}{
		{"fine", "GET", head + `{"A":1}`, 1, nil},
		{"truncated", "GET", head + `{"A"`, 2, nil},
		{"truncated POST", "POST", head + `{"A"`, 1, io.ErrUnexpectedEOF},
		{"malformed chunk", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 2, nil},
		{"garbage", "GET", "garbage\r\n\r\n", 2, nil},
		{"garbage to a POST", "POST", "garbage\r\n\r\n", 1, new(*retry.Error)},
		{"empty", "GET", "", 2, nil},
		{"short JSON", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n" + `{"A"`, 1, new(*retry.DecodeError)},
		{"wrong type", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n" + `{"A":"x"}`, 1, new(*json.UnmarshalTypeError)},
		{"404", "GET", "HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone", 1, new(*retry.StatusError)},
		{"304", "GET", "HTTP/1.1 304 Not Modified\r\n\r\n", 1, new(*retry.StatusError)},
		{"503", "GET", "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", 2, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &rawServer{answer: func(n int, _ *http.Request, conn net.Conn) bool {
					if n == 1 {
						write(conn, tt.first)
						return false
					}
					return write(conn, head+`{"A":1}`)
				}}
				c := newClient(t, retry.Policy{}, s.pipe(t))
				v, err := retry.Fetch(c, request(t, t.Context(), tt.method, "http://server/", nil), decodeJSON)
				if s.count() != tt.want {
					t.Errorf("%d requests, want %d (%v)", s.count(), tt.want, err)
				}
				switch target := tt.target.(type) {
				case nil:
					if err != nil || v.A != 1 {
						t.Errorf("%v, %v", v, err)
					}
				case error:
					if !errors.Is(err, target) {
						t.Errorf("%v", err)
					}
				default:
					if !errors.As(err, target) || v.A != 0 {
						t.Errorf("%v, %v", v, err)
					}
					asType[*retry.Error](t, err)
				}
				if strings.HasPrefix(tt.name, "garbage to") {
					if d := asType[*retry.Error](t, err).Attempts[0].Decision; d.Category != retry.CategoryInvalidResponse {
						t.Errorf("%v", d)
					}
				}
				if tt.name == "404" {
					if e := asType[*retry.StatusError](t, err); string(e.Body) != "gone" || e.HTTPStatus() != 404 {
						t.Errorf("%+v", e)
					}
				}
			})
		})
	}
}

// A decoder that has what it needs does not wait for a stalled rest.
func TestFetchDoesNotWaitForTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rawServer{answer: func(_ int, _ *http.Request, conn net.Conn) bool {
			write(conn, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{\"A\":1}")
			io.Copy(io.Discard, conn)
			return false
		}}
		start := time.Now()
		v, err := retry.Fetch(newClient(t, retry.Policy{}, s.pipe(t)), request(t, t.Context(), "GET", "http://server/", nil), decodeJSON)
		if v.A != 1 || err != nil || time.Since(start) > time.Second {
			t.Errorf("%v, %v after %v", v, err, time.Since(start))
		}
	})
}

func TestFetchCanceledWhileReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &rawServer{answer: func(_ int, _ *http.Request, conn net.Conn) bool {
			write(conn, "HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{")
			io.Copy(io.Discard, conn)
			return false
		}}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		start := time.Now()
		_, err := retry.Fetch(newClient(t, retry.Policy{}, s.pipe(t)), request(t, ctx, "GET", "http://server/", nil), decodeJSON)
		if !errors.Is(err, context.Canceled) || time.Since(start) != time.Second || s.count() != 1 {
			t.Errorf("%v after %v and %d requests", err, time.Since(start), s.count())
		}
	})
}
