package serve

import (
	"cmp"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/scenarios"
)

// A run is a scenario's server with what was told of its calls.
type run struct {
	id       string
	scenario scenarios.Scenario
	seed     uint64
	client   declared
	exact    bool
	base     string // URL, without a slash at the end
	created  time.Time
	expires  time.Time
	stage    *harness.Stage
	listener *bounded
	calls    map[string]harness.StagedCall
	timer    *time.Timer
	release  func()

	mu    sync.Mutex
	ended bool
	told  map[string]report
}

// open starts the server of a run. The host is what the request for it was sent to.
func (h *Handler) open(o order, host string) (*run, error) {
	r := &run{id: newID(), scenario: o.scenario, seed: o.seed, client: o.client, exact: o.exact,
		calls: map[string]harness.StagedCall{}, told: map[string]report{}}
	if r.seed == 0 {
		r.seed = harness.NewSeed()
	}
	name, base := h.cfg.Host, h.cfg.BaseHost
	ip := net.ParseIP(name)
	if base == "" {
		base = name
		if ip != nil && ip.IsUnspecified() {
			base = host
		}
	}
	if o.scenario.Server.TLS && base != "127.0.0.1" {
		return nil, unservable.because("%s speaks TLS with a certificate for 127.0.0.1, and the ports of runs are at %s here", o.scenario.Name, base)
	}
	l, err := listen(name, h.cfg.MaxConns, h.cfg.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("opening a port: %w", err)
	}
	r.listener = l
	_, port, _ := net.SplitHostPort(l.Addr().String())
	r.stage, err = harness.OpenStage(o.scenario, harness.StageConfig{
		Seed: r.seed, Client: o.client.Name, Declared: o.client.history(), Exact: o.exact, Listener: l, AttemptCap: h.cfg.AttemptCap})
	if err != nil {
		return nil, err
	}
	r.created = time.Now()
	r.expires = r.created.Add(h.cfg.TTL)
	scheme := "http://"
	if o.scenario.Server.TLS {
		scheme = "https://"
	}
	r.base = scheme + net.JoinHostPort(base, port)
	for _, c := range r.stage.Calls() {
		r.calls[c.ID] = c
	}
	return r, nil
}

// end closes the run's port. What it has recorded stays.
func (r *run) end() {
	r.stage.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
}

// drop ends a run that nobody can ask for any more, and gives its place back.
func (r *run) drop() {
	r.timer.Stop()
	r.end()
	r.release()
}

// A runInfo is a run as tests are told of it.
type runInfo struct {
	ID       string     `json:"id"`
	Scenario string     `json:"scenario"`
	Summary  string     `json:"summary"`
	Rule     string     `json:"rule"`
	Seed     uint64     `json:"seed"`
	State    string     `json:"state"` // open or ended
	Created  time.Time  `json:"created"`
	Expires  time.Time  `json:"expires"`
	BaseURL  string     `json:"base_url"`
	Attempts int        `json:"attempts"`
	Effects  int        `json:"effects"`
	Missing  []string   `json:"missing"` // calls without an outcome
	Needs    []need     `json:"needs,omitempty"`
	CA       string     `json:"ca,omitempty"`
	WarmURL  string     `json:"warm_url,omitempty"`
	TokenURL string     `json:"token_url,omitempty"`
	Client   *declared  `json:"client,omitempty"`
	Exact    bool       `json:"exact,omitempty"`
	Calls    []callInfo `json:"calls,omitempty"`
}

// A callInfo is a call as tests are to have it made.
type callInfo struct {
	ID          string              `json:"id"`
	Group       string              `json:"group"`
	Method      string              `json:"method"`
	Path        string              `json:"path"`
	URL         string              `json:"url"`
	Headers     map[string][]string `json:"headers"`
	Body        *string             `json:"body"`
	Key         *string             `json:"key"`
	KeyHonoured bool                `json:"key_honoured"`
	Idempotent  bool                `json:"idempotent"`
	Deadline    *millis             `json:"deadline_ms"`
	CancelAfter *millis             `json:"cancel_after_ms"`
	Start       millis              `json:"start_ms"`
	After       *string             `json:"after"`
	Fleet       bool                `json:"fleet"`
}

// info tells of the run; calls and all that a test needs to make them are left out where they are not asked for.
func (r *run) info(whole bool) runInfo {
	h := r.stage.History()
	r.mu.Lock()
	defer r.mu.Unlock()
	state := "open"
	if r.ended {
		state = "ended"
	}
	i := runInfo{ID: r.id, Scenario: r.scenario.Name, Summary: r.scenario.Summary, Rule: r.scenario.Rule, Seed: r.seed, State: state,
		Created: r.created, Expires: r.expires, BaseURL: r.base, Effects: len(h.Effects), Missing: r.missing()}
	for _, c := range h.Calls {
		i.Attempts += len(c.Attempts)
	}
	if !whole {
		return i
	}
	i.Needs, i.CA, i.Exact = needs(r.scenario), string(r.stage.CA()), r.exact
	if r.client != (declared{}) {
		i.Client = &r.client
	}
	if r.scenario.Connection == faults.Reused {
		i.WarmURL = r.base + harness.WarmPath
	}
	if r.scenario.Server.Token != scenarios.TokenNone {
		i.TokenURL = r.base + harness.TokenPath
	}
	for _, c := range r.stage.Calls() {
		i.Calls = append(i.Calls, r.call(c))
	}
	return i
}

