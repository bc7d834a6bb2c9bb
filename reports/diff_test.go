package reports

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
)

// ran is a result of one call with those waits between its attempts, all but the last of which are answered 503.
func ran(scenario string, waits ...time.Duration) harness.Result {
	r := result("example", scenario)
	c := &history.Call{ID: "c1", Group: "calls", Method: "PUT", Returned: true, Outcome: history.Outcome{OK: true, Status: 200}}
	at := time.Duration(0)
	for i := range len(waits) + 1 {
		a := &history.Attempt{N: i + 1, At: at, Ended: at + ms, Conn: 1, Fault: "503", FaultName: "status", Category: "status", Status: 503, Delivered: true}
		if i == len(waits) {
			a.Fault, a.FaultName, a.Category, a.Status = "ok", "", "none", 200
		} else {
			at = a.Ended + waits[i]
		}
		c.Attempts = append(c.Attempts, a)
	}
	c.Ended = at + ms
	r.History = &history.History{Scenario: scenario, Client: "example", World: "virtual", Grain: ms, End: c.Ended, Calls: []*history.Call{c},
		Effects: []history.Effect{{N: 1, Call: "c1", Attempt: len(c.Attempts)}}}
	return r
}

func made(list ...harness.Result) *Report {
	return fixed(Run{Clients: []ClientInfo{{Name: "example"}}}, list)
}

func verdict(s check.Status, l check.Level) check.Verdict {
	return check.Verdict{Check: "effects.once", Status: s, Level: l, Reason: "because"}
}

func judged(r harness.Result, v check.Verdict) harness.Result {
	r.Verdicts = []check.Verdict{v, pass("key.stable")}
	r.Status = v.Status
	return r
}

// TestDiffKinds puts each pair of statuses where it belongs.
func TestDiffKinds(t *testing.T) {
	notRun := result("example", "f/a")
	notRun.Status, notRun.Verdicts, notRun.Reason = check.Skipped, nil, "the run was interrupted before it"
	v := func(s check.Status) harness.Result { return judged(result("example", "f/a"), verdict(s, check.Must)) }
	should := judged(result("example", "f/a"), verdict(check.Fail, check.Should))
	older := v(check.Fail)
	older.Verdicts = older.Verdicts[1:]
	older.Status = check.Pass
	accepted := v(check.Skipped)
	accepted.Verdicts[0].Known, accepted.Verdicts[0].Reason = true, "known to fail (as documented): because"
	faulty := v(check.Pass)
	faulty.Findings = []history.Finding{{Kind: history.FindingHarness, Text: "no listener"}}
	for _, c := range []struct {
		name     string
		old, new harness.Result
		want     string
		exits    [4]int // broken, unknown, changed, never
	}{
		{"same", v(check.Pass), v(check.Pass), "", [4]int{0, 0, 0, 0}},
		{"still fails", v(check.Fail), v(check.Fail), "", [4]int{0, 0, 0, 0}},
		{"pass to fail", v(check.Pass), v(check.Fail), "broken", [4]int{1, 1, 1, 0}},
		{"unknown to fail", v(check.Unknown), v(check.Fail), "broken", [4]int{1, 1, 1, 0}},
		{"skipped to fail", v(check.Skipped), v(check.Fail), "broken", [4]int{1, 1, 1, 0}},
		{"not run to fail", notRun, v(check.Fail), "broken", [4]int{1, 1, 1, 0}},
		{"fail to pass", v(check.Fail), v(check.Pass), "fixed", [4]int{0, 0, 1, 0}},
		{"fail to does not apply", v(check.Fail), v(check.Skipped), "fixed", [4]int{0, 0, 1, 0}},
		{"fail to not run", v(check.Fail), notRun, "newly_unknown", [4]int{3, 1, 1, 0}},
		{"pass to not run", v(check.Pass), notRun, "newly_unknown", [4]int{3, 1, 1, 0}},
		{"pass to unknown", v(check.Pass), v(check.Unknown), "newly_unknown", [4]int{3, 1, 1, 0}},
		{"fail to unknown", v(check.Fail), v(check.Unknown), "newly_unknown", [4]int{3, 1, 1, 0}},
		{"a fault of the harness", v(check.Pass), faulty, "newly_unknown", [4]int{3, 1, 1, 0}},
		{"no longer one", faulty, v(check.Pass), "no_longer_unknown", [4]int{0, 0, 1, 0}},
		{"unknown to pass", v(check.Unknown), v(check.Pass), "no_longer_unknown", [4]int{0, 0, 1, 0}},
		{"not run to pass", notRun, v(check.Pass), "no_longer_unknown", [4]int{0, 0, 1, 0}},
		{"a rule that is new", older, v(check.Fail), "newly_unknown", [4]int{3, 1, 1, 0}},
		{"fail to known", v(check.Fail), accepted, "changed", [4]int{0, 0, 1, 0}},
		{"pass to known", v(check.Pass), accepted, "changed", [4]int{0, 0, 1, 0}},
		{"known to fail", accepted, v(check.Fail), "changed", [4]int{0, 0, 1, 0}},
		{"known to pass", accepted, v(check.Pass), "fixed", [4]int{0, 0, 1, 0}},
		{"still known", accepted, accepted, "", [4]int{0, 0, 0, 0}},
		{"below the level", v(check.Pass), should, "changed", [4]int{0, 0, 1, 0}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Diff(made(c.old), made(c.new))
			var got []string
			for _, g := range d.Groups() {
				for _, ch := range g.Changes {
					got = append(got, g.Name)
					if ch.Old == nil || ch.New == nil || len(ch.Differences) == 0 {
						t.Errorf("a change without its results or words: %+v", ch)
					}
				}
			}
			if strings.Join(got, " ") != c.want || d.Same+len(got) != 1 {
				t.Errorf("groups %q and %d the same, want %q", got, d.Same, c.want)
			}
			for i, on := range []FailOn{FailOnBroken, FailOnUnknown, FailOnChanged, FailOnNever} {
				if code := d.ExitCode(on); code != c.exits[i] {
					t.Errorf("ExitCode(%s) = %d, want %d", on, code, c.exits[i])
				}
			}
		})
	}
}

