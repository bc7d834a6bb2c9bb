package retry_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/retry"
)

// A script is a transport that notes what it is given. Its first answers are
// given, all others are 200.
type script struct {
	answers []answer
	seen    []string
	bodies  []*closeRecorder // of what it has answered
}

type answer func() (*http.Response, error)

func (s *script) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		req.Body.Close()
	}
	_, limited := req.Context().Deadline()
	s.seen = append(s.seen, fmt.Sprintf("%s %v host=%q %#v %q limited=%v ended=%v of=%v",
		req.Method, req.URL, req.Host, req.Header, body, limited, req.Context().Err(), req.Context().Value(testKey{})))
	next := replying(200, "done")
	if n := len(s.seen); n <= len(s.answers) {
		next = s.answers[n-1]
	}
	resp, err := next()
	if resp != nil {
		resp.Request = req
		if _, connection := resp.Body.(io.Writer); resp.Body != nil && !connection {
			b := &closeRecorder{Reader: resp.Body}
			s.bodies = append(s.bodies, b)
			resp.Body = b
		}
	}
	return resp, err
}

type testKey struct{}

// A duplex is the body of a response with 101: the connection.
type duplex struct{ io.ReadWriter }

func (duplex) Close() error { return nil }

func replying(status int, body string, header ...string) answer {
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
		"that looks at redirects": func() *http.Client {
			return &http.Client{CheckRedirect: func(req *http.Request, via []*http.Request) error {
				req.Header.Set("Seen", fmt.Sprint(req.Method, req.URL, via[0].Method, via[0].URL, len(via), via[0].Context().Value(testKey{}), req.Response.StatusCode))
				return nil
			}}
		},
	}
	plain := func(method, target, body string, change func(*http.Request)) func() *http.Request {
		return func() *http.Request {
			var r io.Reader
			if body != "" {
				r = strings.NewReader(body)
			}
			req := request(t, context.WithValue(t.Context(), testKey{}, "the caller"), method, target, r)
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
		"GET with a token": plain("GET", "http://server.example/a", "", func(r *http.Request) {
			r.Header.Set("Authorization", "Bearer t")
			r.Header.Set("Cookie", "own=1")
			r.Header.Set("Referer", "http://own.example/")
		}),
		"GET over TLS":         plain("GET", "https://server.example/a", "", nil),
		"GET of no scheme":     plain("GET", "http://server.example/a", "", func(r *http.Request) { r.URL.Scheme = "ftp" }),
		"GET of no host":       plain("GET", "http://server.example/a", "", func(r *http.Request) { r.URL.Host, r.Host = "", "" }),
		"POST without a URL":   plain("POST", "http://server.example/a", "body", func(r *http.Request) { r.URL = nil }),
		"CONNECT":              plain("CONNECT", "http://server.example/a", "", nil),
		"a new method":         plain("MELT", "http://server.example/a", "body", nil),
		"PUT that is chunked":  plain("PUT", "http://server.example/a", "body", func(r *http.Request) { r.ContentLength, r.TransferEncoding = -1, []string{"chunked"} }),
		"no method":            plain("GET", "http://server.example/a", "", func(r *http.Request) { r.Method = "" }),
		"HEAD":                 plain("HEAD", "http://server.example/a", "", nil),
		"POST":                 plain("POST", "http://server.example/a", "body", nil),
		"POST to be read once": plain("POST", "http://server.example/a", "body", func(r *http.Request) { r.GetBody = nil }),
	}
	broken := func() (*http.Response, error) { return nil, errors.New("broken") }
	answers := map[string][]answer{
		"200":                   {replying(200, "ok", "Set-Cookie", "new=2")},
		"204":                   {func() (*http.Response, error) { return &http.Response{StatusCode: 204}, nil }},
		"200 that lacks a body": {func() (*http.Response, error) { return &http.Response{StatusCode: 200, ContentLength: 2}, nil }},
		"101": {func() (*http.Response, error) {
			return &http.Response{StatusCode: 101, Body: duplex{bytes.NewBufferString("hello")}}, nil
		}},
		"103":                   {replying(103, "")},
		"300":                   {replying(300, "choose", "Location", "/b")},
		"301":                   {replying(301, "gone", "Location", "/b")},
		"302 to another host":   {replying(302, "gone", "Location", "http://third.example/b", "Set-Cookie", "new=2")},
		"302 to a host below":   {replying(302, "gone", "Location", "http://below.server.example/b")},
		"302 without TLS":       {replying(302, "gone", "Location", "http://server.example/b#part")},
		"302 to a user":         {replying(302, "gone", "Location", "http://other:word@server.example/b")},
		"302 to nowhere":        {replying(302, "gone")},
		"302 to what is no URL": {replying(302, "gone", "Location", "http://[::1")},
		"302 without a body": {func() (*http.Response, error) {
			return &http.Response{StatusCode: 302, Header: http.Header{"Location": {"/b"}}}, nil
		}},
		"302 to an error":     {replying(302, "gone", "Location", "/b"), broken},
		"302 to nothing":      {replying(302, "gone", "Location", "/b"), func() (*http.Response, error) { return nil, nil }},
		"302 round and round": slices.Repeat([]answer{replying(302, "gone", "Location", "/a")}, 20),
		"302 and 307":         {replying(302, "gone", "Location", "http://third.example/b"), replying(307, "gone", "Location", "http://server.example/c")},
		"303":                 {replying(303, "gone", "Location", "/b")},
		"304":                 {replying(304, "")},
		"305":                 {replying(305, "", "Location", "/b")},
		"307":                 {replying(307, "gone", "Location", "/b")},
		"307 to nowhere":      {replying(307, "gone")},
		"308 to another host": {replying(308, "gone", "Location", "http://third.example/b")},
		"399":                 {replying(399, "", "Location", "/b")},
		"404":                 {replying(404, "none")},
		"no status":           {replying(0, "none")},
		"an error":            {broken},
		"a timeout":           {func() (*http.Response, error) { return nil, os.ErrDeadlineExceeded }},
		"an answer without TLS": {func() (*http.Response, error) {
			return nil, tls.RecordHeaderError{RecordHeader: [5]byte([]byte("HTTP/"))}
		}},
		"an answer and an error": {func() (*http.Response, error) {
			resp, _ := replying(200, "ok")()
			return resp, errors.New("broken")
		}},
		"nothing": {func() (*http.Response, error) { return nil, nil }},
	}
	outcome := func(s *script, sent *closeRecorder, resp *http.Response, err error) string {
		var b strings.Builder
		fmt.Fprintln(&b, strings.Join(s.seen, "\n"))
		if e, ok := errors.AsType[*retry.Error](err); ok {
			err = e.Err
		}
		if err != nil {
			// A transport that breaks its contract is named by its type.
			fmt.Fprintf(&b, "%T %s", err, strings.ReplaceAll(err.Error(), "*retry.try", "*retry_test.script"))
			if e, ok := errors.AsType[*url.Error](err); ok {
				fmt.Fprintf(&b, " op=%s url=%s timeout=%v", e.Op, e.URL, e.Timeout())
			}
		} else {
			body, err := io.ReadAll(resp.Body)
			_, writes := resp.Body.(io.Writer)
			fmt.Fprintf(&b, "%d %v %q %v %v writes=%v", resp.StatusCode, resp.Header, body, err, resp.Body.Close(), writes)
			// From here a redirect can be followed back.
			for r := resp; r != nil; r = r.Request.Response {
				fmt.Fprintf(&b, "\n%d of %s %v %v", r.StatusCode, r.Request.Method, r.Request.URL, r.Request.Context().Value(testKey{}))
			}
		}
		for i, body := range s.bodies {
			fmt.Fprintf(&b, "\nbody %d closed=%v", i+1, body.closed)
		}
		if sent != nil {
			fmt.Fprintf(&b, "\nthe request's closed=%v", sent.closed)
		}
		return b.String()
	}
	log.SetOutput(io.Discard) // http.Client tells of answers with errors
	defer log.SetOutput(os.Stderr)
	for client, newClient := range clients {
		for name, newRequest := range requests {
			if client == "with a jar" && name == "GET without a header" {
				continue // http.Client panics
			}
			tracked := func() (*http.Request, *closeRecorder) {
				req := newRequest()
				if req.Body == nil {
					return req, nil
				}
				sent := &closeRecorder{Reader: req.Body}
				req.Body = sent
				return req, sent
			}
			for answer, answers := range answers {
				theirs, ours := &script{answers: answers}, &script{answers: answers}
				hc := newClient()
				hc.Transport = theirs
				req, sent := tracked()
				resp, err := hc.Do(req)
				want := outcome(theirs, sent, resp, err)

				c, err := retry.NewClient(retry.Policy{MaxAttempts: 1, AttemptTimeout: retry.NoTimeout}, retry.WithHTTPClient(newClient()), retry.WithTransport(ours))
				if err != nil {
					t.Fatal(err)
				}
				req, sent = tracked()
				resp, err = c.Do(req)
				if got := outcome(ours, sent, resp, err); got != want {
					t.Errorf("client %s, %s, %s:\n%s\nhttp.Client:\n%s", client, name, answer, got, want)
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
