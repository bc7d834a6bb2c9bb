package serve

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

func of(v verdict, id string) check.Verdict {
	i := slices.IndexFunc(v.Verdicts, func(one check.Verdict) bool { return one.Check == id })
	if i < 0 {
		return check.Verdict{}
	}
	return v.Verdicts[i]
}

func TestDoubleEffectIsAFailure(t *testing.T) {
	a := newAPI(t, Config{})
	r := a.run(file(t, lostAnswer, `, "seed": 7, "client": {"name": "mine", "max_attempts": 3}`))
	if len(r.Calls) != 1 || r.Calls[0].ID != "c1" || r.Seed != 7 || r.Calls[0].Key != nil || r.Calls[0].URL != r.BaseURL+"/charges/c1" {
		t.Fatalf("%+v", r)
	}
	for i, want := range []int{0, 200} {
		if got := attempt(t, r.Calls[0]); got != want {
			t.Errorf("attempt %d: status %d, want %d", i+1, got, want)
		}
	}
	v := a.verdict(r.ID)
	if got := of(v, "effects.once"); got.Status != check.Fail || v.Status != check.Fail {
		t.Errorf("before any outcome: %s, %+v", v.Status, got)
	}
	a.report(r.ID, `{"call": "c1", "ok": true, "status": 200, "attempts": 2, "took_ms": 12.5}`)
	v = a.verdict(r.ID)
	for id, want := range map[string]check.Status{
		"effects.once": check.Fail, "attempts.unsafe-not-repeated": check.Fail, "attempts.bounded": check.Pass,
		"body.intact": check.Pass, "key.stable": check.Skipped, "resources.released": check.Skipped,
	} {
		if got := of(v, id); got.Status != want {
			t.Errorf("%s: %s (%s), want %s", id, got.Status, got.Reason, want)
		}
	}
	if !v.Final || len(v.Missing) != 0 || !strings.Contains(v.Text, "attempt 2: connection 2 fresh") {
		t.Errorf("final %v, missing %v\n%s", v.Final, v.Missing, v.Text)
	}
	var h history.History
	a.get("/runs/"+r.ID+"/history").into(t, &h)
	if len(h.Effects) != 2 || len(h.Calls[0].Attempts) != 2 || !h.Calls[0].Outcome.OK || h.Calls[0].Ended-h.Calls[0].Started != 12500*time.Microsecond {
		t.Errorf("%+v", h.Calls[0])
	}
}

// TestSilenceIsNoPass: whatever the client did on the wire, without outcomes nothing passes while the run goes on,
// and what needs the client's side does not pass when it has ended.
func TestSilenceIsNoPass(t *testing.T) {
	a := newAPI(t, Config{})
	all, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if a.h.fit(s) != nil || !strings.HasPrefix(s.Name, "recovery/") && !strings.HasPrefix(s.Name, "retry-after/") {
			continue
		}
		o := order{scenario: s, seed: 1}
		r, err := a.h.open(o, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.info(true).Calls[:1] {
			if s.Server.Protocol != "h2" && !s.Server.TLS && len(s.Faults) > 0 && s.Faults[0].Name == "status" {
				attempt(t, c)
			}
		}
		for _, v := range r.judge(check.May).Verdicts {
			if v.Status == check.Pass {
				t.Errorf("%s: %s passes while it goes on: %s", s.Name, v.Check, v.Reason)
			}
		}
		r.end()
		for _, v := range r.judge(check.May).Verdicts {
			if v.Status == check.Pass && sights[v.Check] != over {
				t.Errorf("%s: %s passes without an outcome: %s", s.Name, v.Check, v.Reason)
			}
		}
	}
}

// TestSightsNameEveryCheck: a new check must say what it has to know.
func TestSightsNameEveryCheck(t *testing.T) {
	n := 0
	for _, c := range check.All() {
		if _, ok := sights[c.ID]; !ok {
			t.Errorf("%s is not in sights", c.ID)
		}
		n++
	}
	if len(sights) != n+1 {
		t.Errorf("%d sights for %d checks and the expectations", len(sights), n)
	}
}