func TestDiffMatches(t *testing.T) {
	old := fixed(Run{Clients: []ClientInfo{{Name: "resty2"}, {Name: "gone"}}},
		[]harness.Result{result("resty2", "f/a"), result("resty2", "f/removed"), result("gone", "f/a")})
	new := fixed(Run{Clients: []ClientInfo{{Name: "resty3"}, {Name: "fresh"}}},
		[]harness.Result{result("resty3", "f/a"), result("resty3", "f/added"), result("fresh", "f/a")})
	d := Compare(old, new, DiffOptions{Clients: []ClientPair{{"resty2", "resty3"}}})
	if len(d.Clients) != 1 || d.Clients[0].String() != "resty2 → resty3" || d.Same != 1 {
		t.Errorf("clients %v, %d the same", d.Clients, d.Same)
	}
	if len(d.Added) != 1 || d.Added[0].Scenario != "f/added" || d.Added[0].Old != nil || len(d.Removed) != 1 || d.Removed[0].New != nil {
		t.Errorf("added %+v, removed %+v", d.Added, d.Removed)
	}
	if !slices.Equal(d.OldOnly, []string{"gone"}) || !slices.Equal(d.NewOnly, []string{"fresh"}) {
		t.Errorf("only old %v, only new %v", d.OldOnly, d.NewOnly)
	}
	if code := d.ExitCode(FailOnBroken); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if d := Diff(old, new); len(d.Clients) != 0 || d.ExitCode(FailOnBroken) != ExitUndecided {
		t.Errorf("clients %v: nothing was compared, and that is no good end", d.Clients)
	}
	// By their seeds, where a scenario was run with several.
	a, b := result("example", "f/a"), judged(result("example", "f/a"), verdict(check.Fail, check.Must))
	b.Seed = 43
	if d := Diff(made(a, b), made(b, a)); !d.Empty() || d.Same != 2 {
		t.Errorf("results of two seeds are mixed up: %+v", d.Groups())
	}
	if d := Diff(made(b), made(result("example", "f/a"))); len(d.Fixed) != 1 {
		t.Errorf("results of different seeds are not compared: %+v", d.Groups())
	}
}

