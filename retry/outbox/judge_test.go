package outbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/retrychaos/retrychaos/retry/outbox"
)

var (
	errDial  = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	errReset = &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
)

// broken is a success whose body breaks off.
func broken() *http.Response {
	r := response(200, "")
	r.Body = io.NopCloser(io.MultiReader(strings.NewReader("do"), iotest.ErrReader(io.ErrUnexpectedEOF)))
	r.ContentLength = 4
	return r
}

// What follows from the outcomes of a call, with waits of 1, 2, 4 … minutes: the
// instants of the attempts in minutes, and the reason of the dead letter, if any.
func TestWhatFollows(t *testing.T) {
	for _, tt := range []struct {
		name     string
		outcomes []any
		change   func(*outbox.Options)
		minutes  string
		reason   outbox.Reason
	}{
		{name: "success", minutes: "[0]"},
		{name: "503", outcomes: []any{503}, minutes: "[0 1]"},
		{name: "429, 500, 502, 504", outcomes: []any{429, 500, 502, 504}, minutes: "[0 1 3 7 15]"},
		{name: "no connection, reset", outcomes: []any{errDial, errReset}, minutes: "[0 1 3]"},
		{name: "a success that breaks off", outcomes: []any{broken()}, minutes: "[0 1]"},
		{name: "a failure that no one knows", outcomes: []any{errors.New("?")}, minutes: "[0 1]"},
		{name: "400", outcomes: []any{400}, minutes: "[0]", reason: outbox.ReasonAnswer},
		{name: "501", outcomes: []any{501}, minutes: "[0]", reason: outbox.ReasonAnswer},
		{name: "304", outcomes: []any{304}, minutes: "[0]", reason: outbox.ReasonAnswer},
		{name: "422 after 503", outcomes: []any{503, 422}, minutes: "[0 1]", reason: outbox.ReasonAnswer},
		{name: "409 at once", outcomes: []any{409}, minutes: "[0]", reason: outbox.ReasonAnswer},
		{name: "409 after an attempt", outcomes: []any{errReset, 409, 409}, minutes: "[0 1 3 7]"},
		{name: "attempts", outcomes: []any{503, 503, 503}, change: func(o *outbox.Options) { o.Policy.MaxAttempts = 2 },
			minutes: "[0 1]", reason: outbox.ReasonAttempts},
		{name: "age: no wait for nothing", outcomes: []any{503, 503, 503}, change: func(o *outbox.Options) { o.MaxAge = 6 * time.Minute },
			minutes: "[0 1 3]", reason: outbox.ReasonAge},
		{name: "Retry-After is a floor", outcomes: []any{response(503, "", "Retry-After", "1800"), 503}, minutes: "[0 30 32]"},
		{name: "Retry-After below the back-off", outcomes: []any{response(503, "", "Retry-After", "30")}, minutes: "[0 1]"},
		{name: "Retry-After above the limit", outcomes: []any{response(429, "", "Retry-After", "1800")},
			change:  func(o *outbox.Options) { o.Policy.MaxRetryAfter = 20 * time.Minute },
			minutes: "[0]", reason: outbox.ReasonRetryAfter},
		{name: "Retry-After above the age", outcomes: []any{503, response(429, "", "Retry-After", "1800")},
			change:  func(o *outbox.Options) { o.MaxAge = 30 * time.Minute; o.Policy.MaxRetryAfter = time.Hour },
			minutes: "[0 1]", reason: outbox.ReasonRetryAfter},
		{name: "Retry-After out of all bounds", outcomes: []any{response(429, "", "Retry-After", "9223372037000")},
			minutes: "[0]", reason: outbox.ReasonRetryAfter},
		{name: "the key expires", outcomes: []any{503, 503, 503}, change: func(o *outbox.Options) { o.KeyLifetime = 5 * time.Minute },
			minutes: "[0 1 3]", reason: outbox.ReasonKeyExpired},
		{name: "the key has not been seen yet", outcomes: []any{errDial, 429, 503, 503, 503}, change: func(o *outbox.Options) { o.KeyLifetime = 5 * time.Minute },
			minutes: "[0 1 3 7]", reason: outbox.ReasonKeyExpired},
		{name: "the key was seen, then not", outcomes: []any{503, errDial, errDial, 503}, change: func(o *outbox.Options) { o.KeyLifetime = 5 * time.Minute },
			minutes: "[0 1 3]", reason: outbox.ReasonKeyExpired},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := outcomes(tt.outcomes...)
				opts := steady(f)
				if tt.change != nil {
					tt.change(&opts)
				}
				o := open(t, filePath(t), opts)
				start := time.Now()
				enqueue(t, o, charge("x"))
				drain(t, o)
				var minutes []int
				for _, r := range f.requests() {
					minutes = append(minutes, int(r.at.Sub(start)/time.Minute))
				}
				if got := fmt.Sprint(minutes); got != tt.minutes {
					t.Errorf("attempts at minutes %s, want %s", got, tt.minutes)
				}
				if tt.reason == "" {
					if s := o.Stats(); s != (outbox.Stats{Delivered: 1}) {
						t.Errorf("%+v", s)
					}
					return
				}
				if d := onlyLetter(t, o); d.Reason != tt.reason || d.Attempts != len(minutes) {
					t.Errorf("dead letter %+v, want reason %s", d, tt.reason)
				}
			})
		})
	}
}

func TestPrepareFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := outcomes()
		opts := steady(f)
		opts.Policy.MaxAttempts = 3
		start := time.Now()
		opts.Prepare = func(context.Context, outbox.ID, *http.Request) error {
			if time.Since(start) < time.Minute {
				return errors.New("no token yet")
			}
			return nil
		}
		o := open(t, filePath(t), opts)
		enqueue(t, o, charge("x"))
		drain(t, o)
		if r := f.requests(); len(r) != 1 {
			t.Errorf("%d requests", len(r))
		} else {
			about(t, "the request", r[0].at.Sub(start), time.Minute)
		}
	})
}

// A dead letter that is requeued has its key and a fresh allowance; one whose
// key may be forgotten is refused; one that is discarded is gone.
func TestDeadLetters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := outcomes(400, 503, 503, 400, 400)
		opts := steady(f)
		opts.Policy.MaxAttempts = 3
		path := filePath(t)
		o := open(t, path, opts)
		id := enqueue(t, o, charge("x"))
		drain(t, o)
		closeIt(t, o)
		o = open(t, path, opts)
		d := onlyLetter(t, o)
		want := fmt.Sprintf("call %d: POST https://api.example/charges: given up after 1 attempts (answer): HTTP status 400 Bad Request", id)
		if d.ID != id || d.String() != want {
			t.Errorf("%v, want %s", d, want)
		}
		asType[*outbox.NotFoundError](t, o.Requeue(id+1))
		asType[*outbox.NotFoundError](t, o.Discard(id+1))

		time.Sleep(23*time.Hour + 50*time.Minute)
		if err := o.Requeue(id); err != nil {
			t.Fatal(err)
		}
		if s := o.Stats(); s.Waiting != 1 || s.DeadLetters != 0 {
			t.Errorf("%+v", s)
		}
		asType[*outbox.NotFoundError](t, o.Requeue(id))
		drain(t, o)
		r := f.requests()
		if len(r) != 4 || r[3].key != r[0].key || r[3].key == "" {
			t.Fatalf("%d requests", len(r))
		}
		if d := onlyLetter(t, o); d.Attempts != 4 || d.Reason != outbox.ReasonAnswer {
			t.Errorf("%+v", d)
		}

		time.Sleep(time.Hour)
		if e := asType[*outbox.KeyExpiredError](t, o.Requeue(id)); e.ID != id || e.Limit != 24*time.Hour {
			t.Errorf("%+v", e)
		}
		// The method alone makes this one safe, for ever.
		put := enqueue(t, o, outbox.Call{Method: "PUT", URL: "http://server/x"})
		drain(t, o)
		time.Sleep(1000 * time.Hour)
		for _, err := range []error{o.Requeue(put), o.Discard(id)} {
			if err != nil {
				t.Error(err)
			}
		}
		drain(t, o)
		closeIt(t, o)
		if s := open(t, path, opts).Stats(); s != (outbox.Stats{}) {
			t.Errorf("%+v", s)
		}
	})
}

func TestLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		opts := steady(outcomes(503, 400))
		opts.Logger = slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}))
		o := open(t, filePath(t), opts)
		enqueue(t, o, charge("x"))
		drain(t, o)
		want := `level=INFO msg=retrying call=1 method=POST url=https://api.example/charges attempt=1 reason="503 Service Unavailable" category=status outcome=unknown delay=1m0s
level=WARN msg="giving up" call=1 method=POST url=https://api.example/charges attempts=2 reason=answer status=400
`
		if b.String() != want {
			t.Errorf("logged\n%swant\n%s", b.String(), want)
		}
	})
}
