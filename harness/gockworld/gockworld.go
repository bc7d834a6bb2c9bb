package gockworld

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

// A World is a place to run clients that have one origin built in.
type World struct {
	// Origin is what the client has built in: a scheme and a host, with a port where it is not the scheme's,
	// and with a base path where the client puts one before the scenario's path: https://api.example.com/v1
	// makes /v1/charges/c1 of /charges/c1. A request to anywhere else is a finding of the test.
	Origin string
	// Runner says how scenarios are run. By default that is in virtual time.
	Runner harness.Runner
}

// One runs one scenario and judges it, as harness.Runner.One does: it never fails t, which is needed in virtual
// time only.
//
// The error says why there is no result: a *NeedsWireError, a wrong origin, a client that is a process,
// ErrBusy or ErrForeign. When One returns, gock and http.DefaultTransport are as they are when nobody uses gock.
func (w World) One(t *testing.T, client harness.Client, s scenarios.Scenario) (*harness.Result, error) {
	o, err := parseOrigin(w.Origin)
	if err != nil {
		return nil, err
	}
	if client.New == nil {
		return nil, fmt.Errorf("gockworld: client %q has no New", client.Name)
	}
	if client.Outside() {
		return nil, fmt.Errorf("gockworld: %s is a process of its own, where gock catches nothing", client.Name)
	}
	if err := Fit(s); err != nil {
		return nil, err
	}
	undo, err := intercept(o)
	if err != nil {
		return nil, err
	}
	defer undo()
	return w.Runner.One(t, caught(client, o), s), nil
}

// Run runs each scenario as a subtest of t and fails those with findings. Scenarios that need a wire are
// skipped, with the reason. t and its subtests must not be parallel.
func (w World) Run(t *testing.T, client harness.Client, list ...scenarios.Scenario) []*harness.Result {
	t.Helper()
	if w.Runner.Seed == 0 {
		w.Runner.Seed = harness.Seed()
	}
	results := make([]*harness.Result, 0, len(list))
	for _, s := range list {
		t.Run(s.Name, func(t *testing.T) {
			res, err := w.One(t, client, s)
			if wire := (*NeedsWireError)(nil); errors.As(err, &wire) {
				t.Skip(err)
			}
			if err != nil {
				t.Fatal(err)
			}
			results = append(results, res)
			w.Runner.Report(t, res)
		})
	}
	return results
}

// caught is the client as it is in this world: what it sends to o comes to the server.
func caught(client harness.Client, o origin) harness.Client {
	inner := client.New
	client.New = func(env harness.Env) (harness.Caller, error) {
		to, err := url.Parse(env.BaseURL)
		if err != nil {
			return nil, err
		}
		base := env.BaseURL
		env.BaseURL = o.String()
		env.Transport = newTransport(o, to, env.Transport, env.Finding)
		finding := env.Finding
		env.DialContext = func(_ context.Context, network, addr string) (net.Conn, error) {
			err := &net.OpError{Op: "dial", Net: network, Err: fmt.Errorf("gockworld: there is no wire to %s: build the client on Env.Transport", addr)}
			finding(history.FindingHarness, err.Err.Error())
			return nil, err
		}
		c, err := inner(env)
		if err != nil {
			return nil, err
		}
		return &caller{Caller: c, origin: o, base: base}, nil
	}
	return client
}

// caller gives its calls the URLs that the client's application would use.
type caller struct {
	harness.Caller
	origin origin
	base   string // the server's
}

func (c *caller) Call(ctx context.Context, call harness.Call) harness.Outcome {
	call.URL = c.origin.String() + strings.TrimPrefix(call.URL, c.base)
	return c.Caller.Call(ctx, call)
}

func (c *caller) Close() error {
	if closer, ok := c.Caller.(io.Closer); ok {
		return closer.Close()
	}
	return nil
}
