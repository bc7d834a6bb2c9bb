package harness

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"net/textproto"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"
)

// events counts the calls of all hooks that there are.
type events struct {
	mu    sync.Mutex
	count map[string]int
}

func (e *events) note(name string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.count[name]++
}

func (e *events) hooks(by string) *httptrace.ClientTrace {
	hooks := new(httptrace.ClientTrace)
	v := reflect.ValueOf(hooks).Elem()
	for i := range v.NumField() {
		name, f := by+" "+v.Type().Field(i).Name, v.Field(i).Type()
		v.Field(i).Set(reflect.MakeFunc(f, func([]reflect.Value) []reflect.Value {
			e.note(name)
			var out []reflect.Value
			for j := range f.NumOut() {
				out = append(out, reflect.Zero(f.Out(j)))
			}
			return out
		}))
	}
	return hooks
}

// An application's own hooks, of any number of layers, are told under the harness what they are told without it: also
// those of package net, for the name and the connection.
func TestTripsLeaveTheHooksAlone(t *testing.T) {
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusEarlyHints)
		io.Copy(io.Discard, r.Body)
	}))
	defer srv.Close()
	target := strings.Replace(srv.URL, "127.0.0.1", "localhost", 1) + "/charges/c1"
	run := func(under bool) map[string]int {
		base := srv.Client().Transport.(*http.Transport).Clone()
		base.DialContext = nil // as the test server's leads to it without a look at the name
		base.TLSClientConfig = &tls.Config{RootCAs: base.TLSClientConfig.RootCAs, ServerName: "example.com"}
		base.ExpectContinueTimeout = time.Minute
		defer base.CloseIdleConnections()
		rec := newRecorder(time.Now())
		rec.add("c1", "/charges/c1")
		var rt http.RoundTripper = base
		if under {
			rt = &tripper{base, rec}
		}
		e := &events{count: map[string]int{}}
		ctx := httptrace.WithClientTrace(t.Context(), e.hooks("inner"))
		ctx = httptrace.WithClientTrace(ctx, e.hooks("outer"))
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
			if under {
				rec.mu.Lock()
				defer rec.mu.Unlock()
				if trips := rec.calls["c1"].trips; len(trips[len(trips)-1].Peers) != 1 {
					t.Error("the application hears of a connection before it is recorded")
				}
			}
		}})
		for range 2 { // on a new connection, and on the same one
			req, err := http.NewRequestWithContext(ctx, "PUT", target, strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Expect", "100-continue")
			resp, err := rt.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		if under {
			if trips := rec.calls["c1"].trips; len(trips) != 2 || fmt.Sprint(trips[0].Peers) != fmt.Sprint(trips[1].Peers) {
				t.Errorf("trips %+v", trips)
			}
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		return maps.Clone(e.count)
	}
	want, got := run(false), run(true)
	if len(want) < 2*14 {
		t.Fatalf("not enough happens to tell: %v", want)
	}
	if !maps.Equal(got, want) {
		t.Errorf("hooks called %v, and without the harness %v", got, want)
	}
}

// Without the application's hooks there are ours alone; what else the context has is there.
func TestOnConn(t *testing.T) {
	type key struct{}
	told := ""
	note := func(s string) func(httptrace.GotConnInfo) {
		return func(httptrace.GotConnInfo) { told += s }
	}
	own := &httptrace.ClientTrace{Got1xxResponse: func(int, textproto.MIMEHeader) error { return io.EOF }}
	for _, tt := range []struct {
		name   string
		theirs *httptrace.ClientTrace
		want   string
	}{
		{"none", nil, "ours"},
		{"without GotConn", &httptrace.ClientTrace{GetConn: func(string) {}}, "ours"},
		{"with GotConn", &httptrace.ClientTrace{GotConn: note(" theirs")}, "ours theirs"},
	} {
		told = ""
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), key{}, own))
		if tt.theirs != nil {
			ctx = httptrace.WithClientTrace(ctx, tt.theirs)
		}
		under := onConn(ctx, note("ours"))
		hooks := httptrace.ContextClientTrace(under)
		hooks.GotConn(httptrace.GotConnInfo{})
		if told != tt.want || tt.theirs != nil && (hooks.GetConn == nil) != (tt.theirs.GetConn == nil) {
			t.Errorf("%s: told %q, want %q; hooks %+v", tt.name, told, tt.want, hooks)
		}
		if under.Value(key{}) != own {
			t.Errorf("%s: a value of the application's own is gone", tt.name)
		}
		if cancel(); under.Err() == nil {
			t.Errorf("%s: the context goes on after its end", tt.name)
		}
	}
}
