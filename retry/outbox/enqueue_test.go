package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/retry/outbox"
)

func TestEnqueueRefuses(t *testing.T) {
	o := open(t, filePath(t), outbox.Options{MaxBody: 3})
	const url = "http://server/x"
	key := func(v ...string) http.Header { return http.Header{"Idempotency-Key": v} }
	for _, tt := range []struct {
		call  outbox.Call
		field string // of a CallError, or "" for an UnsafeError
	}{
		{outbox.Call{Method: "a b", URL: url}, "Method"},
		{outbox.Call{Method: "CONNECT", URL: url}, "Method"},
		{outbox.Call{URL: "http://%zz"}, "URL"},
		{outbox.Call{URL: "/x"}, "URL"},
		{outbox.Call{URL: "ftp://server/x"}, "URL"},
		{outbox.Call{URL: "http://server/\xff"}, "URL"},
		{outbox.Call{URL: url, Header: http.Header{"a b": {""}}}, "Header"},
		{outbox.Call{URL: url, Header: http.Header{"A": {"x\ny"}}}, "Header"},
		{outbox.Call{URL: url, Header: http.Header{"A": {"\xff"}}}, "Header"},
		{outbox.Call{URL: url, Header: http.Header{"host": {"x"}}}, "Header"},
		{outbox.Call{URL: url, Body: []byte("1234")}, "Body"},
		{outbox.Call{URL: url, Order: "\xff"}, "Order"},
		{outbox.Call{URL: url, Key: "x\n"}, "Key"},
		{outbox.Call{URL: url, Key: "ключ"}, "Key"},
		{outbox.Call{URL: url, Key: "a", Header: key("b")}, "Key"},
		{outbox.Call{URL: url, Header: key("a", "b")}, "Key"},
		{outbox.Call{Method: "POST", URL: url}, ""},
		{outbox.Call{Method: "PATCH", URL: url, Key: "a"}, ""},
		{outbox.Call{Method: "POST", URL: url, Header: key("a")}, ""},
		{outbox.Call{Method: "get", URL: url}, ""}, // methods have case
	} {
		_, err := o.Enqueue(t.Context(), tt.call)
		if tt.field == "" {
			if e := asType[*outbox.UnsafeError](t, err); e.Keyed != (tt.call.Key != "" || tt.call.Header != nil) {
				t.Errorf("%+v: %+v", tt.call, e)
			}
			continue
		}
		if e := asType[*outbox.CallError](t, err); e.Field != tt.field {
			t.Errorf("%+v: %v", tt.call, err)
		}
	}
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := o.Enqueue(ctx, outbox.Call{URL: url}); err != cause {
		t.Errorf("%v", err)
	}
	if s := o.Stats(); s.Waiting != 0 {
		t.Errorf("%+v", s)
	}
}

func TestOptionsAreChecked(t *testing.T) {
	for _, opts := range []outbox.Options{
		{MaxAge: -1}, {KeyLifetime: -1}, {Workers: -1}, {WorkersPerHost: -1}, {Grace: -1}, {MaxBody: -1}, {MaxAnswer: -1},
		{LockTimeout: -1}, {Policy: retry.Policy{CallTimeout: time.Second}},
	} {
		path := filePath(t)
		_, err := outbox.Open(path, opts)
		asType[*outbox.OptionError](t, err)
	}
	_, err := outbox.Open(filePath(t), outbox.Options{Policy: retry.Policy{MaxAttempts: -1}})
	asType[*retry.PolicyError](t, err)
	if o := open(t, filePath(t), outbox.Options{Policy: retry.Policy{BaseDelay: 2 * time.Hour}}); o == nil {
		t.Error("a long BaseDelay alone is refused")
	}
}

