package gockworld_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/scenarios"
)

const origin = "https://api.example.com/v1"

// payments is a client library as vendors ship them: the host is built in, and only the http.Client is the
// user's.
type payments struct {
	http *http.Client
	// What the vendor got right.
	sendsKey, obeysRetryAfter, givesUpOnNonsense bool
}

// charge tries three times, with a second between.
func (p *payments) charge(ctx context.Context, id, key string, body []byte) error {
	var last error
	for range 3 {
		wait, err := p.once(ctx, id, key, body)
		if err == nil {
			return nil
		}
		last = err
		var syntax *json.SyntaxError
		if p.givesUpOnNonsense && errors.As(err, &syntax) {
			return err
		}
		if !p.obeysRetryAfter || wait < time.Second {
			wait = time.Second
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return last
}

func (p *payments) once(ctx context.Context, id, key string, body []byte) (time.Duration, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://api.example.com/v1/charges/"+id, bytes.NewReader(body))
	if err != nil {
		return 0, err
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("Content-Type", "application/json")
	if p.sendsKey && key != "" {
		req.Header.Set("Idempotency-Key", key)
	}
	resp, err := p.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err
	}
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // absent or a date: no wait of its own
	if resp.StatusCode != http.StatusOK {
		return time.Duration(seconds) * time.Second, &refusal{resp.StatusCode}
	}
	var r struct{ OK bool }
	if err := json.Unmarshal(b, &r); err != nil {
		return 0, err
	}
	return 0, nil
}

type refusal struct{ status int }

func (r *refusal) Error() string   { return fmt.Sprintf("payments: status %d", r.status) }
func (r *refusal) HTTPStatus() int { return r.status }

// vendored adapts the library.
func vendored(p payments) harness.Client {
	return harness.Client{Name: "payments", New: func(env harness.Env) (harness.Caller, error) {
		p.http = &http.Client{Transport: env.Transport}
		return harness.CallerFunc(func(ctx context.Context, call harness.Call) harness.Outcome {
			if err := p.charge(ctx, call.ID, call.Key, call.Body); err != nil {
				o := harness.Outcome{Err: err}
				if r := (*refusal)(nil); errors.As(err, &r) {
					o.Status = r.status
				}
				return o
			}
			return harness.Outcome{OK: true, Status: http.StatusOK}
		}), nil
	}}
}

// calls adapts a function as the client; it is built on base.
func calls(f func(ctx context.Context, base http.RoundTripper, call harness.Call) harness.Outcome) harness.Client {
	return harness.Client{Name: "function", New: func(env harness.Env) (harness.Caller, error) {
		return harness.CallerFunc(func(ctx context.Context, call harness.Call) harness.Outcome { return f(ctx, env.Transport, call) }), nil
	}}
}

// scenario makes a valid scenario of one group of calls.
func scenario(t *testing.T, g scenarios.Group, sequence ...string) scenarios.Scenario {
	t.Helper()
	s := scenarios.Scenario{Name: "test/one", Summary: "a test", Rule: "effects.once", Source: "here", Calls: []scenarios.Group{g}}
	for _, text := range sequence {
		s.Faults = append(s.Faults, parse(t, text))
	}
	s, err := scenarios.Validate(s)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func parse(t *testing.T, text string) faults.Fault {
	t.Helper()
	f, err := faults.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}
