package retry_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrychaos/retrychaos/retry"
)

var (
	errDial    = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errReset   = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	errUnknown = errors.New("no one knows")
)

func TestClassify(t *testing.T) {
	written := retry.Wire{Known: true, Hops: 1, Sent: 1}
	answered := retry.Wire{Known: true, Hops: 1, Sent: 1, FirstByte: true}
	nothing := retry.Wire{Known: true, Hops: 1}
	stale := retry.Wire{Known: true, Hops: 1, Reused: true}
	for _, tt := range []struct {
		name     string
		status   int
		err      error
		wire     retry.Wire
		category retry.Category
		outcome  retry.Outcome
	}{
		{"200", 200, nil, answered, "success", "final"},
		{"304", 304, nil, answered, "success", "final"},
		{"400", 400, nil, answered, "status", "final"},
		{"401", 401, nil, answered, "status", "final"},
		{"408", 408, nil, answered, "status", "not_processed"},
		{"409", 409, nil, answered, "status", "final"},
		{"413 without Retry-After", 413, nil, answered, "status", "final"},
		{"422", 422, nil, answered, "status", "final"},
		{"425", 425, nil, answered, "status", "not_processed"},
		{"429", 429, nil, answered, "status", "not_processed"},
		{"500", 500, nil, answered, "status", "unknown"},
		{"501", 501, nil, answered, "status", "final"},
		{"502", 502, nil, answered, "status", "unknown"},
		{"503", 503, nil, answered, "status", "unknown"},
		{"504", 504, nil, answered, "status", "unknown"},
		{"505", 505, nil, answered, "status", "final"},
		{"599", 599, nil, answered, "status", "unknown"},

		{"dial", 0, errDial, retry.Wire{}, "transport", "not_processed"},
		{"dial after a redirect", 0, errDial, written, "transport", "unknown"},
		{"DNS, temporary", 0, &net.DNSError{IsTemporary: true}, retry.Wire{}, "transport", "not_processed"},
		{"DNS, no such host", 0, &net.DNSError{IsNotFound: true}, retry.Wire{}, "transport", "final"},
		{"reset", 0, errReset, written, "transport", "unknown"},
		{"reset, wire unknown", 0, errReset, retry.Wire{}, "transport", "unknown"},
		{"reset before the request", 0, errReset, nothing, "transport", "not_processed"},
		{"EOF", 0, io.EOF, written, "transport", "unknown"},
		{"EOF in the TLS handshake", 0, io.EOF, nothing, "transport", "not_processed"},
		{"EOF, wrapped", 0, fmt.Errorf("x: %w", io.ErrUnexpectedEOF), answered, "transport", "unknown"},
		{"timeout", 0, context.DeadlineExceeded, written, "transport", "unknown"},
		{"timeout before the request", 0, context.DeadlineExceeded, nothing, "transport", "not_processed"},
		{"canceled", 0, context.Canceled, written, "canceled", "final"},
		{"unknown CA", 0, &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, nothing, "transport", "final"},
		{"wrong host in certificate", 0, x509.HostnameError{Certificate: new(x509.Certificate)}, nothing, "transport", "final"},
		{"no TLS", 0, tls.RecordHeaderError{}, nothing, "transport", "final"},
		{"malformed header", 0, textproto.ProtocolError("x"), answered, "invalid_response", "unknown"},
		{"malformed, without a type", 0, errUnknown, answered, "invalid_response", "unknown"},
		{"no type, written", 0, errUnknown, written, "transport", "unknown"},
		{"no type, stale connection", 0, errUnknown, stale, "transport", "not_processed"},
		{"no type, closed before anything was sent", 0, errUnknown, retry.Wire{Known: true, Hops: 1, Connected: true}, "transport", "not_processed"},
		{"no type, nothing sent", 0, errUnknown, nothing, "unknown", "final"},
		{"no type", 0, errUnknown, retry.Wire{}, "unknown", "final"},
		{"text means nothing", 0, errors.New("connection reset by peer"), retry.Wire{}, "unknown", "final"},
		{"decoding", 0, &retry.DecodeError{Err: io.ErrUnexpectedEOF}, answered, "decoding", "final"},
		{"retried already", 0, &retry.Error{Err: errReset}, written, "unknown", "final"},
		{"status error", 0, &retry.StatusError{StatusCode: 503}, retry.Wire{}, "status", "unknown"},
		{"declared", 0, retry.WithOutcome(errUnknown, retry.NotProcessed), retry.Wire{}, "unknown", "not_processed"},
	} {
		var resp *http.Response
		if tt.err == nil {
			resp = response(tt.status)
		}
		d := retry.Classify(resp, tt.err, tt.wire)
		if d.Category != tt.category || d.Outcome != tt.outcome || d.Reason == "" {
			t.Errorf("%s: %v, want %s, %s", tt.name, d, tt.category, tt.outcome)
		}
	}
	for _, code := range []int{402, 500, 503} {
		if d := retry.Classify(response(code, "Idempotent-Replayed", "true"), nil, retry.Wire{}); d.Outcome != retry.Final || d.Category != retry.CategoryStatus {
			t.Errorf("%d, stored with the key and replayed: %v", code, d)
		}
	}
	if d := retry.Classify(response(500, "Idempotent-Replayed", "false"), nil, retry.Wire{}); d.Outcome != retry.Unknown {
		t.Errorf("500, not replayed: %v", d)
	}
	if d := retry.Classify(response(413, "Retry-After", "1"), nil, retry.Wire{}); d.Outcome != retry.NotProcessed {
		t.Errorf("413 with Retry-After: %v", d)
	}
}

