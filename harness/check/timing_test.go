package check

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

func TestRetryAfter(t *testing.T) {
	caps := history.Declared{MaxRetryAfter: 10 * s, CapsRetryAfter: true}
	pair := func(first *history.Attempt, at time.Duration) *history.History {
		return run(call("c1", first, try(at, "ok")))
	}
	asleep := func(line string, wait, until time.Duration) *history.History {
		c := with(call("c1", try(0, "429", asks(line, wait))), deadline(until), ends(until), outcome(says("x", 0, history.TraitDeadline)))
		return run(c)
	}
	process := asleep("9999999999", 1e8*s, 30*s)
	process.Declared.Process = true
	endless := run(with(call("c1", try(0, "503", asks("9999999999", 1e8*s))), deadline(0), givenUp))
	endless.End = time.Hour
	burst := func(line string, wait time.Duration) *history.History {
		r := asks(line, wait)
		return run(call("c1", try(0, "429", r), try(ms/10, "429", r), try(ms/5, "429", r), try(ms/3, "429", r)))
	}
	zero := burst("0", 0)
	for _, a := range zero.Calls[0].Attempts {
		a.NotBefore = a.Ended // valid, and nothing is asked
	}
	// The client's own limit ended attempt 1 before its answer was there.
	unseen := pair(try(0, "429", asks("2", 2*s)), s)
	unseen.Calls[0].Trips = []history.Trip{{Ended: s / 2, Error: "attempt timed out"}, {Started: s, Ended: s, Status: 200}}
	table(t, timingRetryAfter, []row{
		{"came too late to be seen", unseen, Pass, "own back-off 1 times"},
		{"none", pair(try(0, "503"), s), Skipped, "no attempt was answered with a Retry-After"},
		{"obeyed", pair(try(0, "429", asks("2", 2*s)), 2*s), Pass, "obeyed 1 times"},
		{"early", pair(try(0, "429", asks("2", 2*s)), 1*s), Fail, "attempt 2 came 1s before Retry-After (2) allowed it"},
		{"within the grain", pair(try(0, "503", asks("2", 2*s)), 2*s-ms), Pass, ""},
		{"on a status that does not bind", pair(try(0, "500", asks("2", 2*s)), s), Pass, "before the Retry-After of a 500"},
		{"waits its cap", declares(pair(try(0, "429", asks("120", 120*s)), 10*s), caps), Pass, "waits its cap"},
		{"less than its cap", declares(pair(try(0, "429", asks("120", 120*s)), 9*s), caps), Fail, ""},
		{"does not say that it caps", declares(pair(try(0, "429", asks("120", 120*s)), 10*s), history.Declared{MaxRetryAfter: 10 * s}), Fail, ""},
		{"gives back", run(call("c1", try(0, "429", asks("120", 120*s)))), Pass, "gives back"},
		{"hostile, own back-off", pair(try(0, "429", asks("9223372037", math.MaxInt64/2)), s), Pass, "no server means that"},
		{"hostile, burst", burst("9223372037", math.MaxInt64/2), Fail, "in a row less than 1ms"},
		{"hostile, slept", asleep("9999999999", 1e8*s, 30*s), Fail, "for a retry that could not happen"},
		{"hostile, a command cannot know", process, Pass, ""},
		{"hostile, endless", endless, Fail, "until the harness gave it up"},
		{"not valid, own back-off", pair(try(0, "429", asks("-1", 0)), s), Pass, "own back-off 1 times"},
		{"not valid, at once and once", pair(try(0, "429", asks("0", 0)), 0), Pass, ""},
		{"zero, burst", zero, Fail, "in a row less than 1ms"},
		{"not valid, burst", burst("soon", 0), Fail, "in a row less than 1ms"},
		{"not valid, stops the world", asleep("-1", 0, 10*time.Minute), Fail, "slept 10m0s until its deadline after a Retry-After that is not valid"},
		{"not valid, slept a little", asleep("-1", 0, 30*s), Pass, ""},
		{"cancelled in the wait", run(with(call("c1", try(0, "429", asks("9999999999", 1e8*s))), ends(5*s), cancelled(5*s))), Pass, ""},
	})
}