func TestVerdicts(t *testing.T) {
	const head = `family: f
scenarios:
  - name: s
    summary: s.
    source: RFC 9110
`
	for _, tt := range []struct {
		name, scenario string
		attempts       int
		outcomes       string
		end            bool
		check          string
		want           check.Status
		reason         string
	}{
		{"a key in each attempt, and the calls are over", "    rule: key.stable\n    calls: [{key: true}]\n    faults: ['503']\n", 2, "", true,
			"key.stable", check.Pass, "one key of its own"},
		{"a key in each attempt, and who knows", "    rule: key.stable\n    calls: [{key: true}]\n    faults: ['503']\n", 2, "", false,
			"key.stable", check.Unknown, "c1 may still be going on"},
		{"a 503 given back with its status", "    rule: error.last-real\n    faults: [503 times=5]\n", 1, `{"call":"c1","ok":false,"status":503,"traits":[]}`, false,
			"error.last-real", check.Pass, "within the caller's reach"},
		{"a 503 masked, as the test can tell", "    rule: error.last-real\n    faults: [503 times=5]\n", 1, `{"call":"c1","ok":false,"error":"retries exhausted","traits":[]}`, false,
			"error.last-real", check.Fail, "nothing can be found in"},
		{"a 503 perhaps masked", "    rule: error.last-real\n    faults: [503 times=5]\n", 1, `{"call":"c1","ok":false,"error":"retries exhausted"}`, false,
			"error.last-real", check.Unknown, "(traits)"},
		{"a deadline kept", "    rule: timing.deadline\n    calls: [{deadline: 2s}]\n    faults: [503 times=5]\n", 1, `{"call":"c1","ok":false,"status":503,"took_ms":300,"deadline_ms":2000}`, false,
			"timing.deadline", check.Pass, ""},
		{"a deadline missed", "    rule: timing.deadline\n    calls: [{deadline: 2s}]\n    faults: [503 times=5]\n", 1, `{"call":"c1","ok":false,"status":503,"took_ms":9000,"deadline_ms":2000}`, false,
			"timing.deadline", check.Fail, "after its deadline"},
		{"a deadline that nobody tells of, which the scenario is about", "    rule: timing.deadline\n    calls: [{deadline: 2s}]\n    faults: [503 times=5]\n", 1, `{"call":"c1","ok":false,"status":503,"took_ms":300}`, false,
			"timing.deadline", check.Unknown, "deadline_ms"},
		{"a deadline that nobody tells of", "    rule: effects.once\n    faults: ['503']\n", 2, `{"call":"c1","ok":true}`, false,
			"timing.deadline", check.Skipped, "deadline_ms"},
		{"a cancel obeyed", "    rule: timing.cancel\n    calls: [{cancel_after: 100ms}]\n    faults: [503 times=5]\n", 1, `{"call":"c1","ok":false,"traits":["canceled"],"took_ms":105,"cancelled_ms":100}`, false,
			"timing.cancel", check.Pass, ""},
		{"a cancel slept through", "    rule: timing.cancel\n    calls: [{cancel_after: 100ms}]\n    faults: [503 times=5]\n", 1, `{"call":"c1","ok":false,"traits":["canceled"],"took_ms":5000,"cancelled_ms":100}`, false,
			"timing.cancel", check.Fail, "after it was cancelled"},
		{"a cancel that was not given", "    rule: timing.cancel\n    calls: [{cancel_after: 100ms}]\n    faults: [503 times=5]\n", 1, `{"call":"c1","ok":false,"status":503,"took_ms":5000}`, false,
			"timing.cancel", check.Unknown, "cancelled_ms"},
		{"no leak can be seen, which the scenario is about", "    rule: resources.released\n", 1, `{"call":"c1","ok":true}`, false,
			"resources.released", check.Unknown, "in its process"},
		{"who gives up could have recovered", "    rule: liveness.recovers\n    calls: [{method: PUT}]\n    faults: ['503']\n", 1, `{"call":"c1","ok":false,"status":503}`, false,
			"liveness.recovers", check.Fail, "gave up"},
		{"success without an effect", "    rule: effects.once\n    faults: [503 times=9]\n", 1, `{"call":"c1","ok":true}`, false,
			"effects.once", check.Fail, "had no effect"},
		{"expected and so", "    rule: effects.once\n    faults: ['503']\n    expect: {ok: true, attempts: 2, effects: 1}\n", 2, `{"call":"c1","ok":true}`, false,
			"scenario.expect", check.Pass, ""},
		{"expected and not so", "    rule: effects.once\n    faults: ['503']\n    expect: {attempts: 1}\n", 2, `{"call":"c1","ok":true}`, false,
			"scenario.expect", check.Fail, "2 attempts"},
		{"expected of a warm connection, and it was cold", "    rule: effects.once\n    connection: reused\n    faults: ['503']\n    expect: {attempts: 1}\n", 2, `{"call":"c1","ok":true}`, false,
			"scenario.expect", check.Unknown, "fresh connection"},
		{"more attempts than declared", "    rule: attempts.bounded\n    faults: [503 times=9]\n", 4, "", false,
			"attempts.bounded", check.Fail, "4 attempts for at most 3"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t, Config{})
			r := a.run(file(t, head+tt.scenario, `, "client": {"max_attempts": 3}`))
			for range tt.attempts {
				attempt(t, r.Calls[0])
			}
			if tt.outcomes != "" {
				a.report(r.ID, tt.outcomes)
			}
			if tt.end {
				if got := a.send("POST", "/runs/"+r.ID+"/end", "", ""); got.status != http.StatusOK {
					t.Fatalf("%d %s", got.status, got.body)
				}
			}
			v := a.verdict(r.ID)
			if got := of(v, tt.check); got.Status != tt.want || !strings.Contains(got.Reason, tt.reason) {
				t.Errorf("%s: %s: %s; want %s with %q", tt.check, got.Status, got.Reason, tt.want, tt.reason)
			}
		})
	}
}

