package otelretry

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Transport returns a RoundTripper that sends requests through base, or
// http.DefaultTransport if that is nil, each with a span. Put it below the
// retry client, by retry.WithTransport. Requests of calls that were not started
// by Do or Fetch have a span too, which knows nothing of other requests.
func (t *Tracing) Transport(base http.RoundTripper) http.RoundTripper {
	if base == nil {
		base = http.DefaultTransport
	}
	return &transport{t, base}
}

type transport struct {
	*Tracing
	base http.RoundTripper
}

// Unwrap tells package retry that requests go to the base transport as they are,
// but for the propagator's header fields.
func (t *transport) Unwrap() http.RoundTripper { return t.base }

// CloseIdleConnections closes those of the base transport.
func (t *transport) CloseIdleConnections() {
	if c, ok := t.base.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	attrs := methodAttributes(req.Method)
	attrs = append(attrs, attribute.String("url.full", t.opts.URL(req.URL)))
	attrs = append(attrs, serverAttributes(req.URL)...)
	if c := callFrom(req.Context()); c != nil {
		before, why := c.next()
		if before > 0 {
			attrs = append(attrs, attribute.Int("http.request.resend_count", before))
		}
		if why.Retrying {
			attrs = append(attrs, attribute.String("retry.reason", why.Decision.Reason), waitAttribute(why.Wait))
		}
	}
	ctx, span := t.tracer.Start(req.Context(), methodName(req.Method),
		trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(attrs...))
	out := req.WithContext(ctx)
	if t.opts.Propagator != nil {
		out.Header = req.Header.Clone()
		if out.Header == nil {
			out.Header = make(http.Header)
		}
		t.opts.Propagator.Inject(ctx, propagation.HeaderCarrier(out.Header))
	}
	resp, err := t.base.RoundTrip(out)
	if err != nil {
		fail(span, 0, err)
		span.End()
		return resp, err
	}
	resp.Request = req
	span.SetAttributes(attribute.Int("http.response.status_code", resp.StatusCode))
	if v := protocolVersion(resp); v != "" {
		span.SetAttributes(attribute.String("network.protocol.version", v))
	}
	if resp.StatusCode >= 400 {
		fail(span, resp.StatusCode, nil)
	}
	endWithBody(resp, func(err error) {
		if err != nil {
			fail(span, 0, err)
		}
		span.End()
	})
	return resp, nil
}

// fail marks a span: a status of 400 or more is an error of a client span, and
// needs no words; a failure does.
func fail(span trace.Span, status int, err error) {
	span.SetAttributes(attribute.String("error.type", errorType(status, err)))
	text := ""
	if err != nil {
		text = err.Error()
	}
	span.SetStatus(codes.Error, text)
}

// errorType is a name of the failure out of few: the status, "timeout",
// "canceled", or the Go type of the innermost error.
func errorType(status int, err error) string {
	if status >= 400 {
		return strconv.Itoa(status)
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() || errors.Is(err, context.DeadlineExceeded) {
		return "timeout"
	}
	if errors.Is(err, context.Canceled) {
		return "canceled"
	}
	for {
		switch e := err.(type) {
		case interface{ Unwrap() error }:
			inner := e.Unwrap()
			if inner == nil {
				return fmt.Sprintf("%T", err)
			}
			err = inner
		case interface{ Unwrap() []error }:
			inner := e.Unwrap()
			if len(inner) == 0 {
				return fmt.Sprintf("%T", err)
			}
			err = inner[0]
		default:
			return fmt.Sprintf("%T", err)
		}
	}
}

// knownMethods are those of RFC 9110 and RFC 5789, and QUERY. Any other would
// make as many names of spans as someone cares to send.
const knownMethods = " CONNECT DELETE GET HEAD OPTIONS PATCH POST PUT QUERY TRACE "

func known(method string) bool { return strings.Contains(knownMethods, " "+method+" ") }

// methodName is the method as a part of a span's name.
func methodName(method string) string {
	switch {
	case method == "":
		return http.MethodGet
	case known(method):
		return method
	}
	return "HTTP"
}

func methodAttributes(method string) []attribute.KeyValue {
	if method == "" {
		method = http.MethodGet
	}
	if known(method) {
		return []attribute.KeyValue{attribute.String("http.request.method", method)}
	}
	return []attribute.KeyValue{
		attribute.String("http.request.method", "_OTHER"),
		attribute.String("http.request.method_original", method),
	}
}

func serverAttributes(u *url.URL) []attribute.KeyValue {
	attrs := []attribute.KeyValue{attribute.String("server.address", u.Hostname())}
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	if n, err := strconv.Atoi(port); err == nil {
		attrs = append(attrs, attribute.Int("server.port", n))
	}
	return attrs
}

func protocolVersion(resp *http.Response) string {
	switch {
	case resp.ProtoMajor == 0:
		return ""
	case resp.ProtoMajor == 1:
		return fmt.Sprintf("1.%d", resp.ProtoMinor)
	}
	return strconv.Itoa(resp.ProtoMajor)
}

// withoutSecrets prints u without user, password, the values of the query, and
// the fragment.
func withoutSecrets(u *url.URL) string {
	if u == nil {
		return ""
	}
	v := url.URL{Scheme: u.Scheme, Opaque: u.Opaque, Host: u.Host, Path: u.Path, RawPath: u.RawPath}
	if u.User != nil {
		v.User = url.UserPassword("REDACTED", "REDACTED")
	}
	var parts []string
	for part := range strings.SplitSeq(u.RawQuery, "&") {
		name, _, valued := strings.Cut(part, "=")
		if valued {
			part = name + "=REDACTED"
		} else if part != "" {
			part = "REDACTED" // a name alone may be the secret
		}
		parts = append(parts, part)
	}
	v.RawQuery = strings.Join(parts, "&")
	return v.String()
}

// endWithBody calls end once, when the response's body has been read or closed,
// with the error that reading ended with, if it was not io.EOF.
func endWithBody(resp *http.Response, end func(error)) {
	if resp.Body == nil || resp.Body == http.NoBody {
		end(nil)
		return
	}
	if _, upgraded := resp.Body.(io.Writer); upgraded {
		end(nil) // 101 Switching Protocols: what follows is no exchange
		return
	}
	resp.Body = &watchedBody{ReadCloser: resp.Body, end: end}
}

type watchedBody struct {
	io.ReadCloser
	once sync.Once
	end  func(error)
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.once.Do(func() {
			if err == io.EOF {
				b.end(nil)
			} else {
				b.end(err)
			}
		})
	}
	return n, err
}

func (b *watchedBody) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(func() { b.end(nil) })
	return err
}
