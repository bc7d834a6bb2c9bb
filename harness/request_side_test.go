package harness_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/scenarios"
)

// record is a run's history as bytes.
func record(t *testing.T, res *harness.Result) []byte {
	t.Helper()
	b, err := json.Marshal(res.History)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestNoChanceIsNoDraw: with a probability of 0 a run is byte for byte the run without a draw.
func TestNoChanceIsNoDraw(t *testing.T) {
	s := scenario(t, scenarios.Group{Count: 20, Method: "PUT"}, "503", "connection_reset@after_commit")
	client := harness.Bundled("retry", retry.Policy{})
	without := record(t, harness.Runner{Seed: 7}.One(t, client, s))
	s.Draw = &faults.Draw{P: 0, Faults: []faults.Fault{mustParse(t, "hang"), mustParse(t, "500@after_commit")}}
	s, err := scenarios.Validate(s)
	if err != nil {
		t.Fatal(err)
	}
	if with := record(t, harness.Runner{Seed: 7}.One(t, client, s)); !bytes.Equal(with, without) {
		t.Errorf("a draw of nothing changes the run:\n%s\n%s", without, with)
	}
	s.Draw.P = 0.01
	if with := record(t, harness.Runner{Seed: 7}.One(t, client, s)); bytes.Equal(with, without) {
		t.Error("the comparison cannot tell a draw from none")
	}
}

// TestTriggersByRoute: a storm and a draw with a route leave the calls of other routes alone.
func TestTriggersByRoute(t *testing.T) {
	const other = "/search/{call}"
	groups := []scenarios.Group{{Count: 3, Method: "GET"}, {Name: "other", Count: 3, Method: "GET", Path: other}}
	storm := scenario(t, groups[0])
	storm.Calls = groups
	draw := storm
	storm.Storms = []faults.Storm{{To: time.Hour, Fault: mustParse(t, "503"), Route: other}}
	draw.Draw = &faults.Draw{P: 1, Faults: []faults.Fault{mustParse(t, "503")}, Route: other}
	for name, s := range map[string]scenarios.Scenario{"storm": storm, "draw": draw} {
		s, err := scenarios.Validate(s)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range (harness.Runner{}).One(t, plain(), s).History.Calls {
			want := 200
			if c.Group == "other" {
				want = 503
			}
			if c.Outcome.Status != want {
				t.Errorf("%s: %s of group %s: status %d, want %d", name, c.ID, c.Group, c.Outcome.Status, want)
			}
		}
	}
}

// TestQuota: the calls of a route share a quota, in each window anew, and whoever is over it is told when the
// next one begins.
func TestQuota(t *testing.T) {
	s := scenario(t, scenarios.Group{Count: 8, Method: "GET", Every: 500 * time.Millisecond}, "rate_limit quota=2 window=2s times=forever")
	res := harness.Runner{Seed: 3}.One(t, plain(), s)
	want := []int{200, 200, 429, 429, 200, 200, 429, 429}
	for i, c := range res.History.Calls {
		a := c.Attempts[0]
		if a.Status != want[i] {
			t.Errorf("%s at %v: status %d, want %d", c.ID, a.At, a.Status, want[i])
		}
		if a.Status != 429 {
			if a.Category != string(faults.None) {
				t.Errorf("%s is within its quota, and its category is %s", c.ID, a.Category)
			}
			continue
		}
		next := (a.At/(2*time.Second) + 1) * 2 * time.Second
		if len(a.RetryAfter) != 1 || a.NotBefore < next || a.NotBefore-next >= time.Second {
			t.Errorf("%s at %v: Retry-After %v, until %v; the next window begins at %v", c.ID, a.At, a.RetryAfter, a.NotBefore, next)
		}
	}
	if a := res.History.Faults; len(a) != 1 || a[0].Planned != -1 || a[0].Claimed != 8 || a[0].Delivered != 8 {
		t.Errorf("the account: %+v", a)
	}
	if again := (harness.Runner{Seed: 3}).One(t, plain(), s); !bytes.Equal(record(t, res), record(t, again)) {
		t.Error("the same seed gives another run")
	}
}

// TestUnreadBodyIsNotTheClients: what a fault leaves unread is in the journal, and no breach of body.intact.
func TestUnreadBodyIsNotTheClients(t *testing.T) {
	for text, read := range map[string]int{"partial_request after=5": 5, "early_response code=503": 0, "early_response code=503 end=fin": 0} {
		res := harness.Runner{}.One(t, harness.Bundled("retry", retry.Policy{}), scenario(t, scenarios.Group{Method: "PUT"}, text))
		call := res.History.Calls[0]
		if len(call.Attempts) != 2 || !call.Outcome.OK {
			t.Fatalf("%s: %s", text, res.Explain(check.May))
		}
		first, second := call.Attempts[0], call.Attempts[1]
		if !first.BodyUnread || first.BodyLen != read || first.BodyBroken || !first.Delivered || second.BodyUnread {
			t.Errorf("%s: the journal says %+v, then %+v", text, first, second)
		}
		if v := verdict(res, "body.intact"); v.Status != check.Pass {
			t.Errorf("%s: %+v", text, v)
		}
	}
}

// refreshing is a client that repeats a call answered 401 with another token: once, or without end.
func refreshing(endless bool) harness.Client {
	return harness.Client{Name: "refreshing", New: func(env harness.Env) (harness.Caller, error) {
		hc := &http.Client{Transport: env.Transport}
		return harness.CallerFunc(func(ctx context.Context, call harness.Call) harness.Outcome {
			for first := true; ; first = false {
				req, err := call.Request(ctx)
				if err != nil {
					return harness.Outcome{Err: err}
				}
				resp, err := hc.Do(req)
				if err != nil || resp.StatusCode != http.StatusUnauthorized || !first && !endless {
					return harness.Receive(call, resp, err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				token, err := env.Refresh(ctx)
				if err != nil && !endless || ctx.Err() != nil {
					return harness.Outcome{Err: err}
				}
				call.Header.Set("Authorization", "Bearer "+token)
			}
		}), nil
	}}
}

func TestTokens(t *testing.T) {
	run := func(mode scenarios.TokenMode, c harness.Client) (*history.History, *history.Call) {
		s := scenario(t, scenarios.Group{})
		s.Server.Token = mode
		s, err := scenarios.Validate(s)
		if err != nil {
			t.Fatal(err)
		}
		h := harness.Runner{}.One(t, c, s).History
		return h, h.Calls[0]
	}
	for _, want := range []struct {
		mode             scenarios.TokenMode
		ok               bool
		attempts, status int
	}{
		{scenarios.TokenNone, true, 1, 200}, {scenarios.TokenExpired, true, 2, 200},
		{scenarios.TokenRevoked, false, 2, 401}, {scenarios.TokenLocked, false, 1, 401},
	} {
		h, c := run(want.mode, refreshing(false))
		last := c.Last()
		if c.Outcome.OK != want.ok || len(c.Attempts) != want.attempts || last.Status != want.status {
			t.Errorf("token %q: success %v after %d attempts, the last one %d", want.mode, c.Outcome.OK, len(c.Attempts), last.Status)
		}
		if want.mode != scenarios.TokenNone && h.Refreshes != 1 {
			t.Errorf("token %q: %d refreshes", want.mode, h.Refreshes)
		}
		if len(last.HeaderDiff) > 0 {
			t.Errorf("token %q: a new token counts as an altered field: %v", want.mode, last.HeaderDiff)
		}
	}
	// Who refreshes without end is stopped, in whichever way it goes round.
	for _, mode := range []scenarios.TokenMode{scenarios.TokenRevoked, scenarios.TokenLocked} {
		h, c := run(mode, refreshing(true))
		if n := len(c.Attempts); c.Outcome.OK || n > h.AttemptCap || h.Refreshes > h.AttemptCap+1 {
			t.Errorf("token %q: success %v, %d attempts, %d refreshes", mode, c.Outcome.OK, n, h.Refreshes)
		}
	}
}