// TestBodies: unless they are told to be exact, attempts are held against the first that arrived whole.
func TestBodies(t *testing.T) {
	for _, tt := range []struct {
		more   string
		bodies []string
		want   check.Status
	}{
		{"", []string{`{"own": 1}`, `{"own": 1}`}, check.Pass},
		{"", []string{`{"own": 1}`, ``}, check.Fail},
		{"", []string{`{"own": 1}`, `{"own": 2}`}, check.Fail},
		{`, "exact": true`, []string{`{"own": 1}`, `{"own": 1}`}, check.Fail},
	} {
		a := newAPI(t, Config{})
		r := a.run(file(t, lostAnswer, tt.more))
		for _, body := range tt.bodies {
			c := r.Calls[0]
			c.Body = &body
			attempt(t, c)
		}
		a.report(r.ID, `{"call": "c1", "ok": true}`)
		if got := of(a.verdict(r.ID), "body.intact"); got.Status != tt.want {
			t.Errorf("%v%s: %s (%s), want %s", tt.bodies, tt.more, got.Status, got.Reason, tt.want)
		}
	}
}

// TestBrokenBody: a body that breaks off at once is the client's fault only if nobody cancelled, which an outcome has to
// tell.
func TestBrokenBody(t *testing.T) {
	a := newAPI(t, Config{})
	r := a.run(file(t, lostAnswer, ""))
	u, err := url.Parse(r.BaseURL)
	if err != nil {
		t.Fatal(err)
	}
	c, err := net.Dial("tcp", u.Host)
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf", r.Calls[0].Path)
	c.Close()
	for broken := false; !broken; time.Sleep(time.Millisecond) {
		h, _ := a.h.find(r.ID).complete()
		broken = len(h.Calls[0].Attempts) == 1 && h.Calls[0].Attempts[0].BodyBroken
	}
	a.send("POST", "/runs/"+r.ID+"/end", "", "")
	if got := of(a.verdict(r.ID), "body.intact"); got.Status == check.Fail {
		t.Errorf("without an outcome: %s: %s", got.Status, got.Reason)
	}
	a.report(r.ID, `{"call": "c1", "ok": false, "traits": ["eof"]}`)
	h, _ := a.h.find(r.ID).complete()
	if at := h.Calls[0].Attempts[0]; at.Ended-at.At > 10*time.Millisecond {
		t.Skip("the machine is too slow to tell at once from later")
	}
	if got := of(a.verdict(r.ID), "body.intact"); got.Status != check.Fail {
		t.Errorf("with an outcome: %s: %s", got.Status, got.Reason)
	}
}