// How often a call is sent when every answer is the same.
func TestAttempts(t *testing.T) {
	for _, tt := range []struct {
		answer any
		safe   int // GET, PUT, keyed POST …
		unsafe int // POST
	}{
		{200, 1, 1}, {304, 1, 1}, {400, 1, 1}, {401, 1, 1}, {403, 1, 1}, {404, 1, 1}, {409, 1, 1}, {422, 1, 1},
		{501, 1, 1}, {505, 1, 1},
		{408, 4, 4}, {425, 4, 4}, {429, 4, 4},
		{500, 4, 1}, {502, 4, 1}, {503, 4, 1}, {504, 4, 1},
		{errDial, 4, 4}, {errReset, 4, 1}, {io.EOF, 4, 1}, {errUnknown, 1, 1}, {context.Canceled, 1, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			run := func(want int, name, method string, ctx context.Context, header string, p retry.Policy) {
				a := &answers{outcomes: []any{tt.answer}}
				req := request(t, ctx, method, "http://server/", strings.NewReader("x"))
				if header != "" {
					req.Header.Set("Idempotency-Key", header)
				}
				resp, err := newClient(t, p, a).Do(req)
				if a.calls != want {
					t.Errorf("%s answered %v: %d attempts, want %d", name, tt.answer, a.calls, want)
				}
				for _, b := range a.bodies {
					if b != "x" {
						t.Errorf("%s answered %v: bodies %q", name, tt.answer, a.bodies)
					}
				}
				if code, ok := tt.answer.(int); ok {
					if err != nil || resp.StatusCode != code {
						t.Fatalf("%s answered %v: %v, %v", name, tt.answer, resp, err)
					}
					if b, err := io.ReadAll(resp.Body); string(b) != "body" || err != nil {
						t.Errorf("last response: %q, %v", b, err)
					}
					resp.Body.Close()
					if e := retry.Explain(resp); (e == nil) != (code < 400) {
						t.Errorf("Explain of %d: %v", code, e)
					} else if _, ok := errors.AsType[*retry.BodyError](e); ok {
						t.Errorf("%v", e)
					} else if e != nil && len(e.Attempts) != want {
						t.Errorf("Explain: %v", e)
					}
				} else if e := asType[*retry.Error](t, err); len(e.Attempts) != want || !errors.Is(err, tt.answer.(error)) {
					t.Errorf("%s: %v", name, err)
				}
			}
			for _, m := range []string{"GET", "HEAD", "PUT", "DELETE", "OPTIONS", "QUERY"} {
				run(tt.safe, m, m, ctx, "", retry.Policy{})
			}
			for _, m := range []string{"POST", "PATCH", "LOCK", "get"} {
				run(tt.unsafe, m, m, ctx, "", retry.Policy{})
			}
			run(tt.unsafe, "POST with an undeclared key", "POST", ctx, "k", retry.Policy{})
			run(tt.unsafe, "POST with a declaration and no key", "POST", retry.WithHonouredKey(ctx), "", retry.Policy{})
			if tt.answer == 409 {
				tt.safe = 4 // after the first; see TestConflictInFlight
				return
			}
			run(tt.safe, "POST with a declared key", "POST", retry.WithHonouredKey(ctx), "k", retry.Policy{})
			run(tt.safe, "POST under a policy of honoured keys", "POST", ctx, "k", retry.Policy{HonouredKeys: true})
			run(tt.safe, "POST with a made key", "POST", retry.WithIdempotencyKey(ctx), "", retry.Policy{})
			run(tt.safe, "POST with a given key", "POST", retry.WithKey(ctx, "k"), "", retry.Policy{})
			run(tt.safe, "idempotent POST", "POST", retry.Idempotent(ctx), "", retry.Policy{})
			if tt.answer == 503 {
				run(4, "POST, 503 unprocessed", "POST", ctx, "", retry.Policy{Unprocessed503: true})
			}
		})
	}
}

