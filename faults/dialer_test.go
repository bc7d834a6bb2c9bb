package faults_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/world"
)

const serverName = "server.test"

// hello is a TLS record of the handshake type with an empty ClientHello in it: enough for whoever answers
// without looking.
const hello = "\x16\x03\x01\x00\x04\x01\x00\x00\x00"

// told collects what a fault told of its connection.
type told struct {
	mu     sync.Mutex
	facts  []string
	failed error
}

func (l *told) connecting() faults.Connecting {
	note := func(what string) func() {
		return func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			if !slices.Contains(l.facts, what) {
				l.facts = append(l.facts, what)
			}
		}
	}
	return faults.Connecting{Delivered: note("delivered"), Over: note("over"), Sent: note("sent"),
		Failed: func(err error) {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.failed = errors.Join(l.failed, err)
		}}
}

func (l *told) has(what string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Contains(l.facts, what)
}

// pit is a Dialer on a network, with what its faults tell.
type pit struct {
	*faults.Dialer
	ca *faults.Authority
	told
}

func newPit(t *testing.T, n *world.Network, secure bool) *pit {
	t.Helper()
	p := &pit{}
	var err error
	if secure {
		if p.ca, err = faults.NewAuthority(serverName); err != nil {
			t.Fatal(err)
		}
	}
	if p.Dialer, err = faults.NewDialer(n, p.ca); err != nil {
		t.Fatal(err)
	}
	return p
}

// dial is a DialContext that meets the fault each time.
func (p *pit) dial(f faults.Fault) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(addr)
		return p.Dial(ctx, network, host, f, p.connecting())
	}
}

func (p *pit) config() *tls.Config {
	return &tls.Config{RootCAs: p.ca.Pool(), ServerName: serverName}
}

// TestDial shows each effect of LevelConnection to a raw client, over TCP and in memory.
func TestDial(t *testing.T) {
	for _, p := range dialProofs() {
		t.Run(fmt.Sprintf("%s tls=%v", p.text, p.tls), func(t *testing.T) {
			inBoth(t, func(t *testing.T, n *world.Network) { p.prove(t, n) })
		})
	}
}

func (p dialProof) prove(t *testing.T, n *world.Network) {
	defer n.Close()
	pit := newPit(t, n, p.tls)
	defer pit.Close()
	c, err := pit.dial(parse(t, p.text))(context.Background(), "tcp", serverName+":443")
	switch {
	case p.err != nil && (err == nil || !p.err(err)):
		t.Errorf("the dial gives %v", err)
	case p.err == nil && err != nil:
		t.Fatalf("the dial fails: %v", err)
	case p.shake != nil:
		if err := tls.Client(c, pit.config()).Handshake(); err == nil || !p.shake(err) {
			t.Errorf("the handshake gives %v", err)
		}
	case p.err == nil:
		if p.send != "" {
			if _, err := io.WriteString(c, p.send); err != nil {
				t.Fatal(err)
			}
		}
		wait := patience
		if p.end == silence {
			wait = quiet
		}
		if got, end := (&rig{t: t}).exchange(c, "", wait); string(got) != p.bytes || end != p.end {
			t.Errorf("%q, then %s; want %q, then %s", got, end, p.bytes, p.end)
		}
	}
	if c != nil {
		c.Close()
	}
	pit.Close()
	if open := n.Open(); open != 0 {
		t.Errorf("%d connections are open", open)
	}
	if pit.failed != nil || !pit.has("delivered") || !pit.has("over") {
		t.Errorf("told: %q, failed: %v", pit.facts, pit.failed)
	}
	if want := p.send == rawRequest; pit.has("sent") != want {
		t.Errorf("sent: %v, want %v", !want, want)
	}
}

// TestDialGoClient shows each effect to a client of net/http, with an exact error where it has one.
func TestDialGoClient(t *testing.T) {
	for _, p := range dialProofs() {
		t.Run(fmt.Sprintf("%s tls=%v", p.text, p.tls), func(t *testing.T) {
			inBoth(t, func(t *testing.T, n *world.Network) {
				defer n.Close()
				pit := newPit(t, n, p.tls)
				defer pit.Close()
				tr := &http.Transport{DialContext: pit.dial(parse(t, p.text))}
				c := &http.Client{Transport: tr, Timeout: time.Minute}
				if p.end == silence {
					c.Timeout = 2 * time.Second // what is met must have begun by then
				}
				defer c.CloseIdleConnections()
				url := "http://" + serverName + "/charges/c1"
				if p.tls {
					tr.TLSClientConfig, url = pit.config(), "https://"+serverName+"/charges/c1"
				}
				resp, err := c.Post(url, "application/json", strings.NewReader("{}"))
				if err == nil {
					resp.Body.Close()
				}
				if err == nil || !p.see(err) {
					t.Errorf("Do gives %v", err)
				}
				c.CloseIdleConnections()
				pit.Close()
				if pit.failed != nil || !pit.has("delivered") {
					t.Errorf("told: %q, failed: %v", pit.facts, pit.failed)
				}
				if p.tls && pit.has("sent") {
					t.Error("it says that a request was sent, and there was no handshake")
				}
			})
		})
	}
}

