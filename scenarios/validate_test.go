package scenarios

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/retrychaos/retrychaos/faults"
)

func literal() Scenario {
	return Scenario{
		Name: "mine/lost-answer", Summary: "The answer is lost.", Rule: "effects.once", Source: "RFC 9110 §9.2.2",
		Calls:  []Group{{Key: true, Header: http.Header{"X-A": {"b"}}}},
		Faults: []faults.Fault{{Name: "connection_reset", Phase: faults.AfterCommit}, {}},
	}
}

func TestValidateLiteral(t *testing.T) {
	in := literal()
	s, err := Validate(in)
	if err != nil {
		t.Fatal(err)
	}
	if s.Calls[0].Deadline != DefaultDeadline || s.Server.Keys != Honour || s.Faults[1].Name != faults.OK {
		t.Errorf("got %+v", s)
	}
	if !reflect.DeepEqual(in, literal()) {
		t.Error("Validate changed what it was given")
	}
	s.Calls[0].Header.Set("X-A", "changed")
	s.Faults[0].Name = "changed"
	if !reflect.DeepEqual(in, literal()) {
		t.Error("the validated scenario shares memory with the literal")
	}
	again, err := Validate(in)
	if err != nil {
		t.Fatal(err)
	}
	twice, err := Validate(again)
	if err != nil || !reflect.DeepEqual(again, twice) {
		t.Errorf("validating twice changes it: %v", err)
	}
}

var one = Capacity{Workers: 1, Service: time.Second}

func capacity(c Capacity, list ...Incident) func(*Scenario) {
	return func(s *Scenario) { s.Server.Capacity, s.Server.Incidents = &c, list }
}

