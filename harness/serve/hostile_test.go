package serve

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

func TestRefused(t *testing.T) {
	a := newAPI(t, Config{MaxCalls: 50, MaxBytes: 1 << 20})
	r := a.run(`{"library": "recovery/one-hang"}`)
	const yaml, js = "application/yaml", "application/json"
	scenario := func(more string) string {
		return "family: f\nscenarios:\n  - name: s\n    summary: s.\n    rule: effects.once\n    source: RFC 9110\n" + more
	}
	for _, tt := range []struct {
		name, method, path, media, body string
		status                          int
		problem, detail                 string
		line, col                       int
	}{
		{"a form", "POST", "/runs", "application/x-www-form-urlencoded", "x", 415, "media-type", "application/yaml", 0, 0},
		{"no type", "POST", "/runs", "", scenario(""), 415, "media-type", "curl", 0, 0},
		{"text, which a web page may send", "POST", "/runs", "text/plain", "x", 415, "media-type", "", 0, 0},
		{"an empty body", "POST", "/runs", yaml, "", 422, "invalid-scenario", "empty", 1, 1},
		{"an unknown field", "POST", "/runs", yaml, scenario("    summry: x\n"), 422, "invalid-scenario", "summry", 7, 5},
		{"an unknown fault", "POST", "/runs", yaml, scenario("    faults: [conection_reset]\n"), 422, "invalid-scenario", "conection_reset", 7, 14},
		{"no YAML", "POST", "/runs", yaml, "family: [\n", 422, "invalid-scenario", "no YAML", 2, 1},
		{"a YAML bomb", "POST", "/runs", yaml, bomb(), 422, "invalid-scenario", "anchor", 0, 0},
		{"nested without end", "POST", "/runs", yaml, strings.Repeat("[", 100_000), 422, "invalid-scenario", "", 0, 0},
		{"10 MB", "POST", "/runs", yaml, strings.Repeat("# ten\n", 10<<20/6), 413, "too-large", "1114112", 0, 0},
		{"over 1 MiB", "POST", "/runs", yaml, scenario(strings.Repeat("# much\n", (1<<20)/7)), 422, "invalid-scenario", "1 MiB", 1, 1},
		{"two scenarios", "POST", "/runs", yaml, scenario("  - name: t\n    summary: s.\n    rule: effects.once\n    source: RFC 9110\n"), 422, "invalid-request", "?select=f/s", 0, 0},
		{"select of none", "POST", "/runs?select=f/x", yaml, scenario(""), 422, "invalid-request", `did you mean "f/s"`, 0, 0},
		{"a query that is none", "POST", "/runs?sed=3", yaml, scenario(""), 400, "bad-request", `did you mean "seed"`, 0, 0},
		{"seed 0", "POST", "/runs?seed=0", yaml, scenario(""), 400, "bad-request", "from 1 on", 0, 0},
		{"no JSON", "POST", "/runs", js, `{"library": `, 400, "bad-request", "ends too early", 1, 11},
		{"a JSON list", "POST", "/runs", js, `[]`, 400, "bad-request", "no JSON object", 0, 0},
		{"nothing asked for", "POST", "/runs", js, `{}`, 422, "invalid-request", "there is no scenario", 0, 0},
		{"a member that is none", "POST", "/runs", js, "{\n  \"libary\": \"x\"}", 422, "invalid-request", `did you mean "library"`, 2, 3},
		{"a member twice", "POST", "/runs", js, `{"library": "a", "library": "b"}`, 400, "bad-request", "twice", 1, 18},
		{"a member of the client that is none", "POST", "/runs", js, `{"library": "recovery/one-hang", "client": {"max": 1}}`, 422, "invalid-request", "max", 0, 0},
		{"a member of the wrong type", "POST", "/runs", js, `{"library": 7}`, 422, "invalid-request", "wrong type", 0, 0},
		{"something behind it", "POST", "/runs", js, `{"library": "recovery/one-hang"} {}`, 400, "bad-request", "behind", 0, 0},
		{"a jitter that is none", "POST", "/runs", js, `{"library": "recovery/one-hang", "client": {"jitter": "ful"}}`, 422, "invalid-request", `did you mean "full"`, 0, 0},
		{"attempts below nothing", "POST", "/runs", js, `{"library": "recovery/one-hang", "client": {"max_attempts": -1}}`, 422, "invalid-request", "max_attempts", 0, 0},
		{"a scenario that is none", "POST", "/runs", js, `{"library": "recovery/one-hag"}`, 422, "invalid-request", `did you mean "recovery/one-hang"`, 0, 0},
		{"two scenarios at once", "POST", "/runs", js, `{"library": "recovery/one-hang", "scenario": "x"}`, 422, "invalid-request", "both", 0, 0},
		{"a scenario as an object, wrong at a place", "POST", "/runs", js, "{\"seed\": 3,\n \"scenario\": {\"family\": \"f\",\n  \"scenarios\": [{\"nme\": \"s\"}]}}", 422, "invalid-scenario", "no summary", 3, 17},
		{"a scenario as a file in JSON, wrong at a place", "POST", "/runs", js, "{\"family\": \"f\",\n  \"scenarios\": [{\"nme\": \"s\"}]}", 422, "invalid-scenario", "no summary", 2, 17},
		{"a fault of the dialer", "POST", "/runs", yaml, scenario("    faults: [connect_refused]\n"), 422, "unservable", "dialer", 0, 0},
		{"a scenario for virtual time", "POST", "/runs", yaml, scenario("    worlds: [virtual]\n    why: it takes a day\n"), 422, "unservable", "it takes a day", 0, 0},
		{"too many calls", "POST", "/runs", yaml, scenario("    calls: [{count: 51}]\n"), 422, "unservable", "50 at most", 0, 0},
		{"too much to receive", "POST", "/runs", yaml, scenario("    calls: [{body_size: 2MiB}]\n"), 422, "unservable", "1MiB", 0, 0},

		{"outcomes in YAML", "POST", "/runs/{id}/outcomes", yaml, "call: c1", 415, "media-type", "application/json", 0, 0},
		{"an outcome of no call", "POST", "/runs/{id}/outcomes", js, `{"ok": true}`, 422, "invalid-request", `like "c1"`, 0, 0},
		{"an outcome of another call", "POST", "/runs/{id}/outcomes", js, `{"call": "c2", "ok": true}`, 422, "invalid-request", `did you mean "c1"`, 0, 0},
		{"an outcome that says nothing", "POST", "/runs/{id}/outcomes", js, `{"call": "c1"}`, 422, "invalid-request", "no ok", 0, 0},
		{"a member of an outcome that is none", "POST", "/runs/{id}/outcomes", js, `{"call": "c1", "ok": true, "stauts": 3}`, 422, "invalid-request", `did you mean "status"`, 1, 28},
		{"a status that is none", "POST", "/runs/{id}/outcomes", js, `{"call": "c1", "ok": true, "status": 7}`, 422, "invalid-request", "status is 7", 0, 0},
		{"a trait that is none", "POST", "/runs/{id}/outcomes", js, `{"call": "c1", "ok": false, "traits": ["rest"]}`, 422, "invalid-request", `did you mean "reset"`, 0, 0},
		{"a deadline without a time", "POST", "/runs/{id}/outcomes", js, `{"call": "c1", "ok": false, "deadline_ms": 5}`, 422, "invalid-request", "took_ms", 0, 0},
		{"a time below nothing", "POST", "/runs/{id}/outcomes", js, `{"call": "c1", "ok": false, "took_ms": -5}`, 422, "invalid-request", "took_ms is -5", 0, 0},
		{"an empty list", "POST", "/runs/{id}/outcomes", js, `[]`, 422, "invalid-request", "empty", 0, 0},
		{"two outcomes for a call", "POST", "/runs/{id}/outcomes", js, `[{"call": "c1", "ok": false}, {"call": "c1", "ok": true}]`, 409, "conflict", "c1", 0, 0},
		{"outcomes without end", "POST", "/runs/{id}/outcomes", js, "[" + strings.Repeat(" ", maxOutcomeBody) + "]", 413, "too-large", "", 0, 0},

		{"a level that is none", "GET", "/runs/{id}/verdict?level=shuold", "", "", 400, "bad-request", `did you mean "should"`, 0, 0},
		{"a pattern that matches nothing", "GET", "/scenarios?match=recovry*", "", "", 400, "bad-request", "recovry", 0, 0},
		{"servable of a sort", "GET", "/scenarios?servable=perhaps", "", "", 400, "bad-request", "perhaps", 0, 0},
		{"a path that is none", "GET", "/run", "", "", 404, "not-found", `did you mean "/runs"`, 0, 0},
		{"a run that is none", "GET", "/runs/nobody", "", "", 404, "not-found", "nobody", 0, 0},
		{"a method that is none", "PUT", "/runs", js, "{}", 405, "method-not-allowed", "GET, POST", 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &api{t: t, h: a.h, srv: a.srv, client: a.client}
			got := a.send(tt.method, strings.ReplaceAll(tt.path, "{id}", r.ID), tt.media, tt.body)
			name, p := got.problem(t)
			if got.status != tt.status || name != tt.problem || !strings.Contains(p.Detail, tt.detail) {
				t.Errorf("%d %s: %s; want %d %s with %q", got.status, name, p.Detail, tt.status, tt.problem, tt.detail)
			}
			if got.header.Get("Content-Type") != "application/problem+json" {
				t.Error(got.header.Get("Content-Type"))
			}
			if tt.line > 0 && (len(p.Errors) == 0 || p.Errors[0].Line != tt.line || p.Errors[0].Column != tt.col) {
				t.Errorf("at %+v; want %d:%d", p.Errors, tt.line, tt.col)
			}
		})
	}
	if v := a.verdict(r.ID); len(v.Missing) != 1 {
		t.Errorf("something of what was refused was taken: %v", v.Missing)
	}
}