func TestBackoffGrows(t *testing.T) {
	atOnce := func(n int, word string, mods ...func(*history.Attempt)) *history.Call {
		var out []*history.Attempt
		for i := range n {
			out = append(out, try(time.Duration(i)*ms/4, word, mods...))
		}
		return call("c1", out...)
	}
	full := func(base time.Duration) history.Declared {
		return history.Declared{Jitter: history.JitterFull, BaseDelay: base}
	}
	hid := atOnce(4, "503")
	hid.Attempts[1].Hidden, hid.Attempts[2].Hidden = true, true
	wrapped := call("c1", try(0, "503"), try(2*s, "503"), try(2*s, "503"), try(6*s, "503"), try(6*s, "ok"))
	once := call("c1", try(0, "503"), try(2*s, "503"), try(2*s, "503"), try(6*s, "ok"))
	noise := run(atOnce(4, "503"))
	noise.Grain = 25 * ms
	for i, a := range noise.Calls[0].Attempts { // the server was late to notice: the client had slept
		a.At = time.Duration(i) * 40 * ms
		a.Ended = a.At + 40*ms
	}
	table(t, timingBackoffGrows, []row{
		{"no retry", run(call("c1", try(0, "400"))), Skipped, ""},
		{"grows", run(call("c1", try(0, "503"), try(s, "503"), try(3*s, "ok"))), Pass, "that takes 100 calls"},
		{"hot loop", run(atOnce(4, "503")), Fail, "3 times in a row less than 1ms"},
		{"hot pair", run(atOnce(3, "503")), Fail, "2 times in a row"},
		{"hot pair, no jitter", declares(run(atOnce(3, "503")), history.Declared{Jitter: history.JitterNone}), Fail, "2 times in a row"},
		{"hot pair that chance explains", declares(run(atOnce(3, "503")), full(100*ms)), Pass, ""},
		{"hot run that chance does not explain", declares(run(atOnce(5, "503")), full(100*ms)), Fail, "4 times"},
		{"once at once", run(call("c1", try(0, "503"), try(0, "503"), try(s, "ok"))), Pass, ""},
		{"hidden ones are no retries", run(hid), Pass, ""},
		{"stale connections", run(atOnce(3, "connection_reset", reused)), Skipped, ""},
		{"asked is another rule's", run(atOnce(4, "429", asks("0", 0))), Skipped, ""},
		{"late to notice", noise, Pass, ""},
		{"overflow", run(call("c1", try(0, "503"), try(100*time.Hour, "ok"))), Fail, "overflowed"},
		{"a day and more, declared", declares(run(call("c1", try(0, "503"), try(30*time.Hour, "ok"))), history.Declared{MaxDelay: 48 * time.Hour}), Pass, ""},
		{"wraps twice", run(wrapped), Fail, "the delay has wrapped"},
		{"collapses once", run(once), Pass, ""},
	})
}

