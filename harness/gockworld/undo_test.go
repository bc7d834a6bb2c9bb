package gockworld_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/h2non/gock"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/gockworld"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/scenarios"
)

// fetch is a request of somebody else's, over http.DefaultTransport.
func fetch(url string) (string, error) {
	resp, err := http.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// realServer answers "real", on a socket.
func realServer(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "real") }))
	t.Cleanup(s.Close)
	return s.URL
}

// undone fails t unless gock is as it is when nobody uses it.
func undone(t *testing.T, standard http.RoundTripper, real string) {
	t.Helper()
	if http.DefaultTransport != standard || gock.Intercepting() {
		t.Errorf("http.DefaultTransport is %T", http.DefaultTransport)
	}
	if gock.DefaultTransport.Transport != gock.NativeTransport {
		t.Errorf("gock's own transport leads to %T", gock.DefaultTransport.Transport)
	}
	if n := len(gock.GetAll()); n > 0 || gock.HasUnmatchedRequest() {
		t.Errorf("%d mocks are left, and unmatched requests: %v", n, gock.GetUnmatchedRequests())
	}
	if got, err := fetch(real); got != "real" || err != nil {
		t.Errorf("a real request: %q, %v", got, err)
	}
	// Networking is off again, so an intercepted client that meets no mock gets nowhere.
	defer gock.OffAll()
	gock.New("http://mocked.example").Get("^/$").Reply(204)
	hc := &http.Client{}
	gock.InterceptClient(hc)
	if resp, err := hc.Get(real); !errors.Is(err, gock.ErrCannotMatch) {
		t.Errorf("an unmocked request of an intercepted client: %v, %v", resp, err)
	}
	if resp, err := hc.Get("http://mocked.example/"); err != nil || resp.StatusCode != 204 {
		t.Errorf("a mocked request: %v, %v", resp, err)
	}
}

// TestUndone, however the run ends.
func TestUndone(t *testing.T) {
	standard, real := http.DefaultTransport, realServer(t)
	if standard != gock.NativeTransport {
		t.Fatal("somebody has changed http.DefaultTransport before")
	}
	fine := scenario(t, scenarios.Group{})
	ends := func(end func()) harness.Client {
		return calls(func(context.Context, http.RoundTripper, harness.Call) harness.Outcome {
			end()
			return harness.Outcome{}
		})
	}
	stop := make(chan struct{})
	defer close(stop)
	for _, c := range []struct {
		name   string
		client harness.Client
		status check.Status
		cap    time.Duration // 0: the usual
	}{
		{"well", vendored(payments{}), check.Pass, 0},
		{"panic", ends(func() { panic("oh") }), check.Fail, 0},
		{"cannot be made", harness.Client{Name: "none", New: func(harness.Env) (harness.Caller, error) { return nil, errors.New("no licence") }}, check.Unknown, 0},
		{"stuck", ends(func() { <-stop }), check.Fail, 200 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := gockworld.World{Origin: origin, Runner: harness.Runner{RealCap: c.cap}}
			res, err := w.One(t, c.client, fine)
			if err != nil || res.Status != c.status {
				t.Errorf("%v, %+v", err, res)
			}
			undone(t, standard, real)
		})
	}
	t.Run("the test is given up", func(t *testing.T) {
		over := make(chan struct{})
		go func() {
			defer close(over)
			w := gockworld.World{Origin: origin, Runner: harness.Runner{World: world.Loopback, Checks: []check.Check{{
				ID: "mine.exits", Level: check.Must, Judge: func(*history.History) check.Verdict { runtime.Goexit(); return check.Verdict{} },
			}}}}
			_, _ = w.One(nil, vendored(payments{}), fine) // it never returns
			t.Error("the check did not end the goroutine")
		}()
		<-over
		undone(t, standard, real)
	})
}

// TestObserverIsTakenDown: what another test has left behind sees no request of this one, and none after it.
func TestObserverIsTakenDown(t *testing.T) {
	gock.Observe(func(r *http.Request, _ gock.Mock) { t.Errorf("the observer sees %s", r.URL) })
	one(t, vendored(payments{}), scenario(t, scenarios.Group{}))
	undone(t, gock.NativeTransport, realServer(t))
}

type counting struct {
	http.RoundTripper
	n int
}

func (c *counting) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n++
	return c.RoundTripper.RoundTrip(r)
}