// The key has its form when the call is enqueued, and another policy later does
// not change it.
func TestKeysOnTheWire(t *testing.T) {
	uuid := `[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}`
	for _, tt := range []struct {
		name   string
		policy retry.Policy
		call   outbox.Call
		header string
		want   string
	}{
		{"made", retry.Policy{}, outbox.Call{Method: "POST", KeyHonoured: true}, "Idempotency-Key", `"` + uuid + `"`},
		{"made, by policy", retry.Policy{HonouredKeys: true}, outbox.Call{Method: "POST"}, "Idempotency-Key", `"` + uuid + `"`},
		{"made, bare", retry.Policy{BareKeys: true}, outbox.Call{Method: "POST", KeyHonoured: true}, "Idempotency-Key", uuid},
		{"given", retry.Policy{}, outbox.Call{Method: "POST", KeyHonoured: true, Key: `a"b\`}, "Idempotency-Key", `"a\\"b\\\\"`},
		{"given, other header", retry.Policy{KeyHeader: "X-Key", BareKeys: true}, outbox.Call{Method: "POST", KeyHonoured: true, Key: "a"}, "X-Key", "a"},
		{"in the header", retry.Policy{}, outbox.Call{Method: "POST", KeyHonoured: true, Header: http.Header{"Idempotency-Key": {"raw"}}}, "Idempotency-Key", "raw"},
		{"PUT with a key", retry.Policy{}, outbox.Call{Method: "PUT", Key: "a"}, "Idempotency-Key", `"a"`},
		{"PUT", retry.Policy{}, outbox.Call{Method: "PUT"}, "Idempotency-Key", ""},
		{"declared harmless", retry.Policy{}, outbox.Call{Method: "POST", Idempotent: true}, "Idempotency-Key", ""},
	} {
		f := outcomes()
		path := filePath(t)
		opts := outbox.Options{Policy: tt.policy, Client: []retry.Option{retry.WithTransport(f)}}
		o := open(t, path, opts)
		tt.call.URL = "http://server/x"
		enqueue(t, o, tt.call)
		closeIt(t, o)
		opts.Policy = retry.Policy{BareKeys: !tt.policy.BareKeys, KeyHeader: "X-Other"}
		o = open(t, path, opts)
		drain(t, o)
		got := f.requests()[0].req.Header
		if !regexp.MustCompile(`^`+tt.want+`$`).MatchString(got.Get(tt.header)) || got.Get("X-Other") != "" {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

// Enqueueing a call again with its key, as a program does that was killed before
// it had the ID, is the same call.
func TestEnqueueTwice(t *testing.T) {
	f := outcomes(400)
	path := filePath(t)
	opts := outbox.Options{Client: []retry.Option{retry.WithTransport(f)}}
	o := open(t, path, opts)
	c := charge("x")
	c.Key = "order-17"
	id := enqueue(t, o, c)
	closeIt(t, o)
	o = open(t, path, opts)
	if again := enqueue(t, o, c); again != id || o.Stats().Waiting != 1 {
		t.Errorf("%d and %d are one call; %+v", id, again, o.Stats())
	}
	drain(t, o)
	// A dead letter has its key still.
	if again := enqueue(t, o, c); again != id {
		t.Errorf("%d and %d are one call", id, again)
	}
	// And what DeadLetters gives back can be enqueued as it is.
	if again := enqueue(t, o, onlyLetter(t, o).Call); again != id {
		t.Errorf("%d and %d are one call", id, again)
	}
	other := c
	other.Body = []byte("y")
	_, err := o.Enqueue(t.Context(), other)
	if e := asType[*outbox.KeyReusedError](t, err); e.ID != id || e.Key != `"order-17"` {
		t.Errorf("%+v", e)
	}
	other.URL = "https://elsewhere.example/charges"
	enqueue(t, o, other)
	if err := o.Discard(id); err != nil {
		t.Fatal(err)
	}
	if fresh := enqueue(t, o, c); fresh == id {
		t.Error("a discarded call has come back")
	}
	drain(t, o)
	if again := enqueue(t, o, c); again == id || o.Stats().Waiting != 1 {
		t.Error("a delivered call keeps its key")
	}
}

// What the caller does with its call afterwards changes nothing.
func TestEnqueueCopies(t *testing.T) {
	f := outcomes()
	o := open(t, filePath(t), outbox.Options{Client: []retry.Option{retry.WithTransport(f)}})
	c := charge("x")
	c.Header = http.Header{"A": {"1"}}
	enqueue(t, o, c)
	if len(c.Header) != 1 {
		t.Errorf("the caller's header was changed: %v", c.Header)
	}
	c.Header["A"][0], c.Body[0] = "2", 'y'
	drain(t, o)
	if r := f.requests()[0]; r.body != "x" || r.req.Header.Get("A") != "1" {
		t.Errorf("sent %q, %v", r.body, r.req.Header)
	}
}

func TestManyAtOnce(t *testing.T) {
	f := outcomes()
	o := open(t, filePath(t), outbox.Options{Workers: 8, Client: []retry.Option{retry.WithTransport(f)}})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- o.Run(ctx) }()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for n := range 10 {
				if _, err := o.Enqueue(ctx, charge(fmt.Sprint(g, n))); err != nil {
					t.Error(err)
				}
				o.Stats()
			}
		})
	}
	wg.Wait()
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	drain(t, o)
	bodies := map[string]bool{}
	for _, r := range f.requests() {
		bodies[r.body] = true
	}
	if len(bodies) != 80 || o.Stats().Waiting != 0 {
		t.Errorf("%d bodies; %+v", len(bodies), o.Stats())
	}
	for body := range bodies {
		if strings.Count(body, " ") != 1 {
			t.Errorf("body %q", body)
		}
	}
}
