package history

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

// sample is a history in which every field is set.
func sample() *History {
	return &History{
		Scenario: "duplicates/reset", Client: "client", World: "virtual", Seed: 1<<64 - 1, Grain: ms, Lateness: ms, KeyMode: "honour",
		Start: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), End: 9 * s, AttemptCap: 100, Refreshes: 2, KeyExpiry: 24 * time.Hour,
		Declared: Declared{MaxAttempts: 4, Jitter: JitterProportional, JitterWidth: s, JitterRatio: 0.4, BaseDelay: s, Multiplier: 2,
			MaxDelay: 30 * s, MaxRetryAfter: 60 * s, CapsRetryAfter: true, CanBeTold: true, Process: true, Remote: true},
		Calls: []*Call{{
			ID: "c1", Group: "calls", Method: "POST", Path: "/charges/c1", Resource: "/charges/c1", Keyed: true, KeyHonoured: true,
			Fleet: true, BodyHash: "h", BodyLen: 7, Started: 1, Ended: 8 * s, Returned: true, Deadline: 30 * s, CancelAt: 8 * s, Capped: true,
			Planned: []string{"429 retry-after=2", "connection_reset@after_commit"}, Endless: true,
			Outcome: Outcome{OK: true, Status: 200, Error: "late", Traits: []string{TraitReset, TraitEOF}, Attempts: 3, Panic: "p"}, KeyText: "t", MayRepeat: true, Stream: true,
			Attempts: []*Attempt{
				{N: 1, At: 1, Ended: 1, Conn: 1, Method: "POST", Key: "k", BodyHash: "h", BodyLen: 7, Fault: "429 retry-after=2",
					FaultName: "status", Category: "status", Delivered: true, Status: 429, RetryAfter: []string{"2"}, NotBefore: 2 * s},
				{N: 2, At: 1 * s, Ended: 1 * s, Conn: 1, Reused: true, Peer: "p:1", Method: "POST", Key: "k", BodyBroken: true, BodyLen: 3,
					HeaderDiff: []string{"Accept"}, Fault: "connection_reset@after_commit", FaultName: "connection_reset", Phase: "after_commit",
					Category: "transport", Effect: 1, InFlight: true, Closed: true},
				{N: 3, At: 4 * s, Ended: 5 * s, Conn: 2, Hidden: true, Method: "POST", Fault: "ok", Delivered: true, Status: 200, Replayed: true, Stored: true,
					Work: &Work{Ahead: 2, Began: 4 * s, Done: 5 * s, Wasted: true, Shed: "full"}},
			},
			Trips: []Trip{{Started: 1, Ended: 2, Peers: []string{"p:1"}, Status: 429, Error: "e", BodyEOF: true, Closed: true}},
		}},
		Effects:  []Effect{{N: 1, At: 6 * s, Call: "c1", Attempt: 2, Method: "POST", Resource: "/charges/c1", Key: "k", Conn: 1, Value: "v", Late: true}},
		Faults:   []Account{{Fault: "429", Planned: -1, Claimed: 1, Delivered: 1}},
		Findings: []Finding{{Kind: FindingHarness, Text: "t", Call: "c1"}},
		Capacity: &Capacity{Workers: 10, Service: s, Queue: 7}, Triggers: []Trigger{{From: s, To: 2 * s, What: "stall"}},
		Leaks: Leaks{Conns: 1, Bodies: 2, Goroutines: []string{"g"}, Known: true},
	}
}