// bomb is a small file that a careless parser makes a billion of.
func bomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [lol, lol]\n")
	for i := 1; i < 30; i++ {
		fmt.Fprintf(&b, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i, i-1, i-1, i-1, i-1, i-1)
	}
	return b.String()
}

func TestSameOutcomeAgain(t *testing.T) {
	a := newAPI(t, Config{})
	r := a.run(`{"library": "recovery/one-hang"}`)
	for range 2 {
		a.report(r.ID, `{"call": "c1", "ok": false, "traits": ["timeout"], "took_ms": 5}`)
	}
	got := a.post("/runs/"+r.ID+"/outcomes", `{"call": "c1", "ok": true}`)
	if name, _ := got.problem(t); name != "conflict" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestForeignHost: DNS rebinding makes a browser send a name of the attacker's to this address.
func TestForeignHost(t *testing.T) {
	a := newAPI(t, Config{AllowHosts: []string{"faults.example"}})
	remote := New(Config{Host: "0.0.0.0"})
	defer remote.Close()
	for _, tt := range []struct {
		host          string
		here, elswere bool
	}{
		{"localhost", true, true}, {"LOCALHOST:8474", true, true}, {"127.0.0.1:1", true, true}, {"127.9.9.9", true, true}, {"[::1]:8474", true, true}, {"[::1]", true, true},
		{"faults.example:80", true, false}, {"evil.example", false, false}, {"127.0.0.1.evil.example", false, false}, {"localhost.evil.example", false, false},
		{"10.0.0.1", false, true}, {"", false, false},
	} {
		for h, want := range map[*Handler]bool{a.h: tt.here, remote: tt.elswere} {
			req := httptest.NewRequest("GET", "/healthz", nil)
			req.Host = tt.host
			w := httptest.NewRecorder()
			h.ServeHTTP(w, req)
			if (w.Code == 200) != want {
				t.Errorf("Host %q at %s: %d", tt.host, h.cfg.Host, w.Code)
			}
			if !want && (w.Code != http.StatusMisdirectedRequest || !strings.Contains(w.Body.String(), "foreign-host")) {
				t.Errorf("Host %q: %d %s", tt.host, w.Code, w.Body)
			}
		}
	}
}

func TestOtherOrigin(t *testing.T) {
	a := newAPI(t, Config{})
	r := a.run(`{"library": "recovery/one-hang"}`)
	for _, header := range []http.Header{{"Origin": {"http://evil.example"}}, {"Sec-Fetch-Site": {"cross-site"}}} {
		req, err := http.NewRequest("POST", a.srv.URL+"/runs/"+r.ID+"/end", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = header
		if name, _ := a.do(req).problem(t); name != "cross-origin" {
			t.Errorf("%v: %s", header, name)
		}
	}
	if got := a.h.find(r.ID).info(false); got.State != "open" {
		t.Error("the run has ended")
	}
}

// TestBoundsOfARun: what a run's port takes has an end, and that is never the client's fault.
func TestBoundsOfARun(t *testing.T) {
	for _, tt := range []struct {
		name string
		cfg  Config
		do   func(t *testing.T, r runInfo)
		want string
	}{
		{"bytes", Config{MaxBytes: 100_000}, func(t *testing.T, r runInfo) {
			resp, err := http.Post(r.Calls[0].URL, "application/json", io.LimitReader(endless{}, 1<<20))
			if err == nil {
				resp.Body.Close()
				t.Error("a body over the bound was taken")
			}
			if got := attempt(t, r.Calls[0]); got != 0 {
				t.Errorf("another attempt was answered %d", got)
			}
		}, "more bytes"},
		{"connections", Config{MaxConns: 3}, func(t *testing.T, r runInfo) {
			base, err := url.Parse(r.BaseURL)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				c, err := net.Dial("tcp", base.Host)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
			}
			if got := attempt(t, r.Calls[0]); got != 0 {
				t.Errorf("one more was answered %d", got)
			}
		}, "more than 3 connections"},
		{"attempts", Config{AttemptCap: 3}, func(t *testing.T, r runInfo) {
			for range 3 {
				attempt(t, r.Calls[0])
			}
			if _, err := (&http.Client{Timeout: 50 * time.Millisecond}).Post(r.Calls[0].URL, "", nil); err == nil {
				t.Error("one more was answered")
			}
		}, "cap after 3 attempts"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := newAPI(t, tt.cfg)
			r := a.run(file(t, lostAnswer, ""))
			tt.do(t, r)
			a.report(r.ID, `{"call": "c1", "ok": false, "traits": ["reset"]}`)
			v := a.verdict(r.ID)
			if !strings.Contains(v.Reason, tt.want) {
				t.Errorf("%s: %s", v.Status, v.Reason)
			}
			if tt.name != "attempts" && v.Status == check.Fail {
				t.Errorf("the client is blamed: %s", v.Reason)
			}
		})
	}
}

