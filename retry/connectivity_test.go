package retry_test

import (
	"context"
	"errors"
	"net"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrychaos/retrychaos/retry"
)

var (
	errNoRoute = &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ENETUNREACH}
	errNoDNS   = &net.DNSError{Err: "server misbehaving", IsTemporary: true}
)

// outage returns an answer for each attempt that fails while the network is
// down, and the probe that knows.
type outage struct {
	answers
	ends   time.Time
	probes int
}

func (o *outage) probe(context.Context) error {
	o.probes++
	if time.Now().Before(o.ends) {
		return errNoRoute
	}
	o.outcomes = []any{200}
	return nil
}

func TestWaitsForTheNetwork(t *testing.T) {
	for _, err := range []error{errDial, errNoRoute, errNoDNS} {
		synctest.Test(t, func(t *testing.T) {
			o := &outage{ends: time.Now().Add(10 * time.Minute)}
			o.outcomes = []any{err}
			b := bucket(t, retry.DefaultBudget())
			var attempts []retry.Attempt
			c := newClient(t, retry.Policy{MaxAttempts: 1}, &o.answers, retry.WithBucket(b), retry.WithConnectivity(o.probe, time.Hour),
				retry.WithHook(func(_ context.Context, a retry.Attempt) { attempts = append(attempts, a) }))
			start := time.Now()
			// A POST: nothing was sent, so that it may go on.
			if e := call(t, c, t.Context(), "POST"); e != nil {
				t.Fatal(e)
			}
			if d := time.Since(start); o.calls != 2 || d < 10*time.Minute || d > 10*time.Minute+30*time.Second {
				t.Errorf("%d attempts, the last after %v", o.calls, d)
			}
			if o.probes < 10 || o.probes > 100 {
				t.Errorf("%d probes in 10 minutes", o.probes)
			}
			if len(attempts) != 2 || !attempts[0].Offline || !attempts[0].Retrying || b.Tokens() != 100 {
				t.Errorf("%v, %v tokens", attempts, b.Tokens())
			}
		})
	}
}

// A server that refuses connections while there is a network is a failure like
// another, and uses up the attempts.
func TestNetworkIsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &answers{outcomes: []any{errDial}}
		e := call(t, newClient(t, retry.Policy{}, a, retry.WithConnectivity(func(context.Context) error { return nil }, time.Hour)), t.Context(), "GET")
		if a.calls != 4 || e.Attempts[0].Offline {
			t.Errorf("%d attempts, %v", a.calls, e)
		}
		// So is one that no connection fails for.
		a = &answers{outcomes: []any{503, errReset}}
		probe := func(context.Context) error { t.Error("asked"); return errNoRoute }
		call(t, newClient(t, retry.Policy{}, a, retry.WithConnectivity(probe, time.Hour)), t.Context(), "GET")
		if a.calls != 4 {
			t.Errorf("%d attempts", a.calls)
		}
	})
}

func TestNetworkStaysDown(t *testing.T) {
	down := func(context.Context) error { return errNoRoute }
	synctest.Test(t, func(t *testing.T) {
		a := &answers{outcomes: []any{errNoDNS}}
		start := time.Now()
		e := call(t, newClient(t, retry.Policy{}, a, retry.WithConnectivity(down, 5*time.Minute)), t.Context(), "GET")
		if o := asType[*retry.OfflineError](t, e); time.Since(start) != 5*time.Minute || a.calls != 1 || o.Limit != 5*time.Minute {
			t.Errorf("%v after %v", e, time.Since(start))
		}
		if !errors.Is(e, errNoDNS) || !errors.Is(e, syscall.ENETUNREACH) {
			t.Errorf("the causes are lost: %v", e)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		a := &answers{outcomes: []any{errNoDNS}}
		start := time.Now()
		e := call(t, newClient(t, retry.Policy{}, a, retry.WithConnectivity(down, time.Hour)), ctx, "GET")
		if time.Since(start) != time.Minute || a.calls != 1 || !errors.Is(e, context.DeadlineExceeded) || !errors.Is(e, errNoDNS) {
			t.Errorf("%v after %v", e, time.Since(start))
		}
	})
	// A network that comes and goes does not prolong the limit.
	synctest.Test(t, func(t *testing.T) {
		a := &answers{outcomes: []any{errNoDNS}}
		n := 0
		flaps := func(context.Context) error {
			if n++; n%2 == 1 {
				return errNoRoute
			}
			return nil
		}
		start := time.Now()
		e := call(t, newClient(t, retry.Policy{MaxAttempts: 1}, a, retry.WithConnectivity(flaps, time.Minute)), t.Context(), "GET")
		if d := time.Since(start); d > 2*time.Minute || a.calls < 10 {
			t.Errorf("%d attempts in %v: %v", a.calls, d, e)
		}
	})
}

func TestConnectivityThatMakesNoSense(t *testing.T) {
	for _, o := range []retry.Option{
		retry.WithConnectivity(nil, time.Hour),
		retry.WithConnectivity(func(context.Context) error { return nil }, 0),
	} {
		if _, err := retry.NewClient(retry.Policy{}, o); err == nil {
			t.Error("accepted")
		}
	}
}
