package outbox_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/retry/outbox"
)

// A fakeNet is a transport that answers by a function.
type fakeNet struct {
	answer func(seen) (*http.Response, error)

	mu   sync.Mutex
	seen []seen
}

// seen is a request that was sent.
type seen struct {
	n       int // from 1
	at      time.Time
	req     *http.Request
	body    string
	key     string
	context interface{ Done() <-chan struct{} }
}

func (f *fakeNet) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
		req.Body.Close()
	}
	f.mu.Lock()
	s := seen{n: len(f.seen) + 1, at: time.Now(), req: req, body: string(body), key: req.Header.Get("Idempotency-Key"), context: req.Context()}
	f.seen = append(f.seen, s)
	f.mu.Unlock()
	return f.answer(s)
}

func (f *fakeNet) requests() []seen {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]seen(nil), f.seen...)
}

// response makes an answer with header fields in pairs.
func response(status int, body string, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: h, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body))}
}

// outcomes answers one after the other: a status, an error, or a response; after
// the last with 200.
func outcomes(list ...any) *fakeNet {
	return &fakeNet{answer: func(s seen) (*http.Response, error) {
		if s.n > len(list) {
			return response(200, "done"), nil
		}
		switch o := list[s.n-1].(type) {
		case int:
			return response(o, "no"), nil
		case error:
			return nil, o
		default:
			return o.(*http.Response), nil
		}
	}}
}

// steady waits 1, 2, 4 … minutes.
func steady(f *fakeNet) outbox.Options {
	return outbox.Options{
		Policy: retry.Policy{BaseDelay: time.Minute, Jitter: retry.NoJitter},
		Client: []retry.Option{retry.WithTransport(f)},
	}
}

func filePath(t testing.TB) string { return filepath.Join(t.TempDir(), "outbox") }

func open(t testing.TB, path string, opts outbox.Options) *outbox.Outbox {
	t.Helper()
	o, err := outbox.Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

// charge is a call that only its key keeps from happening twice.
func charge(body string) outbox.Call {
	return outbox.Call{Method: "POST", URL: "https://api.example/charges?token=s3cret", Body: []byte(body), KeyHonoured: true}
}

func enqueue(t testing.TB, o *outbox.Outbox, c outbox.Call) outbox.ID {
	t.Helper()
	id, err := o.Enqueue(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func drain(t testing.TB, o *outbox.Outbox) {
	t.Helper()
	if err := o.Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func closeIt(t testing.TB, o *outbox.Outbox) {
	t.Helper()
	if err := o.Close(); err != nil {
		t.Fatal(err)
	}
}

// onlyLetter returns the one dead letter.
func onlyLetter(t testing.TB, o *outbox.Outbox) outbox.DeadLetter {
	t.Helper()
	list, err := o.DeadLetters()
	if err != nil || len(list) != 1 {
		t.Fatalf("dead letters %v, error %v: want one", list, err)
	}
	if n := o.Stats().DeadLetters; n != 1 {
		t.Fatalf("Stats count %d dead letters", n)
	}
	return list[0]
}

// image copies the file as kill -9 would leave it now.
func image(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	copied := filePath(t)
	if err := os.WriteFile(copied, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return copied
}

func asType[E error](t testing.TB, err error) E {
	t.Helper()
	e, ok := errors.AsType[E](err)
	if !ok {
		t.Fatalf("%v (%T): want a %T", err, err, e)
	}
	return e
}

// about compares instants in a bubble, where writing a batch costs half a
// millisecond.
func about(t testing.TB, what string, got, want time.Duration) {
	t.Helper()
	if got < want || got > want+10*time.Millisecond {
		t.Errorf("%s at %v, want %v", what, got, want)
	}
}
