package faults_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/world"
)

// A rig is a server that does one fault to its first request and answers the others well, with a log of what
// the fault told about itself.
type rig struct {
	t       *testing.T
	net     *world.Network
	addr    string
	start   time.Time
	closing chan struct{}
	exact   bool // virtual time: instants are exact

	mu      sync.Mutex
	moved   *sync.Cond // with mu: a handler has begun or ended
	active  int
	handled int // requests handled so far
	plan    []faults.Fault
	log     []event
	status  int // of the good reply
	result  error
	bytes   int64 // of the bodies of all requests
}

type event struct {
	what      string // commit, delivered, answered, applied
	at        time.Duration
	status    int
	lines     []string
	notBefore time.Time
	now       time.Time
}

// inBoth runs f on TCP, and on the in-memory network in virtual time.
func inBoth(t *testing.T, f func(t *testing.T, n *world.Network)) {
	t.Run("tcp", func(t *testing.T) { t.Parallel(); f(t, world.TCP()) })
	t.Run("memory", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { f(t, world.Memory()) })
	})
}

// newRig starts a server; its end is awaited by the returned function.
func newRig(t *testing.T, n *world.Network, plan ...faults.Fault) (*rig, func()) {
	t.Helper()
	l, err := n.Listen()
	if err != nil {
		t.Fatal(err)
	}
	return serveRig(t, n, l, plan...)
}

// serveRig is newRig on a listener of the test's own, which may speak TLS.
func serveRig(t *testing.T, n *world.Network, l net.Listener, plan ...faults.Fault) (*rig, func()) {
	r := &rig{t: t, net: n, addr: l.Addr().String(), start: time.Now(), closing: make(chan struct{}),
		plan: plan, status: http.StatusOK, exact: n.Kind() == world.Virtual}
	r.moved = sync.NewCond(&r.mu)
	srv := &http.Server{Handler: r}
	served := make(chan struct{})
	go func() { defer close(served); srv.Serve(l) }()
	return r, func() {
		r.close()
		r.idle()
		srv.Close()
		n.Close()
		<-served
	}
}

// idle waits until no handler is at work.
func (r *rig) idle() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for r.active > 0 {
		r.moved.Wait()
	}
}

func (r *rig) close() {
	select {
	case <-r.closing:
	default:
		close(r.closing)
	}
}

func (r *rig) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.serve(&faults.Exchange{W: w, R: req})
}

// serve does the next fault of the plan to x.
func (r *rig) serve(x *faults.Exchange) {
	r.count(1)
	defer r.count(-1)
	r.mu.Lock()
	var f faults.Fault
	first := len(r.plan) > 0
	if first {
		f, r.plan = r.plan[0], r.plan[1:]
	}
	status := r.status
	r.mu.Unlock()
	if !f.BeforeBody() {
		n, err := io.Copy(io.Discard, x.R.Body)
		if err != nil {
			r.t.Errorf("reading the request: %v", err)
		}
		r.mu.Lock()
		r.bytes += n
		r.mu.Unlock()
	}
	note := func(e event) {
		if !first {
			return
		}
		e.now = time.Now()
		e.at = e.now.Sub(r.start)
		r.mu.Lock()
		r.log = append(r.log, e)
		r.moved.Broadcast()
		r.mu.Unlock()
	}
	x.Closing = r.closing
	x.Reply = faults.Reply{Status: status, Body: []byte(strings.ReplaceAll(goodBody, "#", "0"))}
	var once sync.Once
	commit := func() {
		once.Do(func() {
			x.Reply.Body = []byte(strings.ReplaceAll(goodBody, "#", "1"))
			note(event{what: "commit"})
		})
	}
	side := &serverSide{commit: commit}
	x.Server = side
	if f.BeforeBody() {
		side.commit = nil
		side.forgo = func() { side.commit = commit }
		side.receive = func(body io.Reader) error {
			_, err := io.Copy(io.Discard, body)
			side.commit = commit
			return err
		}
	}
	side.quota = func() (bool, time.Duration) { return !first, 1500 * time.Millisecond }
	side.delivered = func() { note(event{what: "delivered"}) }
	side.answered = func(status int, lines []string, notBefore time.Time) {
		note(event{what: "answered", status: status, lines: lines, notBefore: notBefore})
	}
	err := faults.Apply(x, f)
	note(event{what: "applied"})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.result = errors.Join(r.result, err)
}

func (r *rig) count(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.active += n
	r.handled += max(0, n)
	r.moved.Broadcast()
}

// served returns how many requests were handled, once none is any more.
func (r *rig) served() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.handled
}

// goodBody is the good reply; # is the number of the effect, 0 before the commit.
const goodBody = `{"call":"c1","ok":true,"effect":#}`

// silent waits until a fault has told that it is delivered.
func (r *rig) silent() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for !slices.ContainsFunc(r.log, func(e event) bool { return e.what == "delivered" }) {
		r.moved.Wait()
	}
}

// events returns the log once every planned fault has been applied.
func (r *rig) events() []event {
	r.mu.Lock()
	defer r.mu.Unlock()
	for len(r.plan) > 0 || r.active > 0 {
		r.moved.Wait()
	}
	return slices.Clone(r.log)
}

