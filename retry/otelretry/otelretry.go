// Package otelretry traces the calls of a retry client by OpenTelemetry: a span
// for the call, and one below it for each request that it sends.
//
//	tracing, err := otelretry.New(otelretry.Options{TracerProvider: provider})
//	...
//	client, err := retry.NewClient(policy,
//		retry.WithTransport(tracing.Transport(nil)), retry.WithHook(tracing.Hook))
//	...
//	resp, err := tracing.Do(client, req)
//
// # The spans of requests
//
// They keep to the semantic conventions for HTTP client spans: kind client,
// named after the method, with http.request.method, url.full, server.address,
// server.port, network.protocol.version, http.response.status_code, error.type,
// and http.request.resend_count from the second request of the call on, whatever
// it was sent for: a retry or a redirect. One that is sent for a retry says why
// by retry.reason, and how long the wait before it was by retry.wait, in seconds.
// The span ends with the response's body, or with the failure.
//
// # The span of a call
//
// It is of kind internal, is named "retry" and the method, and has an event
// "retry" for each attempt that was followed by another: retry.attempt (1 is the
// first), retry.reason, retry.category, retry.outcome and retry.wait. At its end
// it has retry.attempts, and the final status or error; it ends with the body.
//
// # What is left out
//
// url.full has neither user nor password, nor the values of the query, nor a
// fragment. Headers and bodies are not recorded.
package otelretry

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/retrychaos/retrychaos/retry"
)

// Scope is the name of the tracer.
const Scope = "github.com/retrychaos/retrychaos/retry/otelretry"

// Options of a Tracing.
type Options struct {
	// TracerProvider makes the tracer. It is needed: there is no global one.
	TracerProvider trace.TracerProvider

	// Propagator, if not nil, adds the context of a request's span to the
	// request's header.
	Propagator propagation.TextMapPropagator

	// URL, if not nil, makes url.full, in place of what the package comment
	// says. It is given the request's own URL and must not change it.
	URL func(*url.URL) string
}

// A Tracing makes the spans. It is safe for concurrent use.
type Tracing struct {
	opts   Options
	tracer trace.Tracer
}

// New returns a Tracing. The error says that the options have no
// TracerProvider.
func New(opts Options) (*Tracing, error) {
	if opts.TracerProvider == nil {
		return nil, errors.New("otelretry: Options.TracerProvider is nil")
	}
	if opts.URL == nil {
		opts.URL = withoutSecrets
	}
	return &Tracing{opts: opts, tracer: opts.TracerProvider.Tracer(Scope)}, nil
}

// A call is what the spans of one call know of each other. It travels in the
// context.
type call struct {
	span trace.Span

	mu       sync.Mutex
	requests int           // sent so far
	attempts int           // that the hook has seen
	why      retry.Attempt // why the next request is sent, if Retrying
}

type callKey struct{}

func callFrom(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// next counts a request and returns how many there were before it, and the
// attempt that it is a retry of, if it is one.
func (c *call) next() (before int, why retry.Attempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, why = c.requests, c.why
	c.requests++
	c.why = retry.Attempt{}
	return before, why
}

// Hook is for [retry.WithHook]. It puts what was decided after an attempt into
// the spans of a call that was started by Do or Fetch. A program that has a hook
// of its own calls this one from it.
func (t *Tracing) Hook(ctx context.Context, a retry.Attempt) {
	c := callFrom(ctx)
	if c == nil {
		return
	}
	c.mu.Lock()
	c.attempts++
	c.why = a
	c.mu.Unlock()
	if !a.Retrying {
		return
	}
	c.span.AddEvent("retry", trace.WithAttributes(
		attribute.Int("retry.attempt", a.Number),
		attribute.String("retry.reason", a.Decision.Reason),
		attribute.String("retry.category", string(a.Decision.Category)),
		attribute.String("retry.outcome", string(a.Decision.Outcome)),
		waitAttribute(a.Wait)))
}

func waitAttribute(d time.Duration) attribute.KeyValue {
	return attribute.Float64("retry.wait", d.Seconds())
}

// start begins the span of a call.
func (t *Tracing) start(req *http.Request) (*http.Request, *call) {
	ctx, span := t.tracer.Start(req.Context(), "retry "+methodName(req.Method),
		trace.WithAttributes(methodAttributes(req.Method)...),
		trace.WithAttributes(attribute.String("url.full", t.opts.URL(req.URL))))
	c := &call{span: span}
	return req.WithContext(context.WithValue(ctx, callKey{}, c)), c
}

// finish describes the end of a call. failure is nil if it is a success.
func (c *call) finish(status int, failure error, report *retry.Error) {
	c.mu.Lock()
	attempts := c.attempts
	c.mu.Unlock()
	if attempts > 0 {
		c.span.SetAttributes(attribute.Int("retry.attempts", attempts))
	}
	if status != 0 {
		c.span.SetAttributes(attribute.Int("http.response.status_code", status))
	}
	if failure == nil && status < 400 {
		return
	}
	c.span.SetAttributes(attribute.String("error.type", errorType(status, failure)))
	reason := ""
	if report != nil {
		reason = report.Reason
	}
	c.span.SetStatus(codes.Error, reason)
}

// Do is client.Do with a span for the call.
func (t *Tracing) Do(client *retry.Client, req *http.Request) (*http.Response, error) {
	req, c := t.start(req)
	resp, err := client.Do(req)
	if err != nil {
		report, _ := errors.AsType[*retry.Error](err)
		c.finish(0, err, report)
		c.span.End()
		return resp, err
	}
	c.finish(resp.StatusCode, nil, retry.Explain(resp))
	endWithBody(resp, func(error) { c.span.End() })
	return resp, nil
}

// Fetch is retry.Fetch with a span for the call.
func Fetch[T any](t *Tracing, client *retry.Client, req *http.Request, decode func(*http.Response) (T, error)) (T, error) {
	req, c := t.start(req)
	defer c.span.End()
	status := 0
	value, err := retry.Fetch(client, req, func(resp *http.Response) (T, error) {
		status = resp.StatusCode
		return decode(resp)
	})
	if failed, ok := errors.AsType[*retry.StatusError](err); ok {
		status = failed.StatusCode
	}
	report, _ := errors.AsType[*retry.Error](err)
	c.finish(status, err, report)
	return value, err
}