func TestDiffOrder(t *testing.T) {
	var old, new []harness.Result
	for i, l := range []check.Level{check.May, check.Must, check.Should, check.Must} {
		r := result("example", fmt.Sprintf("f/%d", i))
		old = append(old, judged(r, verdict(check.Pass, l)))
		new = append(new, judged(r, verdict(check.Fail, l)))
	}
	d := Compare(made(old...), made(new...), DiffOptions{Level: check.May})
	var got []string
	for _, ch := range d.Broken {
		got = append(got, ch.Scenario+" "+string(ch.Level))
	}
	if want := []string{"f/1 MUST", "f/3 MUST", "f/2 SHOULD", "f/0 MAY"}; !slices.Equal(got, want) {
		t.Errorf("order %q, want %q", got, want)
	}
}

// TestDiffBehaviour: what is the same verdict and other behaviour, in words and numbers.
func TestDiffBehaviour(t *testing.T) {
	base := func() harness.Result { return ran("f/a", time.Second, 2*time.Second) }
	declared := func(r harness.Result, d history.Declared) harness.Result {
		r.History.Declared = d
		return r
	}
	change := func(f func(h *history.History, c *history.Call)) harness.Result {
		r := base()
		f(r.History, r.History.Calls[0])
		return r
	}
	none := history.Declared{Jitter: history.JitterNone}
	for _, c := range []struct {
		name     string
		old, new harness.Result
		want     string
	}{
		{"attempts", base(), ran("f/a", time.Second, 2*time.Second, 3*time.Second), "attempts 3 → 4"},
		{"first gap", declared(base(), none), declared(ran("f/a", 0, 2*time.Second), none), "first gap 1s → 0 s"},
		{"grains", declared(base(), none), declared(ran("f/a", time.Second+3*ms, 2*time.Second), none), ""},
		{"nobody tells of the jitter", base(), ran("f/a", 3*time.Second, 2*time.Second), ""},
		{"within full jitter", declared(base(), history.Declared{Jitter: "full", BaseDelay: time.Second}),
			declared(ran("f/a", 0, 2*time.Second), history.Declared{Jitter: "full", BaseDelay: time.Second}), ""},
		{"far beyond full jitter", declared(base(), history.Declared{Jitter: "full", BaseDelay: time.Second}),
			declared(ran("f/a", 20*time.Second, 2*time.Second), history.Declared{Jitter: "full", BaseDelay: time.Second}), "first gap 1s → 20s"},
		{"effects", base(), change(func(h *history.History, c *history.Call) {
			c.Method = "POST"
			h.Effects = append(h.Effects, history.Effect{N: 2, Call: "c1", Attempt: 2})
		}), "POST repeated: effects 1 → 2"},
		{"wire attempts", base(), change(func(_ *history.History, c *history.Call) { c.Attempts[1].Hidden = true }), "of these resent by net/http 0 → 1"},
		{"kind of error", change(func(_ *history.History, c *history.Call) { c.Outcome = history.Outcome{Traits: []string{"reset"}} }),
			change(func(_ *history.History, c *history.Call) { c.Outcome = history.Outcome{Traits: []string{"timeout"}} }),
			"kind of error connection broken → timeout"},
		{"one kind of error", change(func(_ *history.History, c *history.Call) { c.Outcome = history.Outcome{Traits: []string{"reset"}} }),
			change(func(_ *history.History, c *history.Call) { c.Outcome = history.Outcome{Traits: []string{"eof"}} }), ""},
		{"outcome", base(), change(func(_ *history.History, c *history.Call) { c.Outcome = history.Outcome{Error: "gave up"} }),
			"the call succeeds → fails: gave up"},
		{"keys", base(), change(func(_ *history.History, c *history.Call) { c.Attempts[0].Key = "k" }), "idempotency key: none → with some attempts"},
		{"patience", base(), change(func(_ *history.History, c *history.Call) {
			c.Attempts[0].Ended += 10 * time.Second
			c.Attempts[0].At = 0
		}),
			"time until attempt 1 was over 1ms → 10s"},
		{"an attempt in the instant of the deadline", change(func(_ *history.History, c *history.Call) {
			c.Deadline = c.Attempts[2].At
		}), change(func(_ *history.History, c *history.Call) {
			c.Deadline, c.Attempts = c.Attempts[2].At, c.Attempts[:2]
		}), ""},
		{"an attempt after the deadline", change(func(_ *history.History, c *history.Call) {
			c.Deadline = c.Attempts[2].At - time.Second
		}), change(func(_ *history.History, c *history.Call) {
			c.Deadline, c.Attempts = c.Attempts[2].At-time.Second, c.Attempts[:2]
		}), "attempts 3 → 2"},
		{"a race", base(), change(func(_ *history.History, c *history.Call) {
			c.Attempts[1].Unsent = true
			c.Attempts = c.Attempts[:2]
		}), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Diff(made(c.old), made(c.new))
			var got []string
			for _, ch := range d.Changed {
				got = append(got, ch.Differences...)
				if ch.Call != "c1" {
					t.Errorf("the call that shows it is %q", ch.Call)
				}
			}
			if c.want == "" && len(got) > 0 || !strings.Contains(strings.Join(got, "; "), c.want) {
				t.Errorf("changed %q, want %q", got, c.want)
			}
			if c.want != "" && len(got) != 1 && c.name != "patience" {
				t.Errorf("%d differences, want one: %q", len(got), got)
			}
		})
	}
}