type endless struct{}

func (endless) Read(p []byte) (int, error) { return copy(p, bytes.Repeat([]byte{'x'}, len(p))), nil }

// TestWholeLibrary: every scenario is either refused with a reason, or opened with all that a test needs.
func TestWholeLibrary(t *testing.T) {
	a := newAPI(t, Config{MaxRuns: 1})
	var list struct{ Scenarios []scenarioInfo }
	a.get("/scenarios").into(t, &list)
	all, err := scenarios.Library()
	if err != nil || len(list.Scenarios) != len(all) {
		t.Fatal(len(list.Scenarios), err)
	}
	served := 0
	for i, s := range list.Scenarios {
		if i%7 != 0 && !strings.HasPrefix(s.Name, "tls/") {
			continue
		}
		got := a.post("/runs", fmt.Sprintf(`{"library": %q, "seed": 7}`, s.Name))
		if !s.Servable {
			if name, p := got.problem(t); name != "unservable" || p.Detail != s.Why || s.Why == "" {
				t.Errorf("%s: %s: %s; the list says %q", s.Name, name, p.Detail, s.Why)
			}
			continue
		}
		served++
		var r runInfo
		got.into(t, &r)
		if got.status != http.StatusCreated || len(r.Calls) == 0 || r.ID == "" {
			t.Fatalf("%s: %d %s", s.Name, got.status, got.body)
		}
		for _, n := range s.Needs {
			if n.Code == needTrust && !strings.Contains(r.CA, "BEGIN CERTIFICATE") || n.Code == needWarm && r.WarmURL == "" || n.Code == needToken && r.TokenURL == "" {
				t.Errorf("%s: it needs %s", s.Name, n.Code)
			}
		}
		if got := a.send("DELETE", "/runs/"+r.ID, "", ""); got.status != http.StatusNoContent {
			t.Fatalf("%d", got.status)
		}
	}
	var some struct{ Scenarios []scenarioInfo }
	a.get("/scenarios?servable=false").into(t, &some)
	if n := len(some.Scenarios); served < 50 || n == 0 || n > len(all)/2 {
		t.Errorf("%d were served of every seventh; %d cannot be", served, n)
	}
}