// TestAmiss: what a test can have done amiss excuses the client from the author's expectations.
func TestAmiss(t *testing.T) {
	yes := true
	busy, err := faults.Parse("503")
	if err != nil {
		t.Fatal(err)
	}
	storm := []faults.Storm{{To: time.Second, Fault: busy}}
	call := func(first time.Duration, change func(*history.Call)) *history.Call {
		c := &history.Call{ID: "c1", Group: "calls", Method: "POST", Returned: true, Started: first, Ended: first + time.Second, Outcome: history.Outcome{OK: true},
			Attempts: []*history.Attempt{{N: 1, At: first, Ended: first, Method: "POST", Delivered: true, Fault: "ok", Status: 200, Reused: true}}}
		change(c)
		return c
	}
	for _, tt := range []struct {
		name     string
		scenario scenarios.Scenario
		call     *history.Call
		unknown  bool // traits
		want     check.Status
	}{
		{"as it should be", scenarios.Scenario{}, call(0, func(*history.Call) {}), false, check.Pass},
		{"no attempt", scenarios.Scenario{}, call(0, func(c *history.Call) { c.Attempts = nil }), false, check.Unknown},
		{"a cold connection", scenarios.Scenario{Connection: faults.Reused}, call(0, func(c *history.Call) { c.Attempts[0].Reused = false }), false, check.Unknown},
		{"a warm connection", scenarios.Scenario{Connection: faults.Reused}, call(0, func(*history.Call) {}), false, check.Pass},
		{"in the storm", scenarios.Scenario{Storms: storm}, call(time.Second, func(*history.Call) {}), false, check.Pass},
		{"after the storm", scenarios.Scenario{Storms: storm}, call(time.Minute, func(*history.Call) {}), false, check.Unknown},
		{"late, and it does not matter", scenarios.Scenario{}, call(time.Minute, func(*history.Call) {}), false, check.Pass},
		{"not cancelled", scenarios.Scenario{Calls: []scenarios.Group{{CancelAfter: time.Millisecond}}}, call(0, func(*history.Call) {}), false, check.Unknown},
		{"over before it was to be cancelled", scenarios.Scenario{Calls: []scenarios.Group{{CancelAfter: 10 * time.Second}}}, call(0, func(*history.Call) {}), false, check.Pass},
		{"a trait that nobody told", scenarios.Scenario{Expect: scenarios.Expect{Trait: "reset"}}, call(0, func(c *history.Call) { c.Outcome = history.Outcome{Error: "x"} }), true, check.Unknown},
		{"a trait that is not there", scenarios.Scenario{Expect: scenarios.Expect{Trait: "reset"}}, call(0, func(c *history.Call) { c.Outcome = history.Outcome{Error: "x"} }), false, check.Fail},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.scenario
			if s.Expect == (scenarios.Expect{}) {
				s.Expect.OK = &yes
			}
			s.Name, s.Summary, s.Rule, s.Source = "f/s", "s.", "effects.once", "RFC 9110"
			s, err := scenarios.Validate(s)
			if err != nil {
				t.Fatal(err)
			}
			h := &history.History{World: "loopback", Calls: []*history.Call{tt.call}}
			j := judging{scenario: s, whole: h, told: h, traitsUnknown: map[string]bool{"c1": tt.unknown}}
			if got := j.verdict(harness.Expectations(s)); got.Status != tt.want {
				t.Errorf("%s: %s; want %s", got.Status, got.Reason, tt.want)
			}
		})
	}
}

// TestSilenceIsNoFailure: of two calls of which one was told, the silence of the other proves nothing.
func TestSilenceIsNoFailure(t *testing.T) {
	a := newAPI(t, Config{})
	r := a.run(file(t, `family: f
scenarios:
  - name: s
    summary: s.
    rule: liveness.recovers
    source: RFC 9110
    calls: [{method: PUT, count: 2}]
    faults: ["503"]
`, ""))
	attempt(t, r.Calls[0])
	attempt(t, r.Calls[0])
	attempt(t, r.Calls[1])
	a.report(r.ID, `{"call": "c1", "ok": true}`)
	if got := of(a.verdict(r.ID), "liveness.recovers"); got.Status != check.Unknown || !strings.Contains(got.Reason, "c2") {
		t.Errorf("%s: %s", got.Status, got.Reason)
	}
	a.report(r.ID, `{"call": "c2", "ok": false, "status": 503}`)
	if got := of(a.verdict(r.ID), "liveness.recovers"); got.Status != check.Fail {
		t.Errorf("%s: %s", got.Status, got.Reason)
	}
	// Load is judged by all calls or not at all.
	h := &history.History{Calls: []*history.Call{{ID: "c1"}, {ID: "c2"}}}
	j := judging{whole: h, told: without(h, []string{"c2"}), missing: []string{"c2"}}
	fails := check.Check{ID: "load.amplification", Judge: func(*history.History) check.Verdict { return check.Verdict{Status: check.Fail, Reason: "x"} }}
	if got := j.verdict(fails); got.Status != check.Unknown {
		t.Errorf("%s: %s", got.Status, got.Reason)
	}
}

// TestVerdictWaitsForTheJournal: a test can tell of an answer before the server has noted that it was sent.
func TestVerdictWaitsForTheJournal(t *testing.T) {
	a := newAPI(t, Config{})
	info := a.run(file(t, "family: f\nscenarios:\n  - name: s\n    summary: s.\n    rule: effects.once\n    source: x\n    faults: [latency delay=300ms]\n", ""))
	a.h.mu.Lock()
	r := a.h.runs[info.ID]
	a.h.mu.Unlock()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { attempt(t, info.Calls[0]) })
	for len(r.stage.History().Calls[0].Attempts) == 0 {
		runtime.Gosched()
	}
	a.report(info.ID, `{"call":"c1","ok":true,"status":200}`)
	h, _ := r.complete()
	if got := h.Calls[0].Attempts[0]; got.Status != 200 || !got.Delivered {
		t.Errorf("judged before the answer was noted: %+v", got)
	}
}