// waits makes a report of n scenarios with one wait each.
func waits(n int, wait func(i int) time.Duration) *Report {
	var list []harness.Result
	for i := range n {
		list = append(list, ran(fmt.Sprintf("f/%03d", i), wait(i)))
	}
	return made(list...)
}

// TestDiffLearnsJitter: what a client draws is compared over its scenarios, what it does not is compared in each.
func TestDiffLearnsJitter(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	full := func(d time.Duration) func(int) time.Duration {
		return func(int) time.Duration { return time.Duration(rng.Int64N(int64(d))) }
	}
	constant := func(d time.Duration) func(int) time.Duration { return func(int) time.Duration { return d } }
	for _, c := range []struct {
		name     string
		old, new func(int) time.Duration
		changed  int
		trend    bool
	}{
		{"the same constant", constant(time.Second), constant(time.Second), 0, false},
		{"another constant", constant(time.Second), constant(2 * time.Second), 100, true},
		{"the same jitter", full(time.Second), full(time.Second), 0, false},
		{"half of it", full(time.Second), full(500 * ms), 0, true},
		{"a hundred times", full(10 * time.Second), full(100 * ms), 0, true},
		{"jitter comes", constant(500 * ms), full(time.Second), 0, true},
		{"jitter goes", full(time.Second), constant(500 * ms), 0, true},
		{"one that stands out", constant(time.Second), func(i int) time.Duration {
			if i == 7 {
				return 10 * time.Second
			}
			return time.Second
		}, 0, false}, // its own range hides it: the rule is for what a client does, not for one wait
	} {
		d := Diff(waits(100, c.old), waits(100, c.new))
		if len(d.Changed) != c.changed {
			t.Errorf("%s: %d changes, want %d", c.name, len(d.Changed), c.changed)
		}
		if got := len(d.significant()) > 0; got != c.trend {
			t.Errorf("%s: trends %v, want significant: %v", c.name, d.Trends, c.trend)
		}
		if d.Empty() != (c.changed == 0 && !c.trend) {
			t.Errorf("%s: Empty() = %v", c.name, d.Empty())
		}
	}
}

// TestDiffAgainstTime: a client with jitter that runs against time does not always get as far.
func TestDiffAgainstTime(t *testing.T) {
	storm := func(n int, jitter history.Jitter) harness.Result {
		r := ran("f/storm", slices.Repeat([]time.Duration{time.Second}, n)...)
		r.History.Declared = history.Declared{Jitter: jitter, BaseDelay: time.Second, Multiplier: 1}
		r.History.Triggers = []history.Trigger{{To: 4 * time.Second, What: "503"}}
		return r
	}
	if d := Diff(made(storm(4, "full")), made(storm(6, "full"))); !d.Empty() {
		t.Errorf("chance is called a change: %v", d.Changed[0].Differences)
	}
	if d := Diff(made(storm(4, "none")), made(storm(6, "none"))); len(d.Changed) != 1 {
		t.Error("a client without jitter leaves nothing to chance")
	}
	drawn := storm(6, "none")
	drawn.Drawn, drawn.Seed = true, 43
	d := Diff(made(storm(4, "none")), made(drawn))
	if len(d.Incomparable) != 1 || !strings.Contains(d.Incomparable[0].Why, "seeds differ") || !d.Empty() {
		t.Errorf("another seed draws another schedule: %+v", d.Groups())
	}
}