func TestConflictInFlight(t *testing.T) {
	for _, tt := range []struct {
		outcomes []any
		keyed    bool
		want     int
		status   int
	}{
		{[]any{io.EOF, 409, 409, 200}, true, 4, 200},
		{[]any{409, 200}, true, 1, 409}, // no earlier attempt of ours can be in flight
		{[]any{429, 409, 200}, false, 2, 409},
		{[]any{io.EOF, 422, 200}, true, 2, 422},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			if tt.keyed {
				ctx = retry.WithIdempotencyKey(ctx)
			}
			a := &answers{outcomes: tt.outcomes}
			resp, err := newClient(t, retry.Policy{}, a).Do(request(t, ctx, "POST", "http://server/", nil))
			if err != nil || resp.StatusCode != tt.status || a.calls != tt.want {
				t.Errorf("%v: %d attempts, %v, %v", tt.outcomes, a.calls, resp, err)
			}
		})
	}
}

func TestLastRealFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{outcomes: []any{503, io.EOF, errReset}}
		_, err := newClient(t, retry.Policy{MaxAttempts: 3}, a).Do(request(t, t.Context(), "GET", "http://server/", nil))
		e := asType[*retry.Error](t, err)
		if !errors.Is(err, syscall.ECONNRESET) || errors.Is(err, io.EOF) || len(e.Attempts) != 3 || e.Attempts[0].Status != 503 || e.Cause != nil {
			t.Errorf("%v\n%v", err, e.Attempts)
		}
		asType[*net.OpError](t, err)
	})
}

func TestStackedRetriersAddUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, answer := range []any{503, io.EOF} {
			a := &answers{outcomes: []any{answer}}
			most := 0 // attempts of one call in the lower layer
			inner, err := retry.NewTransport(retry.Policy{MaxAttempts: 3}, a, retry.WithHook(func(_ context.Context, a retry.Attempt) {
				most = max(most, a.Number)
			}))
			if err != nil {
				t.Fatal(err)
			}
			c := newClient(t, retry.Policy{MaxAttempts: 4}, inner)
			// A layer in between hides that the lower one is a retrier.
			between := newClient(t, retry.Policy{MaxAttempts: 4}, passThrough{inner})
			retry.Do(t.Context(), retry.Policy{MaxAttempts: 5}, func(ctx context.Context) (int, error) {
				resp, err := c.Do(request(t, ctx, "GET", "http://server/", nil))
				if err != nil {
					return 0, err
				}
				resp.Body.Close()
				return 0, &retry.StatusError{StatusCode: resp.StatusCode}
			})
			if a.calls > 5 || a.calls < 3 {
				t.Errorf("%v: %d attempts", answer, a.calls)
			}
			if most != 3 {
				t.Errorf("%v: the lower layer made %d attempts", answer, most)
			}
			for _, c := range []*retry.Client{c, between} {
				a.calls = 0
				resp, err := c.Do(request(t, t.Context(), "PUT", "http://server/", stream{strings.NewReader("x")}))
				if err == nil {
					resp.Body.Close()
				}
				if a.calls != 1 {
					t.Errorf("%v: %d attempts of what cannot be repeated", answer, a.calls)
				}
				for _, body := range []string{"", "x"} {
					a.calls = 0
					ctx := retry.WithIdempotencyKey(t.Context())
					resp, err = c.Do(request(t, ctx, "PUT", "http://server/", strings.NewReader(body)))
					if err == nil {
						resp.Body.Close()
					}
					if a.calls > 4 || a.calls < 3 {
						t.Errorf("%v: %d attempts: %v", answer, a.calls, err)
					}
				}
			}
		}
	})
}

func TestSharedAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{outcomes: []any{503, 503, response(307, "Location", "/b"), 503}}
		tr, _ := retry.NewTransport(retry.Policy{MaxAttempts: 4}, a)
		hc := &http.Client{Transport: tr}
		resp, err := hc.Do(request(t, retry.WithSharedAttempts(t.Context()), "GET", "http://server/a", nil))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		// 503, 503, 307 | 503, and one retry of three left.
		if a.calls != 5 {
			t.Errorf("%d attempts", a.calls)
		}
	})
}

func TestDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := 0
		v, err := retry.Do(t.Context(), retry.Policy{}, func(context.Context) (string, error) {
			if calls++; calls < 3 {
				return "", retry.WithOutcome(errUnknown, retry.NotProcessed)
			}
			return "fine", nil
		})
		if v != "fine" || err != nil || calls != 3 {
			t.Errorf("%q, %v after %d calls", v, err, calls)
		}

		calls = 0
		_, err = retry.Do(t.Context(), retry.Policy{}, func(context.Context) (string, error) { calls++; return "", errUnknown })
		if calls != 1 || !errors.Is(err, errUnknown) {
			t.Errorf("unknown error: %v after %d calls", err, calls)
		}

		start := time.Now()
		calls = 0
		_, err = retry.Do(t.Context(), retry.Policy{MaxAttempts: 2}, func(context.Context) (string, error) {
			calls++
			return "", fmt.Errorf("op: %w", &retry.StatusError{StatusCode: 429, Header: http.Header{"Retry-After": {"7"}}})
		})
		if d := time.Since(start); calls != 2 || d < 7*time.Second || d > 8*time.Second {
			t.Errorf("%v after %d calls and %v", err, calls, d)
		}

		// An attempt that times out is a failure like another; a key of the
		// operation is one for all attempts.
		var keys []string
		calls = 0
		_, err = retry.Do(retry.WithIdempotencyKey(t.Context()), retry.Policy{AttemptTimeout: time.Second}, func(ctx context.Context) (int, error) {
			a := &answers{outcomes: []any{200}}
			resp, err := newClient(t, retry.Policy{}, a).Do(request(t, ctx, "POST", "http://server/", nil))
			if err != nil {
				return 0, err
			}
			resp.Body.Close()
			keys = append(keys, a.keys...)
			if calls++; calls == 1 {
				<-ctx.Done()
				return 0, ctx.Err()
			}
			return 1, nil
		})
		if err != nil || calls != 2 || keys[0] != keys[1] || keys[0] == "" {
			t.Errorf("%v, %d calls, keys %q", err, calls, keys)
		}

		if _, err := retry.Do(t.Context(), retry.Policy{MaxAttempts: -1}, func(context.Context) (int, error) { panic("called") }); err == nil {
			t.Error("bad policy accepted")
		}
	})
}

func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		a := &answers{outcomes: []any{503, 200}}
		c := newClient(t, retry.Policy{Jitter: retry.NoJitter}, a, retry.WithLogger(log))
		resp, err := c.Do(request(t, t.Context(), "GET", "http://me:pass@server/path?token=secret", nil))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		got := out.String()
		for _, want := range []string{"method=GET", "url=http://server/path ", "attempt=1", `reason="503 Service Unavailable"`, "delay=1s", "outcome=unknown"} {
			if !strings.Contains(got, want) {
				t.Errorf("no %s in %s", want, got)
			}
		}
		if strings.Contains(got, "secret") || strings.Contains(got, "pass") || strings.Count(got, "\n") != 1 {
			t.Errorf("log: %s", got)
		}
	})
}

func TestRedirectRefusedIsFinal(t *testing.T) {
	for hops := range 3 {
		a := &answers{outcomes: []any{response(302, "Location", "/b")}}
		hc := &http.Client{CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) > hops {
				return errReset // would be repeated, did it come from the transport
			}
			return nil
		}}
		_, err := newClient(t, retry.Policy{}, a, retry.WithHTTPClient(hc)).Do(request(t, t.Context(), "GET", "http://server/a", nil))
		if !errors.Is(err, errReset) || a.calls != hops+1 {
			t.Errorf("%v after %d", err, a.calls)
		}
	}
}

// After a redirect the first server has acted, whatever the second says.
func TestRedirectedPostIsNotRepeated(t *testing.T) {
	a := &answers{outcomes: []any{response(307, "Location", "/b"), 429, 200}}
	resp, err := newClient(t, retry.Policy{}, a).Do(request(t, t.Context(), "POST", "http://server/a", strings.NewReader("x")))
	if err != nil || resp.StatusCode != 429 || a.calls != 2 {
		t.Errorf("%v, %v after %d", resp, err, a.calls)
	}
}