// find returns the position of the only event of that kind, -1 where there is none.
func find(t *testing.T, log []event, what string) int {
	t.Helper()
	at := -1
	for i, e := range log {
		if e.what == what {
			if at >= 0 {
				t.Errorf("%s twice: %+v", what, log)
			}
			at = i
		}
	}
	return at
}

const rawRequest = "POST /charges/c1 HTTP/1.1\r\nHost: server\r\nContent-Length: 2\r\n\r\n{}"

// How a read ended.
const (
	byFIN   = "FIN"
	byRST   = "RST"
	silence = "silence"
)

// dial connects a raw client.
func (r *rig) dial() net.Conn {
	r.t.Helper()
	c, err := r.net.DialContext(context.Background(), "tcp", r.addr)
	if err != nil {
		r.t.Fatal(err)
	}
	return c
}

// How long a raw client waits: for what must come, before it calls it silence, and for what must not follow
// a whole answer. The first is never waited for where the fault is right.
const (
	patience = 10 * time.Second
	quiet    = 150 * time.Millisecond
	rest     = 20 * time.Millisecond
)

// exchange sends raw bytes and reads until the connection ends or nothing has come for so long. Behind a
// whole answer it does not wait longer than rest.
func (r *rig) exchange(c net.Conn, request string, wait time.Duration) (got []byte, end string) {
	r.t.Helper()
	if request != "" {
		if _, err := io.WriteString(c, request); err != nil {
			r.t.Fatal(err)
		}
	}
	buf := make([]byte, 4096)
	for {
		if isWhole(got) && wait > rest {
			wait = rest
		}
		c.SetReadDeadline(time.Now().Add(wait))
		n, err := c.Read(buf)
		got = append(got, buf[:n]...)
		switch {
		case err == nil:
		case err == io.EOF:
			return got, byFIN
		case errors.Is(err, syscall.ECONNRESET):
			return got, byRST
		case errors.Is(err, os.ErrDeadlineExceeded):
			return got, silence
		default:
			r.t.Fatalf("reading: %v", err)
		}
	}
}

// isWhole reports whether raw is an answer that keeps the connection, with all of its body.
func isWhole(raw []byte) bool {
	for bytes.HasPrefix(raw, []byte("HTTP/1.1 1")) {
		_, raw, _ = bytes.Cut(raw, []byte("\r\n\r\n"))
	}
	head, body, ok := bytes.Cut(raw, []byte("\r\n\r\n"))
	if !ok || bytes.Contains(head, []byte("Connection: close")) {
		return false
	}
	_, length, _ := bytes.Cut(head, []byte("Content-Length: "))
	length, _, _ = bytes.Cut(length, []byte("\r"))
	n, err := strconv.Atoi(string(length))
	return err == nil && len(body) >= n
}

// answer is what stands on the wire: its status line, its fields as sorted lines without Date, and the bytes
// after the head.
type answer struct {
	line   string
	fields []string
	body   string
}

// dissect takes an answer apart without net/http. It checks that there is exactly one good Date.
func dissect(t *testing.T, raw []byte) answer {
	t.Helper()
	if len(raw) == 0 {
		return answer{}
	}
	head, body, ok := bytes.Cut(raw, []byte("\r\n\r\n"))
	if !ok {
		t.Fatalf("no end of the head in %q", raw)
	}
	lines := strings.Split(string(head), "\r\n")
	a := answer{line: lines[0], body: string(body)}
	dates := 0
	for _, l := range lines[1:] {
		if d, ok := strings.CutPrefix(l, "Date: "); ok {
			if _, err := time.Parse(http.TimeFormat, d); err != nil {
				t.Errorf("Date: %v", err)
			}
			dates++
			continue
		}
		a.fields = append(a.fields, l)
	}
	slices.Sort(a.fields)
	if dates != 1 {
		t.Errorf("%d Date lines in %q", dates, head)
	}
	return a
}

// client is a real net/http client of the rig.
func (r *rig) client(timeout time.Duration) *http.Client {
	return &http.Client{Timeout: timeout, Transport: &http.Transport{DialContext: r.net.DialContext, ExpectContinueTimeout: 30 * time.Millisecond}}
}

func (r *rig) url() string { return "http://" + r.addr + "/charges/c1" }

// warm sends one request that the rig must have planned an ok for, so that the next one reuses its
// connection.
func (r *rig) warm(c *http.Client) {
	r.t.Helper()
	resp, err := c.Get(r.url())
	if err != nil {
		r.t.Fatal(err)
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

func parse(t *testing.T, text string) faults.Fault {
	t.Helper()
	f, err := faults.Parse(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return f
}

// key names a combination of the catalogue.
func key(f faults.Fault) string {
	words := strings.Fields(strings.Join([]string{string(f.End), f.Variant, f.Last, f.Code, f.At, f.Then, f.To}, " "))
	return strings.TrimSpace(fmt.Sprintf("%s@%s %s", f.Name, f.Phase, strings.Join(words, " ")))
}
