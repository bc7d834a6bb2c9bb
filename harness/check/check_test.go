package check

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/retrychaos/retrychaos/harness/history"
)

// The ids are stable: reports and diffs use them.
var ids = []string{
	"effects.once", "effects.no-phantom",
	"attempts.bounded", "attempts.permanent-once", "attempts.unsafe-not-repeated",
	"key.stable", "body.intact",
	"timing.retry-after", "timing.backoff-grows", "timing.spread", "timing.deadline", "timing.cancel",
	"error.last-real", "liveness.recovers", "load.amplification", "resources.released",
}

func TestAll(t *testing.T) {
	var got []string
	should := []string{"attempts.unsafe-not-repeated", "timing.retry-after", "timing.backoff-grows", "timing.spread", "error.last-real", "liveness.recovers", "load.amplification"}
	for _, c := range All() {
		got = append(got, c.ID)
		if c.Holds == "" || strings.HasSuffix(c.Holds, ".") || c.Judge == nil {
			t.Errorf("%s is incomplete", c.ID)
		}
		if (c.Level == Should) != slices.Contains(should, c.ID) || c.Level != Should && c.Level != Must {
			t.Errorf("%s has the level %s", c.ID, c.Level)
		}
		if d, ok := Lookup(c.ID); !ok || d.ID != c.ID {
			t.Errorf("Lookup(%q) finds %q", c.ID, d.ID)
		}
	}
	if !slices.Equal(got, ids) {
		t.Errorf("All is %v, want %v", got, ids)
	}
	if _, ok := Lookup("timing.nonsense"); ok {
		t.Error("Lookup finds what there is not")
	}
}

func TestLevels(t *testing.T) {
	if !Must.AtLeast(Should) || !Should.AtLeast(Should) || May.AtLeast(Should) || Level("").AtLeast(May) {
		t.Error("MUST binds more than SHOULD, and SHOULD more than MAY")
	}
}

func TestACrashIsUnknown(t *testing.T) {
	h := run(call("c1", try(0, "ok")))
	crash := Check{ID: "x.crash", Level: Must, Source: "none", Judge: func(*history.History) Verdict { panic("boom") }}
	silent := Check{ID: "x.silent", Level: May, Judge: func(*history.History) Verdict { return Verdict{} }}
	vs := Judge(h, []Check{crash, silent, effectsOnce})
	if vs[0].Status != Unknown || !strings.Contains(vs[0].Reason, "boom") || len(vs[0].Evidence) == 0 || vs[0].Source != "none" {
		t.Errorf("a crash: %+v", vs[0])
	}
	if vs[1].Status != Unknown || vs[1].Reason == "" || vs[1].Level != May {
		t.Errorf("no verdict: %+v", vs[1])
	}
	if vs[2].Status != Pass {
		t.Errorf("the next check is judged all the same: %+v", vs[2])
	}
}

func TestADamagedHistoryIsUnknown(t *testing.T) {
	hole := run(call("c1", try(0, "ok")))
	hole.Calls[0].Attempts = append(hole.Calls[0].Attempts, nil)
	for name, h := range map[string]*history.History{
		"nil":        nil,
		"no calls":   {},
		"empty call": {Calls: []*history.Call{nil}},
		"no id":      {Calls: []*history.Call{{}}},
		"twice":      {Calls: []*history.Call{{ID: "a"}, {ID: "a"}}},
		"hole":       hole,
	} {
		for _, v := range Judge(h, All()) {
			if v.Status != Unknown || v.Reason == "" || strings.Contains(v.Reason, "crashed") {
				t.Errorf("%s: %s is %s: %s", name, v.Check, v.Status, v.Reason)
			}
		}
	}
}

func TestAFaultOfTheHarnessIsNotTheClients(t *testing.T) {
	twice := func(id string) *history.Call { return call(id, try(0, "connection_reset+"), try(s, "ok")) }
	for _, x := range []struct {
		name  string
		finds []history.Finding
		want  Status
	}{
		{"none", nil, Fail},
		{"general", []history.Finding{{Kind: history.FindingHarness, Text: "lost its journal"}}, Unknown},
		{"in one of the calls", []history.Finding{{Kind: history.FindingHarness, Call: "c1"}}, Fail},
		{"in all of them", []history.Finding{{Kind: history.FindingHarness, Call: "c1"}, {Kind: history.FindingHarness, Call: "c2"}}, Unknown},
		{"of another kind", []history.Finding{{Kind: history.FindingUnclaimed}}, Fail},
	} {
		h := run(twice("c1"), twice("c2"))
		h.Findings = x.finds
		if v := effectsOnce.judge(h); v.Status != x.want || !strings.Contains(v.Reason, "had 2 effects") {
			t.Errorf("%s: %s: %s", x.name, v.Status, v.Reason)
		}
	}
}

// TestAGoodRunIsNeverFlagged puts a client that does all things right before every check.
func TestAGoodRunIsNeverFlagged(t *testing.T) {
	h := run(
		with(call("c1", try(0, "503"), try(s, "connection_reset+"), try(3*s, "ok")), keyed),
		call("c2", try(0, "connection_reset+")),
		call("c3", try(0, "400")),
		with(call("c4", try(0, "429", asks("2", 2*s)), try(2*s+ms, "ok")), method("PUT")),
		with(call("c5", try(0, "503")), ends(ms), cancelled(ms)),
	)
	// The repeat of c1 was answered from the store: one effect.
	h.Effects = slices.DeleteFunc(h.Effects, func(e history.Effect) bool { return e.Call == "c1" && e.Attempt == 3 })
	for _, v := range Judge(declares(h, history.Declared{MaxAttempts: 4}), All()) {
		if v.Status == Fail || v.Status == Unknown {
			t.Errorf("%s: %s: %s", v.Check, v.Status, v.Reason)
		}
	}
}