func TestValidateRefusesLiterals(t *testing.T) {
	for _, c := range []struct {
		change func(s *Scenario)
		want   string
	}{
		{func(s *Scenario) { s.Faults[0].Name = "hnag" }, `scenario mine/lost-answer, faults[0]: unknown fault "hnag"`},
		{func(s *Scenario) { s.Faults[0].Variant = "html" }, "faults[0]: "},
		{func(s *Scenario) { s.Rule = "effects.onec" }, `rule: unknown rule "effects.onec"`},
		{func(s *Scenario) { s.Name = "" }, "scenario (no name), name: there is no name"},
		{func(s *Scenario) { s.Calls[0].Count = -1 }, "calls[0].count: a count of -1 makes no call"},
		{func(s *Scenario) { s.Calls[0].Deadline = -2 }, "calls[0].deadline: the duration -2ns is negative"},
		{func(s *Scenario) { s.Calls[0].Body = "\xff" }, "calls[0].body: the body is no UTF-8"},
		{func(s *Scenario) { s.Calls[0].Header = http.Header{"x-a": {"b"}} }, `the header field "x-a" is not in canonical form; did you mean "X-A"?`},
		{func(s *Scenario) { s.Calls = append(s.Calls, Group{Name: "calls"}) }, "calls[1].name: two groups have the name calls"},
		{func(s *Scenario) { s.Worlds = []World{"mars"}; s.Why = "w" }, `unknown world "mars"`},
		{func(s *Scenario) { s.Server.Keys = "maybe" }, `server.keys: unknown key mode "maybe"`},
		{func(s *Scenario) { s.Server.Profile = "strip" }, `server.profile: unknown profile "strip"; want plain, ietf or stripe; did you mean "stripe"?`},
		{func(s *Scenario) { s.Server.Expiry = -time.Second }, "server.expiry: the duration -1s is negative"},
		{func(s *Scenario) { s.Server.Keys, s.Server.Profile = Ignore, IETF }, "server.profile: the server ignores keys"},
		{func(s *Scenario) { s.Calls[0].KeyText, s.Calls[0].Key = "a", false }, "calls[0].key_text: key_text is the text of a key"},
		{func(s *Scenario) {
			s.Calls[0].Key, s.Faults[0] = false, faults.Fault{Name: "status", Status: 500, Stored: true}
		}, "faults[0]: stored=true says that the answer is kept"},
		{func(s *Scenario) {
			s.Storms = []faults.Storm{{To: time.Second, Fault: faults.Fault{Name: "status", Status: 500, Stored: true}}}
			s.Server.Keys = Ignore
		}, "storms[0].fault: stored=true says that the answer is kept"},
		{func(s *Scenario) { s.Draw = &faults.Draw{P: 1, Faults: []faults.Fault{{Name: "tls_bad_certificate"}}} }, "draw.faults[0]: "},
		{func(s *Scenario) {
			s.Storms = []faults.Storm{{To: 1, Fault: faults.Fault{Name: "tls_handshake_failure"}}}
		}, "storms[0].fault: "},
		{func(s *Scenario) { s.Calls[0].Faults = []faults.Fault{{Name: "tls_version_refused"}} }, "calls[0].faults[0]: "},
		{func(s *Scenario) { s.Connection = "new" }, `connection: unknown connection "new"`},
		{func(s *Scenario) { s.Draw = &faults.Draw{P: 0.5} }, "draw.faults: a draw needs faults to draw from"},
		{func(s *Scenario) { s.Expect.Trait = "sadness" }, `expect.error: unknown trait "sadness"`},
		{func(s *Scenario) { n := -1; s.Expect.MinAttempts = &n }, "expect.attempts: a negative number of attempts"},
		{func(s *Scenario) { s.Settle = 2 * time.Hour }, "settle: 2h is more than 1h"},
		{func(s *Scenario) { s.Calls[0].Deadline, s.Faults[0] = NoDeadline, faults.Fault{Name: "hang"} }, "the call can never finish"},
		{func(s *Scenario) { s.Calls[0].Count, s.Calls[0].Every = 1000, time.Hour }, "the last would start after more than 24h"},
		{func(s *Scenario) { s.Server.Incidents = []Incident{{For: 1, Do: Stall}} }, "server.incidents: incidents happen to a server that has a capacity"},
		{capacity(Capacity{Service: time.Second}), "server.capacity.workers: 0 workers do no work"},
		{capacity(Capacity{Workers: 1e6, Service: time.Second}), "1000000 workers are more than 100000"},
		{func(s *Scenario) { capacity(one)(s); s.Server.Protocol = faults.HTTP2 }, "server.capacity: a server with a capacity speaks http/1.1"},
		{capacity(Capacity{Workers: 1}), "server.capacity.service: there is no service time"},
		{capacity(Capacity{Workers: 1, Service: -1}), "server.capacity.service: the duration -1ns is negative"},
		{capacity(Capacity{Workers: 1, Service: 1, Queue: -1}), "server.capacity.queue: a queue of -1"},
		{capacity(Capacity{Workers: 1, Service: 1, Distribution: "exponental"}), `unknown distribution "exponental"; want fixed, exponential or lognormal; did you mean "exponential"?`},
		{capacity(Capacity{Workers: 1, Service: 1, Full: "drpo"}), `server.capacity.full: unknown overflow "drpo"; want 503, 429, refuse or drop; did you mean "drop"?`},
		{capacity(one, Incident{For: 1, Do: "stal"}), `server.incidents[0].do: unknown trigger "stal"; want stall, slow, refuse, burst or restart; did you mean "stall"?`},
		{capacity(one, Incident{Do: Stall}), "server.incidents[0].for: stall for no time is nothing"},
		{capacity(one, Incident{For: 1, Do: Slow, Factor: 1}), "server.incidents[0].factor: a factor of 1"},
		{capacity(one, Incident{For: 1, Do: Stall, Factor: 2}), "server.incidents[0].factor: stall has no factor"},
		{capacity(one, Incident{Do: Burst}), "server.incidents[0].count: a burst of 0 attempts"},
		{capacity(one, Incident{For: 1, Do: Restart, Factor: 2}), "server.incidents[0].count: a cache that is warm after 0 attempts"},
		{capacity(one, Incident{For: 1, Do: Refuse, Count: 2}), "server.incidents[0].count: refuse has no count"},
		{capacity(one, Incident{For: 2 * time.Second, Do: Stall}, Incident{At: time.Second, For: 1, Do: Stall}), "server.incidents[1].at: this stall overlaps that of server.incidents[0]"},
		{func(s *Scenario) { s.Calls[0].Arrivals = "poison" }, `unknown kind of arrivals "poison"; want even or poisson; did you mean "poisson"?`},
		{func(s *Scenario) { s.Calls[0].Arrivals = Poisson }, "calls[0].arrivals: poisson needs the mean distance"},
		{func(s *Scenario) {
			capacity(Capacity{Workers: 1, Service: 1, Full: FullDrop})(s)
			s.Calls[0].Deadline = NoDeadline
		}, "the call can never finish: it has neither deadline nor cancel_after, and a server with a full queue drops"},
	} {
		s := literal()
		c.change(&s)
		_, err := Validate(s)
		var ie *InvalidError
		if !errors.As(err, &ie) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
		if _, err := Format(s); err == nil {
			t.Errorf("Format wrote what is not valid: %s", c.want)
		}
	}
}

