package retry_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/retry"
)

// A script is a transport that notes what it is given. Its first answer is
// given, all others are 200.
type script struct {
	answer func() (*http.Response, error)
	seen   []string
}

func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		req.Body.Close()
	}
	_, limited := req.Context().Deadline()
	s.seen = append(s.seen, fmt.Sprintf("%s %v host=%q %#v %q limited=%v", req.Method, req.URL, req.Host, req.Header, body, limited))
	if len(s.seen) == 1 {
		return s.answer()
	}
	return replying(200, "done")()
}

func replying(status int, body string, header ...string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		h := make(http.Header)
		for i := 0; i < len(header); i += 2 {
			h.Set(header[i], header[i+1])
		}
		return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}, nil
	}
}

// A Client does what http.Client does, in every detail that is not about
// repeating: also for the requests that it hands to the transport itself.
func TestClientIsAnHTTPClient(t *testing.T) {
	clients := map[string]func() *http.Client{
		"zero": func() *http.Client { return new(http.Client) },
		"with a jar": func() *http.Client {
			jar, err := cookiejar.New(nil)
			if err != nil {
				t.Fatal(err)
			}
			jar.SetCookies(&url.URL{Scheme: "http", Host: "server.example"}, []*http.Cookie{{Name: "old", Value: "1"}})
			return &http.Client{Jar: jar}
		},
		"with a timeout": func() *http.Client { return &http.Client{Timeout: time.Minute} },
		"without redirects": func() *http.Client {
			return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		},
		"against redirects": func() *http.Client {
			return &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return errors.New("no redirects") }}
		},
	}
	plain := func(method, target, body string, change func(*http.Request)) func() *http.Request {
		return func() *http.Request {
			var r io.Reader
			if body != "" {
				r = strings.NewReader(body)
			}
			req := request(t, t.Context(), method, target, r)
			req.Header.Set("X-Test", "1")
			if change != nil {
				change(req)
			}
			return req
		}
	}
	requests := map[string]func() *http.Request{
		"GET":                  plain("GET", "http://server.example/a?q=1", "", nil),
		"GET with a Host":      plain("GET", "http://server.example/a", "", func(r *http.Request) { r.Host = "other.example" }),
		"GET with a password":  plain("GET", "http://user:secret@server.example/a", "", nil),
		"GET with credentials": plain("GET", "http://user:secret@server.example/a", "", func(r *http.Request) { r.Header.Set("Authorization", "Bearer t") }),
		"GET without a header": plain("GET", "http://server.example/a", "", func(r *http.Request) { r.Header = nil }),
		"GET without a URL":    plain("GET", "http://server.example/a", "", func(r *http.Request) { r.URL = nil }),
		"GET of a server":      plain("GET", "http://server.example/a", "", func(r *http.Request) { r.RequestURI = "/a" }),
		"no method":            plain("GET", "http://server.example/a", "", func(r *http.Request) { r.Method = "" }),
		"HEAD":                 plain("HEAD", "http://server.example/a", "", nil),
		"POST":                 plain("POST", "http://server.example/a", "body", nil),
		"POST to be read once": plain("POST", "http://server.example/a", "body", func(r *http.Request) { r.GetBody = nil }),
	}
	answers := map[string]func() (*http.Response, error){
		"200":                   replying(200, "ok", "Set-Cookie", "new=2"),
		"204":                   func() (*http.Response, error) { return &http.Response{StatusCode: 204}, nil },
		"200 that lacks a body": func() (*http.Response, error) { return &http.Response{StatusCode: 200, ContentLength: 2}, nil },
		"301":                   replying(301, "gone", "Location", "/b"),
		"302 to another host":   replying(302, "gone", "Location", "http://third.example/b", "Set-Cookie", "new=2"),
		"302 to nowhere":        replying(302, "gone"),
		"302 to what is no URL": replying(302, "gone", "Location", "http://[::1"),
		"304":                   replying(304, ""),
		"307":                   replying(307, "gone", "Location", "/b"),
		"404":                   replying(404, "none"),
		"an error":              func() (*http.Response, error) { return nil, errors.New("broken") },
		"an answer without TLS": func() (*http.Response, error) {
			return nil, tls.RecordHeaderError{RecordHeader: [5]byte([]byte("HTTP/"))}
		},
		"an answer and an error": func() (*http.Response, error) {
			resp, _ := replying(200, "ok")()
			return resp, errors.New("broken")
		},
		"nothing": func() (*http.Response, error) { return nil, nil },
	}
	outcome := func(s *script, resp *http.Response, err error) string {
		var b bytes.Buffer
		fmt.Fprintln(&b, strings.Join(s.seen, "\n"))
		if e, ok := errors.AsType[*retry.Error](err); ok {
			err = e.Err
		}
		if err != nil {
			// A transport that breaks its contract is named by its type.
			fmt.Fprintf(&b, "%T %s", err, strings.ReplaceAll(err.Error(), "*retry.try", "*retry_test.script"))
			return b.String()
		}
		body, err := io.ReadAll(resp.Body)
		fmt.Fprintf(&b, "%d %v %q %v %v", resp.StatusCode, resp.Header, body, err, resp.Body.Close())
		return b.String()
	}
	for client, newClient := range clients {
		for req, newRequest := range requests {
			if client == "with a jar" && req == "GET without a header" {
				continue // http.Client panics
			}
			for name, answer := range answers {
				theirs, ours := &script{answer: answer}, &script{answer: answer}
				hc := newClient()
				hc.Transport = theirs
				resp, err := hc.Do(newRequest())
				want := outcome(theirs, resp, err)

				c, err := retry.NewClient(retry.Policy{MaxAttempts: 1, AttemptTimeout: retry.NoTimeout}, retry.WithHTTPClient(newClient()), retry.WithTransport(ours))
				if err != nil {
					t.Fatal(err)
				}
				resp, err = c.Do(newRequest())
				if got := outcome(ours, resp, err); got != want {
					t.Errorf("client %s, %s, %s:\n%s\nhttp.Client:\n%s", client, req, name, got, want)
				}
			}
		}
	}
}

// What an http.Client can be asked to do is known where requests are spared
// the way through it.
func TestFieldsOfHTTPClient(t *testing.T) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[http.Client]()) {
		switch f.Name {
		case "Transport", "CheckRedirect", "Jar", "Timeout":
		default:
			t.Errorf("http.Client has a field %s: look at plain in attempt.go", f.Name)
		}
	}
}
