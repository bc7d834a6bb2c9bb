package faults_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/world"
)

func TestWhatAGoClientSees(t *testing.T) {
	seen := map[string][]string{}
	for _, s := range sights() {
		f := parse(t, s.text)
		seen[f.Name] = append(seen[f.Name], s.where)
		for _, conn := range []string{"fresh", "reused"} {
			t.Run(s.text+" "+conn, func(t *testing.T) {
				inBoth(t, func(t *testing.T, n *world.Network) {
					plan := []faults.Fault{f}
					if conn == "reused" {
						plan = []faults.Fault{{}, f}
					}
					r, stop := newRig(t, n, plan...)
					defer stop()
					timeout := 10 * time.Second
					if s.is == context.DeadlineExceeded {
						timeout = 100 * time.Millisecond
					}
					c := r.client(timeout)
					defer c.CloseIdleConnections()
					if conn == "reused" {
						r.warm(c)
					}
					s.look(t, c, r.url())
				})
			})
		}
	}
	for _, s := range h2Sights() {
		seen[parse(t, s.text).Name] = append(seen[parse(t, s.text).Name], s.where)
	}
	for _, e := range faults.Catalogue() {
		if e.Level == faults.LevelConnection {
			continue // see TestDialGoClient
		}
		if !slices.Contains(seen[e.Name], e.Where) {
			t.Errorf("%s: no client has seen a failure at %s", e.Name, e.Where)
		}
	}
}

