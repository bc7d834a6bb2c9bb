package check

import (
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

func TestLastReal(t *testing.T) {
	one := func(last string, o history.Outcome) *history.History {
		return run(with(call("c1", try(0, "503"), try(s, last)), outcome(o)))
	}
	count := func(n int) *history.History { return one("503", history.Outcome{Status: 503, Error: "x", Attempts: n}) }
	hid := count(2)
	hid.Calls[0].Attempts = append(hid.Calls[0].Attempts, try(s, "503", hidden))
	process := one("503", says("exit status 22", 0))
	process.Declared.Process = true
	dial := one("503", says("x", 0, history.TraitRefused))
	dial.Calls[0].Trips = []history.Trip{{}, {}, {Started: 2 * s, Error: "refused"}}
	reuse := one("empty_response", says("server closed idle connection", 0))
	reuse.Calls[0].Attempts[1].Reused = true
	stalled := one("truncated_body", says("x", 0, history.TraitReset))
	stalled.Calls[0].Attempts[1].FaultName = "stall_body"
	undelivered := one("connection_reset", says("ContentLength=7 with Body length 0", 0))
	undelivered.Calls[0].Attempts[1].Delivered = false
	table(t, errorLastReal, []row{
		{"succeeded", run(call("c1", try(0, "ok"))), Skipped, "no call failed"},
		{"status", one("502", says("x", 502)), Pass, "1 failed call"},
		{"other status", one("502", says("x", 503)), Fail, "gives status 503, but its last real failure was status 502 in attempt 2"},
		{"masked", one("502", says("retries exhausted", 0)), Fail, "nothing can be found in"},
		{"context error in its place", one("502", says("x", 0, history.TraitDeadline)), Fail, "an error that is only deadline"},
		{"a write that failed before the answer was read", run(with(call("c1", try(0, "503", func(a *history.Attempt) { a.BodyUnread = true })), outcome(says("write: broken pipe", 0)))), Pass, ""},
		{"loop of redirects", one("307", says("stopped after 10 redirects", 0)), Pass, ""},
		{"reset", one("connection_reset", says("x", 0, history.TraitReset)), Pass, ""},
		{"reset masked", one("connection_reset", says("x", 0)), Fail, ""},
		{"an older status for a reset", one("connection_reset", says("x", 503)), Fail, "connection_reset in attempt 2"},
		{"EOF", one("empty_response", says("x", 0, history.TraitUnexpectedEOF)), Pass, ""},
		{"EOF masked", one("empty_response", says("x", 0)), Fail, ""},
		{"stale connection has no sentinel", reuse, Pass, ""},
		{"timeout", one("hang", says("x", 0, history.TraitTimeout)), Pass, ""},
		{"timeout masked", one("hang", says("x", 0)), Fail, ""},
		{"truncated", one("truncated_body", says("x", 0, history.TraitUnexpectedEOF)), Pass, ""},
		{"stalled, then reset", stalled, Pass, ""},
		{"truncated masked", one("truncated_body", says("x", 200)), Fail, ""},
		{"decoding", one("malformed_json", says("x", 0, history.TraitDecoding)), Pass, ""},
		{"decoding masked", one("malformed_json", says("x", 0)), Fail, "malformed_json in attempt 2"},
		{"something else ended it", undelivered, Pass, ""},
		{"nothing at all", one("503", history.Outcome{}), Fail, "neither a status nor an error"},
		{"cancelled", run(with(call("c1", try(0, "503")), ends(3*s), cancelled(3*s))), Pass, ""},
		{"cancelled, told otherwise", run(with(call("c1", try(0, "503")), ends(3*s), cancelled(3*s), outcome(says("x", 0)))), Fail, ""},
		{"deadline", run(with(call("c1", try(0, "503")), ends(30*s), outcome(says("x", 0, history.TraitDeadline)))), Pass, ""},
		{"refused dial after it", dial, Pass, ""},
		{"true count", count(2), Pass, ""},
		{"wrong count", count(3), Fail, "says 3 attempts, the server saw 2"},
		{"count without hidden ones", hid, Pass, ""},
		{"nothing arrived", run(call("c1")), Skipped, ""},
		{"a command", process, Skipped, "exit status"},
		{"given up", run(with(call("c1", try(0, "503")), givenUp)), Skipped, ""},
		{"panic", one("503", history.Outcome{Panic: "nil map"}), Fail, "MUST"},
	})
}

func TestRecovers(t *testing.T) {
	four := history.Declared{MaxAttempts: 4}
	one := func(mods ...func(*history.Call)) *history.History {
		return declares(run(with(call("c1", try(0, "503")), append([]func(*history.Call){keyed}, mods...)...)), four)
	}
	word := func(w string, mods ...func(*history.Call)) *history.History {
		return declares(run(with(call("c1", try(0, w)), append([]func(*history.Call){keyed}, mods...)...)), four)
	}
	unkeyed := func(c *history.Call) { c.Keyed, c.KeyHonoured = false, false }
	asked := func(wait time.Duration) *history.History {
		h := declares(run(with(call("c1", try(0, "429", asks("n", wait))), deadline(0))), four)
		h.Declared.MaxRetryAfter = 60 * s
		return h
	}
	undelivered := word("connection_reset")
	undelivered.Calls[0].Attempts[0].Delivered = false
	var shared []*history.Call
	for i := range 12 {
		c := with(call("c"+string(rune('a'+i)), try(0, "503"), try(s, "ok")), keyed)
		if i > 8 {
			c = with(call("c"+string(rune('a'+i)), try(0, "503")), keyed)
		}
		shared = append(shared, c)
	}
	table(t, livenessRecovers, []row{
		{"recovered", declares(run(with(call("c1", try(0, "503"), try(s, "ok")), keyed)), four), Pass, "1 call recovered"},
		{"nothing to recover from", run(call("c1", try(0, "ok"))), Skipped, ""},
		{"gave up", one(), Fail, "gave up after 1 of 4 attempts, although attempt 1 (503)"},
		{"gave up, undeclared", declares(one(), history.Declared{}), Fail, "1 of 3"},
		{"does not retry", declares(one(), history.Declared{MaxAttempts: 1}), Skipped, "declares one attempt"},
		{"used up", declares(run(with(call("c1", try(0, "503"), try(s, "503")), keyed)), history.Declared{MaxAttempts: 2}), Skipped, ""},
		{"reset", word("connection_reset"), Fail, ""},
		{"reset that did not happen", undelivered, Skipped, ""},
		{"truncated", word("truncated_body+"), Fail, ""},
		{"permanent", word("400"), Skipped, ""},
		{"500 is no invitation", word("500"), Skipped, ""},
		{"unsafe", one(func(c *history.Call) { c.KeyHonoured = false }), Skipped, ""},
		{"idempotent", one(func(c *history.Call) { c.KeyHonoured = false; c.Method = "GET" }), Fail, ""},
		{"rate limit, unkeyed", word("429", func(c *history.Call) { c.Keyed = false }), Fail, ""},
		{"cancelled", one(cancelled(0+ms), ends(ms)), Skipped, ""},
		{"stored with its key", one(keyed, func(c *history.Call) { c.Attempts[len(c.Attempts)-1].Stored = true }), Skipped, ""},
		{"replayed", one(keyed, func(c *history.Call) { c.Attempts[len(c.Attempts)-1].Replayed = true }), Skipped, ""},
		{"a POST that may happen twice", declares(one(unkeyed, func(c *history.Call) { c.MayRepeat = true }), history.Declared{MaxAttempts: 4, CanBeTold: true}), Fail, ""},
		{"a POST that may happen twice, and nobody told", one(unkeyed, func(c *history.Call) { c.MayRepeat = true }), Skipped, ""},
		{"two more tries", one(func(c *history.Call) { c.Planned = []string{"503", "503"} }), Fail, "attempt 3 would have succeeded"},
		{"ok is planned", one(func(c *history.Call) { c.Planned = []string{"503", "503", "ok", "503"} }), Fail, "attempt 3 would have succeeded"},
		{"four more tries", one(func(c *history.Call) { c.Planned = []string{"503", "503", "503", "503"} }), Skipped, ""},
		{"something else is in the way", one(func(c *history.Call) { c.Planned = []string{"503", "400"} }), Skipped, ""},
		{"no time for two", declares(one(deadline(5*s), func(c *history.Call) { c.Planned = []string{"503", "503", "503"} }), history.Declared{MaxAttempts: 4, BaseDelay: s}), Skipped, ""},
		{"endless", one(func(c *history.Call) { c.Endless = true }), Skipped, ""},
		{"a storm", one(func(c *history.Call) { c.Planned = nil }), Skipped, ""},
		{"no time left", one(deadline(5 * s)), Skipped, ""},
		{"declared, time left", declares(one(deadline(5*s)), history.Declared{MaxAttempts: 4, BaseDelay: s}), Fail, ""},
		{"asked for what it waits", asked(30 * s), Fail, ""},
		{"asked for more", asked(90 * s), Skipped, ""},
		{"given up by the harness", one(givenUp), Skipped, ""},
		{"a budget", declares(run(shared...), four), Pass, "3 others gave up early"},
	})
}

func TestReleased(t *testing.T) {
	leaks := func(l history.Leaks) *history.History {
		h := run(call("c1", try(0, "ok")))
		h.Leaks = l
		return h
	}
	process := leaks(history.Leaks{})
	process.Declared.Process = true
	pair := func(first string, mods ...func(*history.Attempt)) *history.Call {
		c := call("c1", try(0, first), try(s, "ok", mods...))
		c.Trips = []history.Trip{{Ended: 0, Status: 503, Closed: true}, {Started: s, Ended: s, Status: 200, BodyEOF: true, Closed: true}}
		return c
	}
	broken := pair("connection_reset")
	broken.Trips[0] = history.Trip{Error: "reset"}
	unclosed := leaks(history.Leaks{Known: true, Bodies: 1})
	unclosed.Calls = []*history.Call{pair("503"), pair("503", reused)}
	unclosed.Calls[1].ID = "c2"
	unclosed.Calls[1].Trips[0].Closed = false
	closes := pair("503")
	closes.Attempts[0].Closed = true
	beside := call("c2", try(s/2, "ok"))
	stack := "goroutine 7 [select]:\n" + "a()\nb()\nc()\nd()\ne()\nf()\ng()\nh()\ni()\nj()"
	table(t, resourcesReleased, []row{
		{"clean", run(pair("503", reused)), Pass, "1 of 1 retries that could reuse"},
		{"unknown", leaks(history.Leaks{}), Unknown, ""},
		{"a command", process, Skipped, ""},
		{"connection", leaks(history.Leaks{Known: true, Conns: 2}), Fail, "2 connections"},
		{"body", unclosed, Fail, "1 response never closed"},
		{"goroutine", leaks(history.Leaks{Known: true, Goroutines: []string{stack}}), Fail, "1 goroutine"},
		{"fresh where it could reuse", run(pair("503")), Fail, "SHOULD"},
		{"server closes", run(closes), Pass, ""},
		{"broken exchange", run(broken), Pass, ""},
		{"408 closes", run(pair("408")), Pass, ""},
		{"beside another", run(pair("503"), beside), Pass, ""},
		{"no trips", run(call("c1", try(0, "503"), try(s, "ok"))), Pass, ""},
	})
	if v := resourcesReleased.judge(unclosed); len(v.Calls) != 1 || v.Calls[0] != "c2" {
		t.Errorf("the call that left its body open is c2: %v", v.Calls)
	}
	unclosed.Calls[1].Attempts[0].Conn, unclosed.Calls[1].Attempts[1].Conn = 7, 8
	if v := resourcesReleased.judge(unclosed); !strings.Contains(v.Reason, "1 connection kept from the pool") {
		t.Errorf("a connection with an answer that was neither read nor closed is of no use: %s", v.Reason)
	}
	unclosed.Calls[1].Attempts[1].Conn = 7
	if v := resourcesReleased.judge(unclosed); strings.Contains(v.Reason, "pool") {
		t.Errorf("a connection that was used again was in the pool: %s", v.Reason)
	}
	v := resourcesReleased.judge(leaks(history.Leaks{Known: true, Goroutines: []string{stack, stack, stack, stack}}))
	if len(v.Evidence) != 4 || len(v.Evidence[0]) >= len(stack) {
		t.Errorf("stacks are trimmed: %q", v.Evidence)
	}
}