// TestUnverified: a client that does not look at the certificate sends its request to a stranger, and the
// fault says so.
func TestUnverified(t *testing.T) {
	inBoth(t, func(t *testing.T, n *world.Network) {
		defer n.Close()
		pit := newPit(t, n, true)
		defer pit.Close()
		tr := &http.Transport{DialContext: pit.dial(parse(t, "tls_bad_certificate")), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		defer tr.CloseIdleConnections()
		if resp, err := (&http.Client{Transport: tr}).Get("https://" + serverName + "/"); err == nil {
			resp.Body.Close()
			t.Error("the stranger answered")
		}
		pit.Close()
		if !pit.has("delivered") || !pit.has("sent") {
			t.Errorf("told: %q", pit.facts)
		}
	})
}

// TestDialerRefuses: faults of another level, of TLS where there is none, and clients that have gone.
func TestDialerRefuses(t *testing.T) {
	inBoth(t, func(t *testing.T, n *world.Network) {
		defer n.Close()
		for _, text := range []string{"503", "ok", "tls_handshake_hang", "hang"} {
			pit := newPit(t, n, false)
			c, err := pit.dial(parse(t, text))(context.Background(), "tcp", serverName+":80")
			if c != nil || err == nil || pit.failed == nil || pit.has("delivered") {
				t.Errorf("%s: %v, told %q", text, err, pit.facts)
			}
			pit.Close()
		}
		pit := newPit(t, n, true)
		gone, cancel := context.WithCancel(context.Background())
		cancel()
		for _, text := range []string{"accept_hang", "connect_refused", "tls_bad_certificate"} {
			if _, err := pit.dial(parse(t, text))(gone, "tcp", serverName+":443"); err == nil || pit.failed != nil {
				t.Errorf("%s for a client that has gone: %v, failed: %v", text, err, pit.failed)
			}
		}
		// A client that goes before its ClientHello meets nothing.
		c, err := pit.dial(parse(t, "tls_handshake_failure"))(context.Background(), "tcp", serverName+":443")
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
		pit.Close()
		if pit.has("delivered") || pit.failed != nil {
			t.Errorf("told: %q, failed: %v", pit.facts, pit.failed)
		}
		if _, err := pit.dial(parse(t, "accept_hang"))(context.Background(), "tcp", serverName+":443"); err == nil {
			t.Error("a closed Dialer dials")
		}
	})
}

// TestDialerClose ends what hangs.
func TestDialerClose(t *testing.T) {
	for _, text := range []string{"accept_hang", "tls_handshake_hang"} {
		inBoth(t, func(t *testing.T, n *world.Network) {
			defer n.Close()
			pit := newPit(t, n, true)
			c, err := pit.dial(parse(t, text))(context.Background(), "tcp", serverName+":443")
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			io.WriteString(c, hello)
			pit.Close()
			if got, end := (&rig{t: t}).exchange(c, "", patience); len(got) > 0 || end != byRST {
				t.Errorf("%s: %q, then %s", text, got, end)
			}
		})
	}
}

// TestAuthority: the server's certificate is good for its name and address in whatever year the clock of the
// world is, and for nothing else.
func TestAuthority(t *testing.T) {
	inBoth(t, func(t *testing.T, n *world.Network) {
		defer n.Close()
		ca, err := faults.NewAuthority(serverName)
		if err != nil {
			t.Fatal(err)
		}
		l, err := n.Listen()
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			for {
				c, err := l.Accept()
				if err != nil {
					return
				}
				tls.Server(c, ca.Server()).Handshake()
				c.Close()
			}
		}()
		fromFile := x509.NewCertPool()
		if !fromFile.AppendCertsFromPEM(ca.PEM()) {
			t.Error("the PEM holds no certificate")
		}
		for _, tc := range []struct {
			cfg *tls.Config
			ok  bool
		}{
			{&tls.Config{RootCAs: ca.Pool(), ServerName: serverName}, true},
			{&tls.Config{RootCAs: fromFile, ServerName: "127.0.0.1"}, true},
			{&tls.Config{RootCAs: ca.Pool(), ServerName: "another.test"}, false},
			{&tls.Config{RootCAs: x509.NewCertPool(), ServerName: serverName}, false},
		} {
			c, err := n.DialContext(context.Background(), "tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			if err := tls.Client(c, tc.cfg).Handshake(); (err == nil) != tc.ok {
				t.Errorf("%s: %v", tc.cfg.ServerName, err)
			}
			c.Close()
		}
		l.Close()
	})
}

// TestWireThroughTLS shows to a raw TLS client that what strikes at a request does so through TLS as well: an end in
// order is close_notify, a reset is one of the connection below, and silence is silence. The bytes of the answer
// are the same.
func TestWireThroughTLS(t *testing.T) {
	for _, p := range proofs() {
		for _, phase := range p.phases {
			f := p.fault(t, phase)
			switch {
			case !slices.Contains([]string{"hang", "empty_response", "connection_reset", "truncated_body", "stall_body", "latency"}, f.Name):
				continue
			case phase == late:
				continue
			}
			t.Run(key(f), func(t *testing.T) {
				inBoth(t, func(t *testing.T, n *world.Network) {
					ca, err := faults.NewAuthority(serverName)
					if err != nil {
						t.Fatal(err)
					}
					l, err := n.Listen()
					if err != nil {
						t.Fatal(err)
					}
					r, stop := serveRig(t, n, tls.NewListener(l, ca.Server()), f)
					defer stop()
					c := tls.Client(r.dial(), &tls.Config{RootCAs: ca.Pool(), ServerName: serverName})
					defer c.Close()
					wait := patience
					if p.end == silence {
						wait = quiet
					}
					got, end := r.exchange(c, rawRequest, wait)
					effect := "0"
					if phase == after || f.Name == "latency" {
						effect = "1"
					}
					a, want := dissect(t, got), strings.ReplaceAll(p.body, "#", effect)
					wantEnd := p.end
					if wantEnd == keep {
						wantEnd = silence
					}
					if a.line != p.line || a.body != want || end != wantEnd {
						t.Errorf("%q %q, then %s; want %q %q, then %s", a.line, a.body, end, p.line, want, wantEnd)
					}
					c.Close()
					if find(t, r.events(), "delivered") < 0 || r.result != nil {
						t.Errorf("not delivered: %v", r.result)
					}
				})
			})
		}
	}
}