func (r *run) call(c harness.StagedCall) callInfo {
	text := func(s string) *string {
		if s == "" {
			return nil
		}
		return &s
	}
	positive := func(d time.Duration) *millis {
		if d <= 0 {
			return nil
		}
		m := inMillis(d)
		return &m
	}
	i := callInfo{ID: c.ID, Group: c.Group.Name, Method: c.Method, Path: c.URL, URL: r.base + c.URL, Headers: c.WireHeader(),
		Key: text(c.Key), KeyHonoured: c.KeyHonoured, Idempotent: c.Idempotent, Deadline: positive(c.Group.Deadline),
		CancelAfter: positive(c.Group.CancelAfter), Start: inMillis(c.Offset.Truncate(time.Millisecond)), After: text(c.Group.After), Fleet: c.Group.Fleet}
	if c.Body != nil {
		i.Body = text(string(c.Body))
	}
	return i
}

// missing lists the calls without an outcome, in their order. Callers hold mu.
func (r *run) missing() []string {
	out := []string{}
	for _, c := range r.stage.Calls() {
		if _, ok := r.told[c.ID]; !ok {
			out = append(out, c.ID)
		}
	}
	return out
}

// A need is something that a scenario asks of the test beside making its calls.
type need struct {
	Code string `json:"code"`
	Text string `json:"text"`
}

// Codes of needs.
const (
	needHTTP2    = "http2"
	needTrust    = "trust_ca"
	needToken    = "token"
	needWarm     = "warm_connection"
	needCancel   = "cancel"
	needDeadline = "deadline"
	needTimes    = "times"
	needFleet    = "fleet"
	needKey      = "key"
)

// needs lists what the scenario asks of a test.
func needs(s scenarios.Scenario) []need {
	var list []need
	add := func(yes bool, code, text string) {
		if yes {
			list = append(list, need{code, text})
		}
	}
	any := func(f func(g scenarios.Group) bool) bool {
		for _, g := range s.Calls {
			if f(g) {
				return true
			}
		}
		return false
	}
	add(s.Server.Protocol == faults.HTTP2, needHTTP2, "the server speaks HTTP/2 without TLS, by prior knowledge")
	add(s.Server.TLS, needTrust, "the server speaks TLS: let the client trust the authority in ca")
	add(s.Server.Token != scenarios.TokenNone, needToken, "calls carry a token that has expired: a POST to token_url gives another, {\"token\": …}, to be sent as Authorization: Bearer …")
	add(s.Connection == faults.Reused, needWarm, "GET warm_url once with the connections that the calls will use, before the first call")
	add(any(func(g scenarios.Group) bool { return g.Key }), needKey, "the application wants idempotency keys: give the client the call's key, or let it make one")
	add(any(func(g scenarios.Group) bool { return g.CancelAfter > 0 }), needCancel, "cancel calls when cancel_after_ms have passed since their start, and report cancelled_ms")
	add(s.Rule == ruleDeadline, needDeadline, "give calls their deadline_ms, and report it with the outcome")
	add(any(func(g scenarios.Group) bool { return g.Count > 1 || g.Start > 0 || g.After != "" }) || timed(s), needTimes,
		"start calls side by side, start_ms after the run was made or, with after, after the last call of that group was over")
	add(any(func(g scenarios.Group) bool { return g.Fleet }), needFleet, "make each call with a client instance, and connections, of its own")
	return list
}

// timed reports whether what happens depends on when calls are made.
func timed(s scenarios.Scenario) bool { return len(s.Storms) > 0 || s.Server.Capacity != nil }

// A scenarioInfo is a scenario of the library in a list.
type scenarioInfo struct {
	Name     string `json:"name"`
	Rule     string `json:"rule"`
	Source   string `json:"source"`
	Summary  string `json:"summary"`
	Servable bool   `json:"servable"`
	Why      string `json:"why,omitempty"` // not servable
	Needs    []need `json:"needs,omitempty"`
}

// list makes the library, or the part of it whose names match.
func (h *Handler) list(patterns []string, servable string) ([]scenarioInfo, error) {
	all, err := scenarios.Library()
	if err != nil {
		return nil, err
	}
	if all, err = scenarios.Match(all, patterns...); err != nil {
		return nil, badRequest.because("match: %v", err)
	}
	want, err := strconv.ParseBool(cmp.Or(servable, "false"))
	if err != nil {
		return nil, badRequest.because("servable is %q: it is true or false", clip(servable))
	}
	out := []scenarioInfo{}
	for _, s := range all {
		i := scenarioInfo{Name: s.Name, Rule: s.Rule, Source: s.Source, Summary: s.Summary, Servable: true, Needs: needs(s)}
		if p := h.fit(s); p != nil {
			i.Servable, i.Why = false, p.detail
		}
		if servable == "" || i.Servable == want {
			out = append(out, i)
		}
	}
	return out, nil
}
