package retry

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptrace"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func attemptOf(t *testing.T, ctx context.Context, timeout time.Duration) *try {
	t.Helper()
	e, _, err := newEngine(Policy{AttemptTimeout: timeout}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return e.begin(ctx).try(http.DefaultTransport)
}

// An attempt's context ends in three ways, whether or not anyone asked for its
// Done before; children end with it, and know why.
func TestAttemptContextEnds(t *testing.T) {
	cause := errors.New("the user left")
	for _, tt := range []struct {
		name  string
		end   func(t *try, cancel context.CancelCauseFunc)
		err   error
		cause error
	}{
		{"by end", func(t *try, _ context.CancelCauseFunc) { t.end(); t.end() }, context.Canceled, context.Canceled},
		{"with the call", func(_ *try, cancel context.CancelCauseFunc) { cancel(cause) }, context.Canceled, cause},
		{"by timeout", func(*try, context.CancelCauseFunc) { time.Sleep(2 * time.Second) }, context.DeadlineExceeded, &TimeoutError{"attempt", 2 * time.Second}},
		{"by end, before the timeout", func(t *try, _ context.CancelCauseFunc) { t.end(); time.Sleep(time.Hour) }, context.Canceled, context.Canceled},
	} {
		for _, early := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				parent, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				tr := attemptOf(t, parent, 2*time.Second)
				ctx := &tr.ctx
				var child context.Context
				if early {
					var stop func()
					child, stop = context.WithCancel(ctx)
					defer stop()
					if ctx.Err() != nil || child.Err() != nil {
						t.Fatalf("%s: ended at once", tt.name)
					}
				}
				if err := ctx.Err(); err != nil {
					t.Fatalf("%s: %v", tt.name, err)
				}
				tt.end(tr, cancel)
				if !early {
					var stop func()
					child, stop = context.WithCancel(ctx)
					defer stop()
				}
				for _, c := range []context.Context{ctx, child} {
					select {
					case <-c.Done():
					case <-time.After(time.Second):
						t.Fatalf("%s: not done", tt.name)
					}
					if err := c.Err(); err != tt.err {
						t.Errorf("%s, asked before %v: %v, want %v", tt.name, early, err, tt.err)
					}
					got := context.Cause(c)
					if want, ok := tt.cause.(*TimeoutError); ok {
						if te, _ := errors.AsType[*TimeoutError](got); te == nil || *te != *want {
							t.Errorf("%s: cause %v", tt.name, got)
						}
					} else if got != tt.cause {
						t.Errorf("%s, asked before %v: cause %v, want %v", tt.name, early, got, tt.cause)
					}
				}
			})
		}
	}
}

func TestAttemptContextDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now()
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		for _, tt := range []struct {
			parent  context.Context
			timeout time.Duration
			want    time.Time
		}{
			{t.Context(), time.Minute, now.Add(time.Minute)},
			{soon, time.Minute, now.Add(time.Second)},
			{soon, time.Millisecond, now.Add(time.Millisecond)},
			{soon, NoTimeout, now.Add(time.Second)},
			{t.Context(), NoTimeout, time.Time{}},
		} {
			tr := attemptOf(t, tt.parent, tt.timeout)
			if got, ok := tr.ctx.Deadline(); !got.Equal(tt.want) || ok == tt.want.IsZero() {
				t.Errorf("%v: deadline %v, %v", tt.timeout, got, ok)
			}
			tr.end()
		}
	})
}

// The children of an attempt's context hang on it without a goroutine each.
func TestAttemptContextHasNoGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := attemptOf(t, context.Background(), NoTimeout)
		child, stop := context.WithCancel(&tr.ctx)
		defer stop()
		// A goroutine that waits for the parent would keep the bubble alive.
		_ = child
		if tr.ctx.Done() != tr.ctx.real.Load().Done() {
			t.Error("Done changes")
		}
	})
}

// end and the making of the real context may meet: it is cancelled all the same.
func TestAttemptContextEndsWhileItIsMade(t *testing.T) {
	for range 2000 {
		tr := attemptOf(t, context.Background(), NoTimeout)
		go tr.end()
		select {
		case <-tr.ctx.Done():
		case <-time.After(10 * time.Second):
			t.Fatal("never done")
		}
	}
}

type someKey struct{}

func TestAttemptContextValues(t *testing.T) {
	parent := context.WithValue(t.Context(), someKey{}, 1)
	tr := attemptOf(t, parent, time.Minute)
	for range 2 {
		if tr.ctx.Value(someKey{}) != 1 || tr.ctx.Value(watchKey{}) != tr || tr.ctx.Value(tallyKey{}) != tr.call.tally || tr.ctx.Value(2) != nil {
			t.Error("values are lost")
		}
		if trace := httptrace.ContextClientTrace(&tr.ctx); trace == nil || trace != tr.trace.Load() {
			t.Error("the hooks are not found")
		}
		tr.ctx.Done()
	}
	tr.end()
}

// The hooks of the caller run beside ours, by either way of handing ours down.
func TestCallersHooks(t *testing.T) {
	e, _, err := newEngine(Policy{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if e.traceKey == nil {
		t.Error("this version of Go hides its key: every call costs one allocation more")
	}
	for _, key := range []any{e.traceKey, nil} {
		e.traceKey = key
		got := 0
		ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{
			GotConn:      func(httptrace.GotConnInfo) { got++ },
			WroteRequest: func(httptrace.WroteRequestInfo) { got++ },
		})
		tr := e.begin(ctx).try(http.DefaultTransport)
		hooks := httptrace.ContextClientTrace(&tr.ctx)
		hooks.GotConn(httptrace.GotConnInfo{Reused: true})
		hooks.WroteHeaders()
		hooks.WroteRequest(httptrace.WroteRequestInfo{})
		if wire, _ := tr.watch.facts(); got != 2 || !wire.Known || !wire.Reused || wire.Sent != 1 {
			t.Errorf("key %v: %d of the caller's, ours %+v", key, got, wire)
		}
		tr.end()
	}
}

// The hooks are made once, whoever asks for them at the same time.
func TestHooksAreMadeOnce(t *testing.T) {
	for range 500 {
		tr := attemptOf(t, t.Context(), NoTimeout)
		var asking sync.WaitGroup
		var got [4]*httptrace.ClientTrace
		for i := range got {
			asking.Go(func() { got[i] = httptrace.ContextClientTrace(&tr.ctx) })
		}
		asking.Wait()
		for _, hooks := range got {
			if hooks == nil || hooks != got[0] {
				t.Fatalf("%p and %p", hooks, got[0])
			}
		}
		tr.end()
	}
}

func TestWithoutAccounting(t *testing.T) {
	e, _, err := newEngine(Policy{}, []Option{WithoutAccounting()})
	if err != nil {
		t.Fatal(err)
	}
	tr := e.begin(t.Context()).try(http.DefaultTransport)
	if httptrace.ContextClientTrace(&tr.ctx) != nil {
		t.Error("there are hooks")
	}
	tr.end()
}