func (s sight) look(t *testing.T, c *http.Client, url string) {
	// A plain POST, which net/http does not resend by itself.
	req, err := http.NewRequest("POST", url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(s.text, "expect_continue") {
		req.Header.Set("Expect", "100-continue")
	}
	resp, err := c.Do(req)
	where := faults.WhereDo
	if err == nil {
		defer resp.Body.Close()
		if resp.StatusCode != s.status {
			t.Errorf("status %d, want %d", resp.StatusCode, s.status)
		}
		var body []byte
		where = faults.WhereBodyRead
		if body, err = io.ReadAll(resp.Body); err == nil {
			where = faults.WhereNowhere
			if strict(body, "c1") != nil && resp.StatusCode == 200 {
				where = faults.WhereDecoding
			}
		}
	}
	if where != s.where {
		t.Errorf("it fails at %s (%v), want %s", where, err, s.where)
	}
	if text, ok := s.is.(says); ok && err != nil {
		if !strings.Contains(err.Error(), string(text)) {
			t.Errorf("error %v, want one that says %q", err, text)
		}
	} else if !errors.Is(err, s.is) {
		t.Errorf("error %v, want %v", err, s.is)
	}
	var ne net.Error
	if s.is == context.DeadlineExceeded && (!errors.As(err, &ne) || !ne.Timeout()) {
		t.Errorf("%v is no timeout", err)
	}
}

// strict is the decoder that the variants of malformed_json are measured with.
func strict(body []byte, call string) error {
	body = bytes.TrimSpace(body)
	if !bytes.HasPrefix(body, []byte("{")) {
		return errors.New("no object")
	}
	var r struct {
		Call   string
		OK     bool
		Effect float64
	}
	if err := json.Unmarshal(body, &r); err != nil { // refuses trailing data
		return err
	}
	if r.Call != call {
		return fmt.Errorf("an answer for %q", r.Call)
	}
	return nil
}

// TestVariantsDoNotDecode shows that there is no variant which a strict client could take for an answer, and
// that the answer without a fault is one.
func TestVariantsDoNotDecode(t *testing.T) {
	if err := strict([]byte(strings.ReplaceAll(goodBody, "#", "1")), "c1"); err != nil {
		t.Fatal(err)
	}
	bodies := malformedBodies()
	for _, v := range faults.Variants() {
		if v.Type != "" {
			continue // a strict client refuses its type
		}
		body, ok := bodies[v.Name]
		if !ok || v.Doc == "" {
			t.Errorf("%s has no proof or no doc", v.Name)
		}
		if strict([]byte(strings.ReplaceAll(body, "#", "1")), "c1") == nil {
			t.Errorf("%s decodes", v.Name)
		}
	}
}

// TestHiddenReplay shows on the wire why on=reused exists: net/http resends a keyed POST by itself, so that
// one Do is two commits.
func TestHiddenReplay(t *testing.T) {
	inBoth(t, func(t *testing.T, n *world.Network) {
		f := parse(t, "empty_response@after_commit")
		r, stop := newRig(t, n, faults.Fault{}, f, faults.Fault{})
		defer stop()
		c := r.client(10 * time.Second)
		defer c.CloseIdleConnections()
		r.warm(c)
		req, _ := http.NewRequest("POST", r.url(), strings.NewReader("{}"))
		req.Header.Set("Idempotency-Key", "k")
		resp, err := c.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		commits := 0
		for _, e := range r.events() {
			if e.what == "commit" {
				commits++
			}
		}
		if commits != 3 {
			t.Errorf("%d commits, want 3: the warming, the lost one and its replay", commits)
		}
	})
}

// TestLatencyAndTheClientThatLeft: what the phases of latency are about.
func TestLatencyAndTheClientThatLeft(t *testing.T) {
	for phase, want := range map[faults.Phase]time.Duration{before: -1, after: 0, late: 200 * time.Millisecond} {
		t.Run(string(phase), func(t *testing.T) {
			inBoth(t, func(t *testing.T, n *world.Network) {
				delay := "200ms"
				if n.Kind() != world.Virtual {
					delay = "2s" // the client must have left by then, whatever else the machine does
				}
				r, stop := newRig(t, n, parse(t, "latency@"+string(phase)+" delay="+delay))
				defer stop()
				c := r.dial()
				io.WriteString(c, rawRequest)
				r.silent()
				c.Close()
				log := r.events()
				i := find(t, log, "commit")
				if (i < 0) != (want < 0) || i >= 0 && r.exact && log[i].at != want {
					t.Errorf("want a commit at %v: %+v", want, log)
				}
				if find(t, log, "answered") >= 0 || find(t, log, "delivered") < 0 {
					t.Errorf("want silence: %+v", log)
				}
			})
		})
	}
}

// TestClosing closes the world in the middle of everything that waits.
func TestClosing(t *testing.T) {
	for _, text := range []string{
		"latency delay=1h", "latency@after_commit delay=1h", "latency@commit_late delay=1h",
		"hang", "hang@after_commit", "hang@commit_late late=1h",
		"empty_response@commit_late late=1h", "connection_reset@commit_late late=1h", "503@commit_late late=1h",
		"stall_body@before_commit", "stall_body delay=1h", "stall_body@commit_late delay=1h end=fin late=1h",
		"truncated_body@commit_late late=1h", "malformed_json@commit_late late=1h",
	} {
		t.Run(text, func(t *testing.T) {
			inBoth(t, func(t *testing.T, n *world.Network) {
				f := parse(t, text)
				r, stop := newRig(t, n, f)
				defer stop()
				c := r.dial()
				defer c.Close()
				r.exchange(c, rawRequest, 50*time.Millisecond)
				begun := time.Now()
				r.close()
				log := r.events()
				if d := time.Since(begun); d > time.Minute || r.exact && d > 0 {
					t.Errorf("it took %v to end", d)
				}
				if committed := find(t, log, "commit") >= 0; committed != (f.Phase != before) {
					t.Errorf("committed: %v: %+v", committed, log)
				}
				if find(t, log, "delivered") < 0 {
					t.Errorf("not delivered: %+v", log)
				}
				got, end := r.exchange(c, "", patience)
				if end == silence || bytes.Contains(got, []byte("HTTP/1.1 200")) {
					t.Errorf("after the closing: %q, then %s", got, end)
				}
			})
		})
	}
}

// TestRepliesThatSayNo: faults strike around a reply of the idempotency store just as around a good one.
func TestRepliesThatSayNo(t *testing.T) {
	for text, body := range map[string]string{
		"ok": goodBody, "truncated_body": half, "stall_body delay=20ms": goodBody, "malformed_json variant=null": "null",
	} {
		t.Run(text, func(t *testing.T) {
			inBoth(t, func(t *testing.T, n *world.Network) {
				r, stop := newRig(t, n, parse(t, text))
				defer stop()
				r.status = http.StatusConflict
				c := r.dial()
				defer c.Close()
				got, _ := r.exchange(c, rawRequest, patience)
				a := dissect(t, got)
				if a.line != "HTTP/1.1 409 Conflict" || a.body != strings.ReplaceAll(body, "#", "1") {
					t.Errorf("%q", got)
				}
			})
		})
	}
}

// TestNothingToDamage: an answer without a body is given well, and Apply says that the fault was not
// delivered.
func TestNothingToDamage(t *testing.T) {
	head := "HEAD /charges/c1 HTTP/1.1\r\nHost: server\r\n\r\n"
	for _, tc := range []struct {
		text, request string
		status        int
	}{
		{"truncated_body", head, 200}, {"stall_body@before_commit", head, 200}, {"malformed_json@commit_late", head, 200},
		{"truncated_body@commit_late", rawRequest, 204}, {"malformed_json", rawRequest, 204},
	} {
		t.Run(tc.text+" "+tc.request[:4], func(t *testing.T) {
			inBoth(t, func(t *testing.T, n *world.Network) {
				r, stop := newRig(t, n, parse(t, tc.text))
				defer stop()
				r.status = tc.status
				c := r.dial()
				defer c.Close()
				got, end := r.exchange(c, tc.request, quiet)
				if a := dissect(t, got); !strings.Contains(a.line, fmt.Sprint(tc.status)) || a.body != "" || end != silence {
					t.Errorf("%q, then %s", got, end)
				}
				log := r.events()
				if find(t, log, "delivered") >= 0 || find(t, log, "commit") < 0 || !errors.Is(r.result, faults.ErrNotApplicable) {
					t.Errorf("%v: %+v", r.result, log)
				}
			})
		})
	}
}

// TestOneByteStaysBack: a body cut behind its end would be no fault.
func TestOneByteStaysBack(t *testing.T) {
	for _, text := range []string{"truncated_body after=1000", "truncated_body after=1.0", "stall_body after=1000 delay=20ms end=fin"} {
		inBoth(t, func(t *testing.T, n *world.Network) {
			r, stop := newRig(t, n, parse(t, text))
			defer stop()
			c := r.dial()
			defer c.Close()
			got, end := r.exchange(c, rawRequest, patience)
			if a := dissect(t, got); len(a.body) != len(goodBody)-1 || end != byFIN {
				t.Errorf("%s: %q, then %s", text, got, end)
			}
		})
	}
}

// TestStatusOnTheWire: every field line as written, by net/http and by hand.
func TestStatusOnTheWire(t *testing.T) {
	for _, phase := range []string{"", "@commit_late"} {
		inBoth(t, func(t *testing.T, n *world.Network) {
			r, stop := newRig(t, n, parse(t, `500`+phase+` retry-after=2s retry-after="soon" header="X-Foo: bar" header="x-foo: baz" body="no luck"`))
			defer stop()
			c := r.dial()
			defer c.Close()
			got, _ := r.exchange(c, rawRequest, patience)
			want := []string{"Content-Length: 7", "Content-Type: text/plain; charset=utf-8", "Retry-After: 2", "Retry-After: soon", "X-Foo: bar", "X-Foo: baz"}
			if phase != "" {
				want = slices.Insert(want, 0, "Connection: close")
			}
			if a := dissect(t, got); !slices.Equal(a.fields, want) || a.body != "no luck" {
				t.Errorf("%q", got)
			}
			c.Close()
			for _, e := range r.events() {
				if e.what == "answered" && (!slices.Equal(e.lines, []string{"2", "soon"}) || !e.notBefore.IsZero()) {
					t.Errorf("%+v", e)
				}
			}
		})
	}
}

// TestUncommonStatuses: those without a body, and one without a name.
func TestUncommonStatuses(t *testing.T) {
	for _, phase := range []string{"", "@commit_late"} {
		for text, want := range map[string]string{"304": "HTTP/1.1 304 Not Modified", "599": "HTTP/1.1 599 status code 599"} {
			inBoth(t, func(t *testing.T, n *world.Network) {
				r, stop := newRig(t, n, parse(t, text+phase))
				defer stop()
				c := r.dial()
				defer c.Close()
				got, _ := r.exchange(c, rawRequest, quiet)
				if a := dissect(t, got); a.line != want || (a.body == "") != (text == "304") {
					t.Errorf("%q, want %s", got, want)
				}
			})
		}
	}
}

// TestResetThroughTLS: a reset on TLS is one of the connection below.
func TestResetThroughTLS(t *testing.T) {
	for text, want := range map[string]error{"connection_reset": syscall.ECONNRESET, "empty_response": io.EOF} {
		f := parse(t, text)
		srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			io.Copy(io.Discard, req.Body)
			x := &faults.Exchange{W: w, R: req, Server: &serverSide{commit: func() {}, delivered: func() {}}}
			if err := faults.Apply(x, f); err != nil {
				t.Error(err)
			}
		}))
		_, err := srv.Client().Post(srv.URL, "text/plain", strings.NewReader("x"))
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", text, err, want)
		}
		srv.Close()
	}
}

// TestApplyRefuses: what Parse would not have made.
func TestApplyRefuses(t *testing.T) {
	for _, f := range []faults.Fault{{Name: "nonsense"}, {Name: "hang", Phase: "never"}, {Name: "malformed_json", Variant: "none"}} {
		w := httptest.NewRecorder()
		x := &faults.Exchange{W: w, R: httptest.NewRequest("GET", "/", nil), Server: &serverSide{commit: func() {}, delivered: func() { t.Error("delivered") }}}
		if faults.Apply(x, f) == nil {
			t.Errorf("%+v was applied", f)
		}
	}
	// A writer that cannot give the connection away cannot be reset.
	x := &faults.Exchange{W: httptest.NewRecorder(), R: httptest.NewRequest("GET", "/", nil), Server: &serverSide{commit: func() {}, delivered: func() { t.Error("delivered") }}}
	if err := faults.Apply(x, faults.Fault{Name: "connection_reset"}); !errors.Is(err, http.ErrNotSupported) {
		t.Errorf("%v", err)
	}
}