// TestDiffChance: verdicts that go both ways are chance, those that go one way are not.
func TestDiffChance(t *testing.T) {
	report := func(fails func(i int) bool) *Report {
		var list []harness.Result
		for i := range 40 {
			r := ran(fmt.Sprintf("f/%02d", i), time.Second)
			r.History.Declared = history.Declared{Jitter: "full", BaseDelay: time.Second}
			r.History.Calls[0].CancelAt = time.Second
			status := check.Pass
			if fails(i) {
				status = check.Fail
			}
			list = append(list, judged(r, check.Verdict{Check: "timing.deadline", Status: status, Level: check.Must, Reason: "r"}))
		}
		return made(list...)
	}
	d := Diff(report(func(i int) bool { return i%3 == 0 }), report(func(i int) bool { return i%4 == 0 }))
	if !d.Empty() || len(d.Incomparable) == 0 || len(d.Broken) > 0 {
		t.Errorf("chance is called a change: %d broken, %d fixed", len(d.Broken), len(d.Fixed))
	}
	if d := Diff(report(func(i int) bool { return i < 5 }), report(func(i int) bool { return i < 25 })); len(d.Broken) != 20 {
		t.Errorf("%d broken, want 20: all go one way", len(d.Broken))
	}
	if d := Diff(report(func(int) bool { return false }), report(func(i int) bool { return i == 0 })); len(d.Broken) != 1 {
		t.Errorf("%d broken, want 1: it never failed before", len(d.Broken))
	}
}

func TestSignedRank(t *testing.T) {
	var up, both []paired
	for i := range 40 {
		up = append(up, paired{0, float64(i + 1)})
		both = append(both, paired{0, float64((i + 1) * (1 - i%2*2))})
	}
	if p := signedRank(up, 0); p > 1e-6 {
		t.Errorf("all up: p = %g", p)
	}
	if p := signedRank(both, 0); p < 0.5 {
		t.Errorf("up and down: p = %g", p)
	}
	if p := signedRank(up, 100); p != 1 {
		t.Errorf("all ties: p = %g", p)
	}
	if p := signTest(20, 0); p < 1.9e-6 || p > 2e-6 {
		t.Errorf("20 to 0: p = %g, want 2 × 2^-20", p)
	}
	if p := signTest(5, 5); p != 1 {
		t.Errorf("5 to 5: p = %g", p)
	}
}

// TestDiffSeldomDraws: a verdict on waits that came out otherwise in a few of many scenarios is luck, in more it is
// not, and neither is it where the client has drawn a few times only, or never draws.
func TestDiffSeldomDraws(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	report := func(scenarios, fails int, jitter bool) *Report {
		var list []harness.Result
		for i := range scenarios {
			wait := time.Second
			if jitter {
				wait = time.Duration(rng.Int64N(int64(time.Second)))
			}
			status := check.Pass
			if i < fails {
				status = check.Fail
			}
			list = append(list, judged(ran(fmt.Sprintf("f/%03d", i), wait),
				check.Verdict{Check: "timing.backoff-grows", Status: status, Level: check.Should, Reason: "r"}))
		}
		return fixed(Run{Level: check.Should, Clients: []ClientInfo{{Name: "example"}}}, list)
	}
	for _, c := range []struct {
		scenarios, fails int
		jitter           bool
		broken           int
	}{{60, 2, true, 0}, {60, 9, true, 9}, {12, 1, true, 1}, {60, 2, false, 2}} {
		if d := Diff(report(c.scenarios, 0, c.jitter), report(c.scenarios, c.fails, c.jitter)); len(d.Broken) != c.broken {
			t.Errorf("%+v: %d broken", c, len(d.Broken))
		}
	}
}