// TestSeedReplays: the same seed gives the same keys and the same decisions.
func TestSeedReplays(t *testing.T) {
	a := newAPI(t, Config{})
	body := file(t, `family: f
scenarios:
  - name: draw
    summary: Attempts fail by chance.
    rule: effects.once
    source: RFC 9110
    calls: [{key: true, count: 8}]
    draw: {p: 0.5, faults: [503, 429, 500]}
`, `, "seed": 42`)
	var got [2]string
	for i := range got {
		r := a.run(body)
		for _, c := range r.Calls {
			got[i] += fmt.Sprint(*c.Key, attempt(t, c), attempt(t, c), "\n")
		}
	}
	if got[0] != got[1] || !strings.Contains(got[0], "503") || !strings.Contains(got[0], "200") {
		t.Errorf("%s\n%s", got[0], got[1])
	}
}

// FuzzOrder: no body makes a request for a run panic, and what is refused is a problem.
func FuzzOrder(f *testing.F) {
	f.Add(true, []byte(`{"library": "recovery/one-hang", "seed": 7, "client": {"jitter": "full"}}`))
	f.Add(true, []byte("{\"scenario\": {\"family\": \"f\",\n\"scenarios\": [{\"nme\": 1}]}}"))
	f.Add(true, []byte(`{"scenario": "family: f"}`))
	f.Add(false, []byte(lostAnswer))
	f.Fuzz(func(t *testing.T, js bool, body []byte) {
		req := httptest.NewRequest("POST", "/runs", bytes.NewReader(body))
		req.Header.Set("Content-Type", map[bool]string{true: "application/json", false: "application/yaml"}[js])
		o, err := readOrder(httptest.NewRecorder(), req)
		var p *problem
		switch {
		case err == nil && o.scenario.Name == "":
			t.Error("there is neither a scenario nor a problem")
		case err != nil && !errors.As(err, &p):
			t.Errorf("%v", err)
		case err != nil && (p.detail == "" || p.status < 400):
			t.Errorf("%+v", p)
		}
	})
}

// FuzzOutcomes: no body makes a report of outcomes panic, and nothing is taken for a call that is not there.
func FuzzOutcomes(f *testing.F) {
	f.Add([]byte(`{"call": "c1", "ok": true, "status": 200, "traits": null, "took_ms": 1.5}`))
	f.Add([]byte(`[{"call": "c1", "ok": false, "traits": ["reset"]}, {"call": "c1", "ok": false}]`))
	r := &run{calls: map[string]harness.StagedCall{"c1": {}}}
	f.Fuzz(func(t *testing.T, body []byte) {
		list, p := decodeOutcomes(body)
		if p != nil {
			if p.detail == "" {
				t.Error("a problem without a reason")
			}
			return
		}
		for i := range list {
			o := &list[i]
			if p := r.check(o); p != nil {
				continue
			}
			if o.Call != "c1" || o.OK == nil || len(o.Error) > maxError+len("…") {
				t.Errorf("%+v", o)
			}
			c := &history.Call{ID: "c1", Attempts: []*history.Attempt{{N: 1, At: 5, Ended: 7}}}
			if (report{*o, 10}).fill(c); c.Ended < c.Started || !c.Returned {
				t.Errorf("%+v", c)
			}
		}
	})
}