// Whatever a Go literal says, YAML can say: a valid scenario comes back equal.
func TestFormatSaysAllThatALiteralSays(t *testing.T) {
	texts := rapid.StringOfN(rapid.RuneFrom([]rune("aZ 09:#-?*&!|>'\"%@`{}[],~\\\n\té世🙂\u0085\u2028\u2029\r\ufeff\x01")), 1, 30, -1)
	sequence := rapid.SliceOfN(rapid.SampledFrom([]string{"ok", "503", "hang@commit_late late=2s", `500 body="a\n\"b" times=3`,
		`429 retry-after=imf+5s header="X-A: b"`, "malformed_json variant=html", "latency delay=20ms on=reused"}), 0, 4)
	times := rapid.Custom(func(t *rapid.T) time.Duration {
		return time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(t, "t"))
	})
	parse := func(t *rapid.T, list []string) []faults.Fault {
		var out []faults.Fault
		for _, text := range list {
			f, err := faults.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, f)
		}
		return out
	}
	rapid.Check(t, func(t *rapid.T) {
		number := func(name string) *int {
			return rapid.Ptr(rapid.IntRange(0, 3), true).Draw(t, name)
		}
		s := Scenario{
			Name: "a/b-1", Summary: "x" + texts.Draw(t, "summary"), Source: texts.Draw(t, "source") + "x", Rule: "key.stable",
			Labels: rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"null", "true", "12", "core"}), 0, 3, rapid.ID[string]).Draw(t, "labels"),
			Worlds: []World{Virtual}, Why: "w" + texts.Draw(t, "why"),
			Settle: times.Draw(t, "settle"), Faults: parse(t, sequence.Draw(t, "faults")),
			Server:     rapid.SampledFrom([]Server{{}, {Keys: Honour}, {Keys: Ignore}, {Keys: Require, Profile: Plain}, {Profile: IETF}, {Profile: Stripe, Expiry: 30 * 24 * time.Hour}}).Draw(t, "server"),
			Connection: rapid.SampledFrom([]faults.ConnState{"", faults.Fresh, faults.Reused}).Draw(t, "connection"),
			Expect:     Expect{MinAttempts: number("attempts"), MaxEffects: number("effects"), OK: rapid.Ptr(rapid.Bool(), true).Draw(t, "ok")},
		}
		if rapid.Bool().Draw(t, "storm") {
			s.Storms = []faults.Storm{{From: times.Draw(t, "from"), To: time.Hour, Fault: faults.Fault{Name: "connection_reset"}}}
		}
		if rapid.Bool().Draw(t, "capacity") {
			s.Server.Capacity = &Capacity{
				Workers: rapid.IntRange(1, 9).Draw(t, "workers"), Service: time.Second + times.Draw(t, "service"),
				Queue: rapid.IntRange(0, 9).Draw(t, "queue"), Abandon: rapid.Bool().Draw(t, "abandon"),
				Distribution: rapid.SampledFrom([]Distribution{"", Fixed, Exponential, LogNormal}).Draw(t, "distribution"),
				Full:         rapid.SampledFrom([]Overflow{"", Full503, Full429, FullRefuse, FullDrop}).Draw(t, "full"),
			}
			s.Server.Incidents = rapid.SampledFrom([][]Incident{nil, {{At: time.Second, For: time.Second, Do: Stall}},
				{{For: 1, Do: Slow, Factor: 1.5}, {Do: Burst, Count: 7}, {At: time.Minute, For: 5, Do: Restart, Factor: 3, Count: 2}}}).Draw(t, "incidents")
		}
		if rapid.Bool().Draw(t, "draw") {
			s.Draw = &faults.Draw{P: rapid.Float64Range(1e-9, 1).Draw(t, "p"), Faults: []faults.Fault{{Name: "status", Status: 503}}}
		}
		for i := range rapid.IntRange(0, 3).Draw(t, "groups") {
			g := Group{
				Method: rapid.SampledFrom([]string{"", "GET", "PUT", "QUERY"}).Draw(t, "method"), Body: texts.Draw(t, "body"),
				Count: rapid.IntRange(0, 9).Draw(t, "count"), Key: rapid.Bool().Draw(t, "key"), Start: times.Draw(t, "start"),
				Deadline: time.Hour + times.Draw(t, "deadline"), CancelAfter: times.Draw(t, "cancel"),
				Header: rapid.SampledFrom([]http.Header{nil, {}, {"X-A": {"b", ""}}, {"X-N": {"null"}, "X-B": {}}}).Draw(t, "header"),
				Faults: parse(t, sequence.Draw(t, "own")),
			}
			if rapid.Bool().Draw(t, "poisson") {
				g.Every, g.Arrivals = time.Second+times.Draw(t, "every"), Poisson
			}
			if i > 0 && g.Key {
				g.After, g.KeyText = "calls", "order \"7\"-{call}"
			}
			g.Idempotent = rapid.Bool().Draw(t, "idempotent")
			s.Calls = append(s.Calls, g)
		}
		want, err := Validate(s)
		if err != nil {
			t.Fatalf("not valid: %v", err)
		}
		text, err := Format(s)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Load("x.yaml", text)
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		back[0].Origin = ""
		if !reflect.DeepEqual(back[0], want) {
			t.Fatalf("came back changed:\n%s\ngot  %+v\nwant %+v", text, back[0], want)
		}
	})
}