// TestGrowth has each policy in a herd: those that grow pass, those that do not fail.
func TestGrowth(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	u := func(from, to float64) time.Duration {
		return time.Duration((from + rng.Float64()*(to-from)) * float64(s))
	}
	var last time.Duration
	policies := []struct {
		name string
		d    history.Declared
		wait func(i, k int) time.Duration
		want Status
		note string
	}{
		{"full", history.Declared{}, func(_, k int) time.Duration { return u(0, math.Pow(2, float64(k-1))) }, Pass, ""},
		{"full 1.5", history.Declared{}, func(_, k int) time.Duration { return u(0, math.Pow(1.5, float64(k-1))) }, Pass, ""},
		{"equal 1.5", history.Declared{}, func(_, k int) time.Duration { m := math.Pow(1.5, float64(k-1)); return u(m/2, m) }, Pass, ""},
		{"additive", history.Declared{}, func(_, k int) time.Duration { m := math.Pow(2, float64(k-1)); return u(m, m+0.5) }, Pass, ""},
		{"decorrelated", history.Declared{Jitter: history.JitterDecorrelated, BaseDelay: s}, func(_, k int) time.Duration {
			if k == 1 {
				last = s
			}
			last = u(1, 3*last.Seconds())
			return last
		}, Pass, ""},
		{"no jitter", history.Declared{}, func(_, k int) time.Duration { return s << k }, Pass, ""},
		{"constant", history.Declared{}, func(_, _ int) time.Duration { return s }, Fail, ""},
		{"constant with jitter", history.Declared{}, func(_, _ int) time.Duration { return u(0, 1) }, Fail, ""},
		{"shrinks", history.Declared{}, func(_, k int) time.Duration { return 4 * s >> k }, Fail, ""},
		{"declared 1.2", history.Declared{Multiplier: 1.2}, func(_, k int) time.Duration { return u(0, math.Pow(1.2, float64(k-1))) }, Pass, ""},
		{"declared constant", history.Declared{Multiplier: 1}, func(_, _ int) time.Duration { return u(0, 1) }, Fail, ""},
		{"at the cap from the start", history.Declared{BaseDelay: s, MaxDelay: s}, func(_, _ int) time.Duration { return u(0, 1) }, Pass, "no room to grow"},
		{"decorrelated at a low cap", history.Declared{Jitter: history.JitterDecorrelated, BaseDelay: s, MaxDelay: 2 * s}, func(_, _ int) time.Duration { return 2 * s }, Pass, "no room"},
		{"jitter hides it", history.Declared{Jitter: history.JitterAdditive, BaseDelay: s, JitterWidth: 20 * s}, func(_, k int) time.Duration { return u(float64(k), float64(k)+20) }, Pass, "hides"},
	}
	for _, p := range policies {
		v := timingBackoffGrows.judge(declares(herdOf(400, 2, p.wait), p.d))
		if v.Status != p.want || !strings.Contains(strings.Join(v.Notes, " "), p.note) {
			t.Errorf("%s: %s, want %s: %s %v", p.name, v.Status, p.want, v.Reason, v.Notes)
		}
	}
	if v := timingBackoffGrows.judge(herdOf(99, 2, func(_, _ int) time.Duration { return s })); v.Status != Pass {
		t.Errorf("99 calls are too few to judge growth: %s: %s", v.Status, v.Reason)
	}
}

// TestHotLoopsInHerds: full jitter over a second falls below 1 ms now and then. In a thousand calls that
// must not be a finding, and a loop in all of them must.
func TestHotLoopsInHerds(t *testing.T) {
	rare := func(i, k int) time.Duration {
		if i == 17 && k <= 2 {
			return ms / 2
		}
		return s * time.Duration(k)
	}
	if v := timingBackoffGrows.judge(herdOf(1000, 3, rare)); v.Status != Pass {
		t.Errorf("one call in a thousand: %s: %s", v.Status, v.Reason)
	}
	if v := timingBackoffGrows.judge(herdOf(20, 2, func(_, _ int) time.Duration { return 0 })); v.Status != Fail || len(v.Calls) != 20 {
		t.Errorf("all of twenty: %s: %s", v.Status, v.Reason)
	}
}

func TestDeadline(t *testing.T) {
	one := func(mods ...func(*history.Call)) *history.History {
		return run(with(call("c1", try(0, "503"), try(2*s, "503")), mods...))
	}
	timeout := outcome(says("x", 0, history.TraitDeadline))
	gone := one(givenUp)
	gone.End = 40 * s
	process := one(timeout, ends(30*s+200*ms))
	process.Declared.Process = true
	inFlight := one(timeout, ends(30*s), func(c *history.Call) {
		c.Trips = []history.Trip{{Ended: s, Status: 503}, {Ended: 2 * s, Status: 503}, {Started: 3 * s}}
	})
	hangs := run(with(call("c1", try(0, "503"), try(2*s, "hang", func(a *history.Attempt) { a.Ended = 30 * s })), timeout, ends(30*s)))
	rows := []row{
		{"none", one(deadline(0)), Skipped, "no call had a deadline"},
		{"early enough", one(), Pass, "1 call ended by its deadline"},
		{"within the grain", hangs, Pass, ""},
		{"late", one(timeout, ends(31*s)), Fail, "call c1 ended 1s after its deadline"},
		{"attempt after it", one(timeout, deadline(1*s), ends(s)), Fail, "began 1 attempt after its deadline, the first 1s late"},
		{"never returned", gone, Fail, "never returned, 10s after its deadline"},
		{"given up before", one(givenUp), Fail, "before its deadline"},
		{"slept in vain", one(timeout, ends(30*s)), Fail, "slept for its last 28s until its deadline"},
		{"slept a little", one(timeout, ends(30*s), func(c *history.Call) { c.Attempts[1].Ended = 29*s + ms }), Pass, ""},
		{"something was on its way", inFlight, Pass, ""},
		{"a command is killed", process, Pass, ""},
	}
	table(t, timingDeadline, rows)
	if v := timingDeadline.judge(rows[7].h); v.Level != Should {
		t.Errorf("sleeping in vain is %s", v.Level)
	}
	if v := timingDeadline.judge(rows[3].h); v.Level != Must {
		t.Errorf("ending late is %s", v.Level)
	}
}

