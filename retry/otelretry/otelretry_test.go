package otelretry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/retry/otelretry"
)

// A rig is a traced client over a transport that answers one outcome after the
// other: a status, an error, or a response.
type rig struct {
	spans   *tracetest.InMemoryExporter
	tracing *otelretry.Tracing
	client  *retry.Client
	sent    []*http.Request
}

func newRig(t *testing.T, policy retry.Policy, outcomes ...any) *rig {
	t.Helper()
	r := &rig{spans: tracetest.NewInMemoryExporter()}
	tracing, err := otelretry.New(otelretry.Options{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(r.spans)),
		Propagator:     propagation.TraceContext{},
	})
	if err != nil {
		t.Fatal(err)
	}
	r.tracing = tracing
	base := roundTripper(func(req *http.Request) (*http.Response, error) {
		r.sent = append(r.sent, req)
		switch o := outcomes[min(len(r.sent), len(outcomes))-1].(type) {
		case int:
			return response(o, strings.NewReader("body")), nil
		case error:
			return nil, o
		default:
			return o.(*http.Response), nil
		}
	})
	r.client, err = retry.NewClient(policy, retry.WithTransport(tracing.Transport(base)), retry.WithHook(tracing.Hook))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func response(status int, body io.Reader, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, ProtoMajor: 1, ProtoMinor: 1, Header: h, Body: io.NopCloser(body)}
}

func request(t *testing.T, method, url string) *http.Request {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return req
}

// text prints a span with its attributes in the order of their names.
func text(s tracetest.SpanStub) string {
	b := fmt.Sprintf("%s %s%s", s.SpanKind, s.Name, list(s.Attributes))
	for _, e := range s.Events {
		b += "\n  " + e.Name + list(e.Attributes)
	}
	if s.Status.Code != codes.Unset {
		b += fmt.Sprintf("\n  %s %q", s.Status.Code, s.Status.Description)
	}
	return b
}

func list(attrs []attribute.KeyValue) (b string) {
	attrs = slices.Clone(attrs)
	slices.SortFunc(attrs, func(a, b attribute.KeyValue) int { return strings.Compare(string(a.Key), string(b.Key)) })
	for _, a := range attrs {
		b += fmt.Sprintf(" %s=%s", a.Key, a.Value.Emit())
	}
	return b
}

func (r *rig) expect(t *testing.T, want ...string) tracetest.SpanStubs {
	t.Helper()
	spans := r.spans.GetSpans()
	var got []string
	for _, s := range spans {
		got = append(got, text(s))
	}
	if g, w := strings.Join(got, "\n"), strings.Join(want, "\n"); g != w {
		t.Errorf("spans\n%s\nwant\n%s", g, w)
	}
	return spans
}

var steady = retry.Policy{Jitter: retry.NoJitter}

const where = " server.address=api.example server.port=443"

func TestSpansOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reset := &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
		r := newRig(t, steady, reset, 503, 200)
		resp, err := r.tracing.Do(r.client, request(t, "PUT", "https://user:pass@api.example/a?token=s3cret&x#f"))
		if err != nil {
			t.Fatal(err)
		}
		if n := len(r.spans.GetSpans()); n != 2 {
			t.Errorf("%d spans have ended before the body was read", n)
		}
		if b, err := io.ReadAll(resp.Body); string(b) != "body" || err != nil {
			t.Errorf("body %q, %v", b, err)
		}
		resp.Body.Close()
		const url = " url.full=https://REDACTED:REDACTED@api.example/a?token=REDACTED&REDACTED"
		spans := r.expect(t,
			"client PUT error.type=syscall.Errno http.request.method=PUT"+where+url+"\n"+
				`  Error "read tcp: connection reset by peer"`,
			`client PUT error.type=503 http.request.method=PUT http.request.resend_count=1 http.response.status_code=503 network.protocol.version=1.1 retry.reason=the connection was reset retry.wait=1`+where+url+"\n"+
				`  Error ""`,
			`client PUT http.request.method=PUT http.request.resend_count=2 http.response.status_code=200 network.protocol.version=1.1 retry.reason=503 Service Unavailable retry.wait=2`+where+url,
			"internal retry PUT http.request.method=PUT http.response.status_code=200 retry.attempts=3"+url+"\n"+
				"  retry retry.attempt=1 retry.category=transport retry.outcome=unknown retry.reason=the connection was reset retry.wait=1\n"+
				"  retry retry.attempt=2 retry.category=status retry.outcome=unknown retry.reason=503 Service Unavailable retry.wait=2",
		)
		call := spans[3]
		for i, s := range spans[:3] {
			if s.Parent.SpanID() != call.SpanContext.SpanID() {
				t.Errorf("span %d is not below the call's", i)
			}
			// What the server is told is the request's own span.
			ctx := propagation.TraceContext{}.Extract(context.Background(), propagation.HeaderCarrier(r.sent[i].Header))
			if trace.SpanContextFromContext(ctx).SpanID() != s.SpanContext.SpanID() {
				t.Errorf("request %d carries %v", i, r.sent[i].Header)
			}
		}
		if gap := spans[1].StartTime.Sub(spans[0].EndTime); gap != time.Second {
			t.Errorf("the second request starts %v after the first", gap)
		}
	})
}

func TestSpansOfAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, retry.Policy{MaxAttempts: 1}, 500)
		resp, err := r.tracing.Do(r.client, request(t, "FOO", "https://api.example/"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		r.expect(t,
			"client HTTP error.type=500 http.request.method=_OTHER http.request.method_original=FOO http.response.status_code=500 network.protocol.version=1.1"+where+" url.full=https://api.example/\n"+`  Error ""`,
			"internal retry HTTP error.type=500 http.request.method=_OTHER http.request.method_original=FOO http.response.status_code=500 retry.attempts=1 url.full=https://api.example/\n"+
				`  Error "500 Internal Server Error, and the call may not be repeated: it could happen twice"`)
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, retry.Policy{MaxAttempts: 1}, context.DeadlineExceeded)
		if _, err := r.tracing.Do(r.client, request(t, "GET", "https://api.example/")); err == nil {
			t.Fatal("no error")
		}
		r.expect(t,
			"client GET error.type=timeout http.request.method=GET"+where+" url.full=https://api.example/\n"+`  Error "context deadline exceeded"`,
			"internal retry GET error.type=timeout http.request.method=GET retry.attempts=1 url.full=https://api.example/\n"+`  Error "no attempt left"`)
	})
}

// A redirect is a resent request too, and no retry.
func TestRedirect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, steady, response(307, strings.NewReader(""), "Location", "/b"), 200)
		resp, err := r.tracing.Do(r.client, request(t, "GET", "https://api.example/a"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		r.expect(t,
			"client GET http.request.method=GET http.response.status_code=307 network.protocol.version=1.1"+where+" url.full=https://api.example/a",
			"client GET http.request.method=GET http.request.resend_count=1 http.response.status_code=200 network.protocol.version=1.1"+where+" url.full=https://api.example/b",
			"internal retry GET http.request.method=GET http.response.status_code=200 retry.attempts=1 url.full=https://api.example/a")
	})
}

func TestFetch(t *testing.T) {
	decode := func(resp *http.Response) (n int, err error) { return n, json.NewDecoder(resp.Body).Decode(&n) }
	synctest.Test(t, func(t *testing.T) {
		broken := response(200, io.MultiReader(strings.NewReader("1"), iotest.ErrReader(io.ErrUnexpectedEOF)))
		r := newRig(t, steady, broken, response(200, strings.NewReader("17")))
		n, err := otelretry.Fetch(r.tracing, r.client, request(t, "GET", "http://api.example:8080/"), decode)
		if n != 17 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		const at = " server.address=api.example server.port=8080 url.full=http://api.example:8080/"
		r.expect(t,
			"client GET error.type=*errors.errorString http.request.method=GET http.response.status_code=200 network.protocol.version=1.1"+at+"\n"+`  Error "unexpected EOF"`,
			"client GET http.request.method=GET http.request.resend_count=1 http.response.status_code=200 network.protocol.version=1.1 retry.reason=the connection ended early within the response retry.wait=1"+at,
			"internal retry GET http.request.method=GET http.response.status_code=200 retry.attempts=2 url.full=http://api.example:8080/\n"+
				"  retry retry.attempt=1 retry.category=transport retry.outcome=unknown retry.reason=the connection ended early within the response retry.wait=1")
	})
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, steady, 404)
		_, err := otelretry.Fetch(r.tracing, r.client, request(t, "GET", "https://api.example/"), decode)
		if _, ok := errors.AsType[*retry.StatusError](err); !ok {
			t.Errorf("%v", err)
		}
		spans := r.spans.GetSpans()
		if got := text(spans[len(spans)-1]); !strings.Contains(got, "error.type=404") || !strings.Contains(got, `Error "404 Not Found"`) {
			t.Errorf("%s", got)
		}
	})
}

// Without Do the requests have spans of their own.
func TestTransportAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, steady, 503, 200)
		resp, err := r.client.Do(request(t, "GET", "https://api.example/"))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		spans := r.spans.GetSpans()
		if len(spans) != 2 || strings.Contains(text(spans[1]), "resend_count") {
			t.Errorf("%d spans, the last %s", len(spans), text(spans[len(spans)-1]))
		}
	})
}

func TestOptions(t *testing.T) {
	if _, err := otelretry.New(otelretry.Options{}); err == nil {
		t.Error("no provider is needed")
	}
	spans := tracetest.NewInMemoryExporter()
	tracing, err := otelretry.New(otelretry.Options{
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)),
		URL:            func(u *url.URL) string { return u.Path },
	})
	if err != nil {
		t.Fatal(err)
	}
	base := roundTripper(func(*http.Request) (*http.Response, error) { return response(204, nil), nil })
	resp, err := tracing.Transport(base).RoundTrip(request(t, "GET", "https://api.example/a?b=c"))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if got := text(spans.GetSpans()[0]); !strings.Contains(got, "url.full=/a") || strings.Contains(got, "b=c") {
		t.Errorf("%s", got)
	}
}