var words = []string{"ok", "200", "204", "307", "400", "401", "409", "413", "421", "429", "500", "503", "connection_reset",
	"empty_response", "hang", "truncated_body", "malformed_json"}

// drawHistory draws a valid history, however absurd.
func drawHistory(t *rapid.T) *history.History {
	instant := rapid.OneOf(rapid.Int64Range(0, int64(40*s)), rapid.Int64Range(-5, 1<<62))
	at := func(name string) time.Duration { return time.Duration(instant.Draw(t, name)) }
	flip := rapid.Bool()
	var calls []*history.Call
	for i := range rapid.IntRange(0, 30).Draw(t, "calls") {
		var attempts []*history.Attempt
		for range rapid.IntRange(0, 5).Draw(t, "attempts") {
			a := try(at("at"), rapid.SampledFrom(words).Draw(t, "fault"))
			a.Ended = at("ended")
			a.Hidden, a.Reused, a.BodyBroken, a.Delivered = flip.Draw(t, "hidden"), flip.Draw(t, "reused"), flip.Draw(t, "broken"), flip.Draw(t, "delivered")
			a.Key = rapid.SampledFrom([]string{"", "k", "l"}).Draw(t, "key")
			if flip.Draw(t, "asks") {
				a.RetryAfter, a.NotBefore = []string{"1"}, at("not before")
			}
			attempts = append(attempts, a)
		}
		c := call("c"+string(rune('a'+i)), attempts...)
		c.Method = rapid.SampledFrom([]string{"POST", "GET", "PUT", "FROB"}).Draw(t, "method")
		c.Started, c.Ended, c.Deadline, c.CancelAt = at("started"), at("ended"), at("deadline"), at("cancel")
		c.Returned, c.Keyed, c.KeyHonoured, c.Endless = flip.Draw(t, "returned"), flip.Draw(t, "keyed"), flip.Draw(t, "honoured"), flip.Draw(t, "endless")
		c.Outcome.OK = flip.Draw(t, "ok")
		for range rapid.IntRange(0, 5).Draw(t, "trips") {
			c.Trips = append(c.Trips, history.Trip{Started: at("trip"), Ended: at("trip end"), Status: rapid.IntRange(0, 599).Draw(t, "status")})
		}
		calls = append(calls, c)
	}
	h := run(calls...)
	h.Grain = time.Duration(rapid.Int64Range(0, int64(s)).Draw(t, "grain"))
	h.Leaks.Known = flip.Draw(t, "known")
	h.Declared = history.Declared{
		MaxAttempts: rapid.IntRange(0, 5).Draw(t, "max"),
		Jitter: rapid.SampledFrom([]history.Jitter{history.JitterUndeclared, history.JitterNone, history.JitterFull, history.JitterEqual,
			history.JitterDecorrelated, history.JitterAdditive, history.JitterProportional}).Draw(t, "jitter"),
		JitterWidth: at("width"), JitterRatio: rapid.Float64Range(-1, 3).Draw(t, "ratio"),
		BaseDelay: at("base"), Multiplier: rapid.Float64Range(-1, 1e9).Draw(t, "multiplier"), MaxDelay: at("max delay"),
		MaxRetryAfter: at("max retry-after"), CapsRetryAfter: flip.Draw(t, "caps"), Process: flip.Draw(t, "process"),
	}
	return h
}

// TestNoCheckPanics: on no history does a check crash, leave out its reason or change what it judges; and a
// stored history is judged as the one that was stored.
func TestNoCheckPanics(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := drawHistory(t)
		before, err := json.Marshal(h)
		if err != nil {
			t.Fatal(err)
		}
		verdicts := Judge(h, All())
		for _, v := range verdicts {
			if strings.Contains(v.Reason, "crashed") || v.Reason == "" {
				t.Fatalf("%s: %s\n%s", v.Check, v.Reason, strings.Join(v.Evidence, "\n"))
			}
		}
		if after, _ := json.Marshal(h); string(after) != string(before) {
			t.Fatal("a check has changed the history")
		}
		var stored history.History
		if err := json.Unmarshal(before, &stored); err != nil {
			t.Fatal(err)
		}
		if again := Judge(&stored, All()); !reflect.DeepEqual(again, verdicts) {
			t.Fatalf("the stored history is judged otherwise:\n%v\n%v", again, verdicts)
		}
		for _, c := range h.Calls {
			if lines := h.Timeline(c); len(lines) < 2+len(c.Attempts) {
				t.Fatalf("%d lines for %d attempts", len(lines), len(c.Attempts))
			}
		}
	})
}

// FuzzJudge feeds stored histories that nobody stored.
func FuzzJudge(f *testing.F) {
	for _, h := range []*history.History{
		run(call("c1", try(0, "503"), try(s, "ok"))),
		run(with(call("c1", try(0, "429", asks("x", 0)), try(0, "429")), keyed, givenUp)),
	} {
		b, err := json.Marshal(h)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Add([]byte(`{"calls":[null,{"id":"a","attempts":[null]}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h history.History
		if json.Unmarshal(b, &h) != nil {
			return
		}
		for _, v := range Judge(&h, All()) {
			if strings.Contains(v.Reason, "crashed") {
				t.Errorf("%s: %s\n%s", v.Check, v.Reason, strings.Join(v.Evidence, "\n"))
			}
		}
	})
}