func TestCancel(t *testing.T) {
	one := func(mods ...func(*history.Call)) *history.History {
		return run(with(call("c1", try(0, "503"), try(2*s, "503")), mods...))
	}
	process := one(cancelled(3*s), ends(3*s+200*ms))
	process.Declared.Process = true
	table(t, timingCancel, []row{
		{"none", one(), Skipped, "no call was cancelled"},
		{"over before", one(func(c *history.Call) { c.CancelAt = 5 * s }), Skipped, "1 call ended before its cancellation"},
		{"at once", one(cancelled(3*s), ends(3*s)), Pass, "1 call was cancelled"},
		{"within the grain", one(cancelled(3*s), ends(3*s+ms)), Pass, ""},
		{"late", one(cancelled(3*s), ends(4*s)), Fail, "returned 1s after it was cancelled"},
		{"goes on", one(cancelled(s), ends(2*s)), Fail, "made 1 attempt after it was cancelled"},
		{"never returns", one(cancelled(3*s), givenUp), Fail, "never returned"},
		{"a command is killed", process, Pass, ""},
	})
}

// TestSlack: in virtual time a millisecond is late; on a real clock a busy machine is nobody's fault.
func TestSlack(t *testing.T) {
	late := func(world string, by, lateness time.Duration) Status {
		h := run(with(call("c1", try(0, "503")), cancelled(3*s), ends(3*s+by)))
		h.World, h.Lateness = world, lateness
		return timingCancel.judge(h).Status
	}
	if late("virtual", 2*ms, 0) != Fail {
		t.Error("virtual time is exact")
	}
	if late("loopback", 200*ms, 0) != Pass || late("loopback", 300*ms, 0) != Fail || late("loopback", 300*ms, 50*ms) != Pass {
		t.Error("on loopback the slack is a quarter of a second and twice the lateness of the harness itself")
	}
}

// TestLateMachine: a call that was given up says nothing where the machine was so late that its time had hardly come.
func TestLateMachine(t *testing.T) {
	judge := func(c Check, lateness, end time.Duration, mods ...func(*history.Call)) Status {
		h := run(with(call("c1", try(0, "503")), append(mods, givenUp)...))
		h.World, h.Lateness, h.End = "loopback", lateness, end
		h.Calls[0].Ended = end
		return c.judge(h).Status
	}
	deadline := func(c *history.Call) { c.Deadline = 5 * s }
	for _, x := range []struct {
		check Check
		mod   func(*history.Call)
	}{{timingDeadline, deadline}, {timingCancel, cancelled(5 * s)}} {
		if got := judge(x.check, 2*s, 8*s, x.mod); got != Unknown {
			t.Errorf("%s: late by 2s, given up 3s after the instant: %s", x.check.ID, got)
		}
		if got := judge(x.check, 2*s, 20*s, x.mod); got != Fail {
			t.Errorf("%s: late by 2s, given up 15s after the instant: %s", x.check.ID, got)
		}
		if got := judge(x.check, 100*ms, 8*s, x.mod); got != Fail {
			t.Errorf("%s: on time, given up 3s after the instant: %s", x.check.ID, got)
		}
	}
}