// TestOthersAreLeftAlone: requests over http.DefaultTransport go their way while a run goes on, whatever
// stands there, and it stands there afterwards.
func TestOthersAreLeftAlone(t *testing.T) {
	real := realServer(t)
	mine := &counting{RoundTripper: http.DefaultTransport}
	http.DefaultTransport = mine
	defer func() { http.DefaultTransport = gock.NativeTransport }()
	w := gockworld.World{Origin: origin, Runner: harness.Runner{World: world.Loopback}}
	client := calls(func(ctx context.Context, base http.RoundTripper, call harness.Call) harness.Outcome {
		if got, err := fetch(real); got != "real" || err != nil {
			t.Errorf("a request of somebody else's: %q, %v", got, err)
		}
		if !gock.Intercepting() {
			t.Error("gock does not intercept, so this shows nothing")
		}
		return harness.Receive(call, nil, errors.New("given up"))
	})
	res, err := w.One(nil, client, scenario(t, scenarios.Group{}))
	if err != nil || len(res.Findings) != 0 {
		t.Errorf("%v, %v", err, res.Findings)
	}
	if http.DefaultTransport != http.RoundTripper(mine) || mine.n != 1 {
		t.Errorf("http.DefaultTransport is %T, and was used %d times", http.DefaultTransport, mine.n)
	}
}

// TestElsewhere: a request that the test does not know is its bug. It is no network error, which a client may
// retry, and the run is undecided.
func TestElsewhere(t *testing.T) {
	for _, url := range []string{
		"https://auth.example.com/v1/charges/c1", "https://api.example.com.evil.test/v1/charges/c1",
		"https://apiXexample.com/v1/charges/c1", "http://api.example.com/v1/charges/c1", "http://api.example.com:443/v1/charges/c1",
		"https://api.example.com:8443/v1/charges/c1", "https://api.example.com/charges/c1", "https://api.example.com/v10/charges/c1",
	} {
		client := calls(func(ctx context.Context, base http.RoundTripper, call harness.Call) harness.Outcome {
			hc := &http.Client{Transport: base}
			for range 2 {
				resp, err := hc.Post(url+"?token=secret", "application/json", strings.NewReader("{}"))
				if err != nil {
					t.Errorf("%s: %v", url, err)
					return harness.Outcome{Err: err}
				}
				resp.Body.Close()
				if resp.StatusCode != http.StatusNotFound || resp.Header.Get("X-Retrychaos-Unmatched") == "" {
					t.Errorf("%s: %s, %v", url, resp.Status, resp.Header)
				}
			}
			return harness.Outcome{Status: http.StatusNotFound}
		})
		res := one(t, client, scenario(t, scenarios.Group{}))
		f := res.Findings
		if res.Status != check.Unknown || len(f) != 1 || f[0].Kind != history.FindingUnmatched ||
			f[0].Text != "POST "+url+" is not below "+origin+", the origin of this world" {
			t.Errorf("%s: %s, %v", url, res.Status, f)
		}
	}
}

// TestElsewhereWithoutEnd: whoever loops on a wrong address does not loop for ever.
func TestElsewhereWithoutEnd(t *testing.T) {
	n := 0
	client := calls(func(ctx context.Context, base http.RoundTripper, call harness.Call) harness.Outcome {
		for {
			n++
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://elsewhere.example/", nil)
			if err != nil {
				return harness.Outcome{Err: err}
			}
			if _, err := base.RoundTrip(req); err != nil {
				return harness.Outcome{Err: err}
			}
		}
	})
	res := one(t, client, scenario(t, scenarios.Group{Deadline: time.Second}))
	if n != 65 || res.Simulated != time.Second+res.History.Calls[0].Started || res.Status != check.Unknown {
		t.Errorf("%d requests in %v: %s", n, res.Simulated, res.Status)
	}
}

// TestSwitchedOff: somebody ends gock under a run.
func TestSwitchedOff(t *testing.T) {
	client := calls(func(ctx context.Context, base http.RoundTripper, call harness.Call) harness.Outcome {
		gock.OffAll()
		req, err := call.Request(ctx)
		if err != nil {
			return harness.Outcome{Err: err}
		}
		resp, err := base.RoundTrip(req)
		if _, err := (&http.Client{Transport: base}).Get("https://elsewhere.example/"); err != nil {
			t.Errorf("elsewhere: %v", err)
		}
		return harness.Receive(call, resp, err)
	})
	res := one(t, client, scenario(t, scenarios.Group{}))
	if res.Status != check.Unknown || len(res.Findings) != 2 || !strings.Contains(res.Findings[0].Text, "gock was switched off") ||
		!res.History.Calls[0].Outcome.OK {
		t.Errorf("%s, %v, %+v", res.Status, res.Findings, res.History.Calls[0].Outcome)
	}
}

// TestDial: a client that makes its own transport meets no wire, and that is not held against it.
func TestDial(t *testing.T) {
	client := harness.Client{Name: "dials", New: func(env harness.Env) (harness.Caller, error) {
		hc := &http.Client{Transport: &http.Transport{DialContext: env.DialContext}}
		return harness.CallerFunc(func(context.Context, harness.Call) harness.Outcome {
			resp, err := hc.Get("http://api.example.com/v1/charges/c1")
			return harness.Receive(harness.Call{}, resp, err)
		}), nil
	}}
	res := one(t, client, scenario(t, scenarios.Group{Method: "GET"}))
	if res.Status != check.Unknown || len(res.Findings) != 1 || !strings.Contains(res.Findings[0].Text, "no wire to api.example.com:80") {
		t.Errorf("%s, %v", res.Status, res.Findings)
	}
}