func TestRoundTrip(t *testing.T) {
	h := sample()
	for v, i := reflect.ValueOf(*h), 0; i < v.NumField(); i++ {
		if v.Field(i).IsZero() {
			t.Errorf("the sample leaves %s out", v.Type().Field(i).Name)
		}
	}
	b, err := json.Marshal(h)
	if err != nil {
		t.Fatal(err)
	}
	var back History
	d := json.NewDecoder(strings.NewReader(string(b)))
	d.DisallowUnknownFields()
	if err := d.Decode(&back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(h, &back) {
		t.Errorf("JSON loses something:\n%+v\n%+v", h, &back)
	}
	if err := back.Validate(); err != nil {
		t.Error(err)
	}
}

func TestQueries(t *testing.T) {
	h := sample()
	c := h.Call("c1")
	if c == nil || h.Call("c2") != nil || h.Recorded() != h {
		t.Fatal("call lookup")
	}
	if c.HiddenAttempts() != 1 || c.Last().N != 3 || c.Attempt(2).N != 2 || c.Attempt(9) != nil || (&Call{}).Last() != nil {
		t.Error("attempt lookup")
	}
	if !c.Cancelled() || (&Call{CancelAt: 5, Ended: 4, Returned: true}).Cancelled() || (&Call{Ended: 4}).Cancelled() {
		t.Error("Cancelled: at or after the instant, where there is one")
	}
	if got := h.EffectsByCall()["c1"]; len(got) != 1 || got[0].N != 1 {
		t.Error("effects by call")
	}
	if got := c.LastActivity(); got != 5*s {
		t.Errorf("last activity %s", got)
	}
	c.Trips = append(c.Trips, Trip{Started: 6 * s})
	if got := c.LastActivity(); got != c.Ended {
		t.Errorf("a trip that is under way is activity: %s", got)
	}
	if h.Instant(s).Second() != 1 {
		t.Error("Instant")
	}
}

func TestGaps(t *testing.T) {
	status := func(at, ended time.Duration) *Attempt {
		return &Attempt{At: at, Ended: ended, Status: 503, Category: "status"}
	}
	one := func(a ...*Attempt) *Call { return &Call{Attempts: a} }
	if got := one(status(0, s), status(3*s, 3*s)).Gaps(); len(got) != 1 || got[0].Len != 2*s || got[0].K != 1 {
		t.Errorf("from the end of the failed attempt: %+v", got)
	}
	hid := one(status(0, 0), status(ms, ms), status(3*s, 3*s))
	hid.Attempts[1].Hidden = true
	if got := hid.Gaps(); len(got) != 1 || got[0].Len != 3*s-ms || got[0].Prev != hid.Attempts[1] {
		t.Errorf("hidden attempts end no gap: %+v", got)
	}
	late := one(status(0, 40*ms), status(30*ms, 30*ms)) // the server noticed the end of the first too late
	late.Trips = []Trip{{Ended: 10 * ms, Status: 503}, {Started: 30 * ms}}
	if got := late.Gaps(); got[0].Len != 20*ms || got[0].Overlap {
		t.Errorf("the client's own view is better: %+v", got)
	}
	hedge := one(status(0, 40*ms), status(30*ms, 30*ms))
	hedge.Trips = []Trip{{Ended: 40 * ms, Status: 503}, {Started: 30 * ms}}
	if got := hedge.Gaps(); !got[0].Overlap || got[0].Len != 0 {
		t.Errorf("a hedge: %+v", got)
	}
	cut := one(&Attempt{At: 0, Ended: 2 * s, Status: 200, Category: "transport"}, status(3*s, 3*s))
	cut.Trips = []Trip{{Ended: s, Status: 200}, {Started: 3 * s}}
	if got := cut.Gaps(); got[0].Len != s {
		t.Errorf("a body that breaks off ends later than its head: %+v", got)
	}
	for name, a := range map[string]*Attempt{
		"401": {Status: 401}, "421": {Status: 421}, "redirect": {Status: 307}, "stale": {Reused: true, FaultName: "connection_reset"},
	} {
		if got := one(a, status(s, s)).Gaps(); !got[0].Free {
			t.Errorf("%s needs no wait", name)
		}
	}
	if got := one(&Attempt{FaultName: "connection_reset"}, status(s, s)).Gaps(); got[0].Free {
		t.Error("a fresh connection cannot have gone stale")
	}
}

func TestTripOf(t *testing.T) {
	c := &Call{Attempts: []*Attempt{{N: 1}, {N: 2, Hidden: true}, {N: 3}}, Trips: []Trip{{Status: 1}, {Status: 2}}}
	for i, want := range []int{1, 1, 2} {
		if got := c.TripOf(c.Attempts[i]); got == nil || got.Status != want {
			t.Errorf("attempt %d: %+v", i+1, got)
		}
	}
	c.Trips = append(c.Trips, Trip{})
	if c.TripOf(c.Attempts[0]) != nil {
		t.Error("three trips cannot be matched with two attempts")
	}
}

func TestWaves(t *testing.T) {
	h := &History{}
	for i, asked := range []time.Duration{0, 0, 2 * s} {
		h.Calls = append(h.Calls, &Call{ID: string(rune('a' + i)), Group: "g", Attempts: []*Attempt{
			{At: 0, Status: 503, RetryAfter: []string{"x"}, NotBefore: asked}, {At: 3 * s, Ended: 3 * s}, {At: 5 * s},
		}})
	}
	h.Calls = append(h.Calls, &Call{ID: "z", Group: "other", Attempts: []*Attempt{{}, {At: s}}})
	var got []int
	for _, w := range h.Waves() {
		got = append(got, len(w.Gaps))
	}
	if !reflect.DeepEqual(got, []int{2, 1, 3, 1}) {
		t.Errorf("waves of %v calls", got)
	}
}

func TestDelays(t *testing.T) {
	d := Declared{BaseDelay: s, MaxDelay: 10 * s}
	for k, want := range map[int]time.Duration{0: 0, 1: s, 2: 2 * s, 4: 8 * s, 5: 10 * s, 5000: 10 * s} {
		if got := d.Delay(k); got != want {
			t.Errorf("delay %d is %s, want %s", k, got, want)
		}
	}
	if got := (Declared{BaseDelay: s}).Delay(5000); got <= 0 {
		t.Errorf("overflow: %s", got)
	}
	if (Declared{}).Delay(1) != 0 || (Declared{}).LongestDelay(1) != 0 {
		t.Error("undeclared is 0")
	}
	for jitter, want := range map[Jitter]time.Duration{JitterFull: 2 * s, JitterAdditive: 2*s + s/2, JitterProportional: 2*s + 400*ms, JitterDecorrelated: 9 * s} {
		d := Declared{Jitter: jitter, BaseDelay: s, JitterWidth: s / 2, JitterRatio: 0.4}
		if got := d.LongestDelay(2); got != want {
			t.Errorf("%s: %s, want %s", jitter, got, want)
		}
	}
}

func TestTimeline(t *testing.T) {
	h := sample()
	h.Calls[0].Attempts[2].Hidden = false
	var text []string
	for _, l := range h.Timeline(h.Calls[0]) {
		text = append(text, l.String())
	}
	want := []string{
		"call c1: POST /charges/c1, with a key that the server is known to honour, which may happen twice, with a body that can be read once, deadline after 30s",
		"attempt 1: connection 1 fresh, 429 retry-after=2, status 429, Retry-After: 2",
		"attempt 2: connection 1 reused, connection_reset@after_commit (not delivered), commits effect 1, no status",
		"; 1s after the failure, 1s before Retry-After allows",
		"attempt 3: connection 2 fresh, ok, status 200 replayed from the store, stored with its key, took 1s; 3s after the failure",
		"effect 1 of attempt 2 happens, after the client has gone",
		"the application cancels",
		"the client panics: p",
	}
	all := strings.Join(text, "\n")
	at := 0
	for _, w := range want {
		i := strings.Index(all[at:], w)
		if i < 0 {
			t.Fatalf("%q is missing or out of place in\n%s", w, all)
		}
		at += i
	}
	h.Calls[0].Attempts[1].At = 2 * s
	if l := h.Timeline(h.Calls[0])[2]; !strings.Contains(l.Text, "Retry-After obeyed") {
		t.Error(l)
	}
	h.Calls[0].Returned, h.Calls[0].Outcome.Panic = false, ""
	lines := h.Timeline(h.Calls[0])
	if l := lines[len(lines)-1]; l.Kind != LineDeadline {
		t.Errorf("the deadline is the last mark of a call that never returned: %v", lines)
	}
	if h.Timeline(nil) != nil {
		t.Error("no call has no timeline")
	}
}

func TestDur(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 1234: "1.234µs", 1234567: "1.23ms", 1234567890: "1.235s", 61234567890: "1m1.23s", -2 * s: "-2s"} {
		if got := Dur(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
}

// TestUnmet: a fault that the call never met is in the journal and in no count, no wait and no pair with a trip.
func TestUnmet(t *testing.T) {
	c := &Call{Method: "GET", Trips: []Trip{{Started: 0, Ended: s, Error: "x"}, {Started: 2 * s, Ended: 3 * s, Status: 200}}, Attempts: []*Attempt{
		{N: 1, At: 0, Ended: s, Fault: "connect_refused", FaultName: "connect_refused", Category: "transport", Connection: true, Unsent: true, Delivered: true},
		{N: 2, At: 2 * s, Ended: 9 * s, Conn: 2, Fault: "tls_handshake_hang", Category: "transport", Connection: true, Unsent: true, Unmet: true, Hidden: true, Delivered: true},
		{N: 3, At: 2 * s, Ended: 3 * s, Conn: 1, Reused: true, Fault: "ok", Delivered: true, Status: 200},
	}}
	h := &History{Grain: ms, Calls: []*Call{c}}
	if made := c.Made(); len(made) != 2 || made[0] != c.Attempts[0] || made[1] != c.Attempts[2] || len(c.Attempts) != 3 {
		t.Errorf("made %+v", made)
	}
	if c.HiddenAttempts() != 0 || c.Last() != c.Attempts[2] || c.TripOf(c.Attempts[0]) != &c.Trips[0] || c.TripOf(c.Attempts[2]) != &c.Trips[1] || c.TripOf(c.Attempts[1]) != nil {
		t.Error("the pairs of attempts and trips are wrong")
	}
	if g := c.Gaps(); len(g) != 1 || g[0].Prev != c.Attempts[0] || g[0].Next != c.Attempts[2] || g[0].Len != s {
		t.Errorf("gaps %+v", g)
	}
	var text []string
	for _, l := range h.Timeline(c) {
		text = append(text, l.Text)
	}
	for _, want := range []string{
		"attempt 1: no connection, connect_refused, nothing sent, no status, took 1s",
		"attempt 2: connection 2 fresh, resent by net/http, tls_handshake_hang (not met: the call was given another connection), no status, took 7s",
		"attempt 3: connection 1 reused, ok, status 200, took 1s; 1s after the failure",
	} {
		if !strings.Contains(strings.Join(text, "\n"), want) {
			t.Errorf("no %q in\n%s", want, strings.Join(text, "\n"))
		}
	}
	if len((&Call{}).Made()) != 0 || (&Call{Attempts: c.Attempts[1:2]}).Last() != nil {
		t.Error("a call that made nothing has a last attempt")
	}
}
