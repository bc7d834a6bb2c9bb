package harness

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/server"
	"github.com/retrychaos/retrychaos/harness/world"
)

// serverName is the server's host name where the scenario is about making connections: names that end in
// .test exist nowhere else (RFC 6761 §6.2).
const serverName = "server.test"

// dialer is the client's way to the server, and the place where faults of a connection strike.
//
// They are claimed for the call whose RoundTrip causes the dial: net/http hands the values of a request's
// context to DialContext, though not its end. A client with a transport of its own makes no RoundTrip that the
// harness sees; its dials are claimed for the call whose context they carry. A dial of no call meets nothing,
// which is a fault of the harness where it was meant to, but for the warming of a connection.
type dialer struct {
	net    *world.Network
	srv    *server.Server
	rec    *recorder
	orphan func()            // called for a dial that belongs to no call, where faults of a connection are planned
	addr   string            // the server's address, host and port
	broken *faults.Dialer    // nil where the scenario has no fault of a connection
	tls    *tls.Config       // for clients; nil where the server speaks no TLS
	ca     *faults.Authority // behind tls; also for a command that is told of one in any case
}

// newDialer opens what the scenario needs for its connections. l is the server's listener; the returned one
// is the one to serve on.
func (d *drive) newDialer(n *world.Network, srv *server.Server, rec *recorder, l net.Listener) (*dialer, net.Listener, error) {
	out := &dialer{net: n, srv: srv, rec: rec, addr: l.Addr().String()}
	out.orphan = sync.OnceFunc(func() {
		d.finding(history.FindingHarness, "the client connects without the context of a call: faults of connections cannot be claimed")
	})
	if d.scenario.Server.TLS || d.client.trusts {
		ca, err := faults.NewAuthority(serverName)
		if err != nil {
			return nil, l, err
		}
		out.ca = ca
	}
	if d.scenario.Server.TLS {
		out.tls = &tls.Config{RootCAs: out.ca.Pool()}
		l = tls.NewListener(l, out.ca.Server())
	}
	if d.scenario.Meets(faults.LevelConnection) {
		broken, err := faults.NewDialer(n, out.ca)
		if err != nil {
			return nil, l, err
		}
		out.broken = broken
	}
	return out, l, nil
}

// baseURL is how clients name the server. A process resolves names by itself, and gets the address.
func (d *dialer) baseURL(process bool) string {
	scheme := "http"
	if d.tls != nil {
		scheme = "https"
	}
	host, port, _ := net.SplitHostPort(d.addr)
	if !process && (d.tls != nil || d.broken != nil) {
		host = serverName
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// close ends the connections that the faults have left hanging.
func (d *dialer) close() error {
	if d.broken == nil {
		return nil
	}
	return d.broken.Close()
}

// DialContext connects to addr; see world.Network.DialContext.
func (d *dialer) DialContext(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return d.net.DialContext(ctx, network, addr)
	}
	if host == serverName {
		_, ours, _ := net.SplitHostPort(d.addr)
		if port != ours {
			return nil, &net.OpError{Op: "dial", Net: network, Err: &net.AddrError{Err: "the server is not at this port", Addr: addr}}
		}
		addr = d.addr
	}
	if addr == d.addr && d.broken != nil {
		if t := d.trailOf(ctx); t != nil {
			if c, err, struck := t.dial(ctx, d, network, host); struck {
				return c, err
			}
		}
	}
	return d.net.DialContext(ctx, network, addr)
}

// A trail is what a RoundTrip leaves in its context for the dials that it causes.
type trail struct {
	rec  *recorder
	trip *history.Trip
	want server.Dial
	tls  bool // of the server

	// Of the last dial that met a fault, under rec.mu.
	claim *server.Claim
	peer  string   // the client's address, once there is a connection
	conn  net.Conn // the connection
	met   bool     // the RoundTrip was given it
	unmet bool     // the RoundTrip was given another
	done  bool     // the RoundTrip is over
}

// Keys of contexts: trailKey's value is the *trail of a RoundTrip, callKey's the server.Dial that a call makes as far
// as is known without one, and warmKey's says that a connection is being warmed.
type (
	trailKey struct{}
	callKey  struct{}
	warmKey  struct{}
)

// trailOf returns the trail that a dial belongs to, or nil.
func (d *dialer) trailOf(ctx context.Context) *trail {
	if t, ok := ctx.Value(trailKey{}).(*trail); ok {
		return t
	}
	if want, ok := ctx.Value(callKey{}).(server.Dial); ok {
		return &trail{rec: d.rec, trip: &history.Trip{}, want: want, tls: d.tls != nil}
	}
	if ctx.Value(warmKey{}) == nil {
		d.orphan()
	}
	return nil
}

// dial lets the fault strike that is planned for the call's next attempt; struck is false if there is none.
func (t *trail) dial(ctx context.Context, d *dialer, network, host string) (_ net.Conn, _ error, struck bool) {
	want := t.want
	t.rec.mu.Lock()
	want.Again = len(t.trip.Peers) > 0
	t.rec.mu.Unlock()
	claim, capped := d.srv.ClaimDial(want)
	if capped {
		// Whoever loops without end is stopped here, in whatever clock it runs.
		select {
		case <-d.srv.Closing():
		case <-ctx.Done():
		}
		return nil, errCapped, true
	}
	if claim == nil {
		return nil, nil, false
	}
	t.rec.mu.Lock()
	t.claim, t.peer, t.conn, t.met, t.unmet = claim, "", nil, false, false
	t.rec.mu.Unlock()
	c, err := d.broken.Dial(ctx, network, host, claim.Fault, claim.Tell())
	if err != nil {
		return nil, err, true
	}
	peer := c.LocalAddr().String()
	claim.Connected(peer)
	t.rec.mu.Lock()
	defer t.rec.mu.Unlock()
	if t.claim == claim {
		t.peer, t.conn = peer, c
		t.discard()
	}
	return c, nil, true
}

var errCapped = errors.New("the call has reached the harness's cap on attempts")

// got compares the connection that the RoundTrip has been given with the one that was broken for it: another
// one may have become free in the meantime. Callers hold rec.mu.
func (t *trail) got(peer string) {
	switch {
	case t.claim == nil || t.met || t.unmet:
	case t.peer == peer:
		t.met = true
	default:
		t.unmet = true
		t.claim.Unmet()
		t.discard()
	}
}

// ended notes that the RoundTrip is over. net/http may go on with its dial for a time. Callers hold rec.mu.
func (t *trail) ended() {
	t.done = true
	if t.claim != nil {
		t.claim.Over()
		t.discard()
	}
}

// discard closes a broken connection that its RoundTrip does not wait for any more. net/http would keep it for
// another call, which has nothing to do with it. A connection in its TLS handshake is left alone, unless it is
// unmet: no other call can get it, and how long net/http holds on to it is a fact of the client's side. Callers
// hold rec.mu.
func (t *trail) discard() {
	if t.conn != nil && (t.unmet || t.done && !t.met && !t.tls) {
		_ = t.conn.Close()
	}
}

// keyOf returns the idempotency key of a request, whatever the spelling of the field's name.
func keyOf(h http.Header) string {
	var lines []string
	for name, values := range h {
		if strings.EqualFold(name, "Idempotency-Key") {
			lines = append(lines, values...)
		}
	}
	return strings.Join(lines, ", ")
}
