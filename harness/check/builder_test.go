package check

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

const (
	ms = time.Millisecond
	s  = time.Second
)

// try is an attempt that arrives at an instant and meets what a word says: a status, "ok", or the name of
// a fault; a "+" behind it commits an effect ("ok" always does).
func try(at time.Duration, what string, mods ...func(*history.Attempt)) *history.Attempt {
	a := &history.Attempt{At: at, Ended: at, Method: "POST", BodyHash: "h", BodyLen: 7, Delivered: true, Conn: 1}
	word, commits := strings.CutSuffix(what, "+")
	if commits || word == "ok" {
		a.Effect = -1 // numbered by the history
	}
	a.Fault = word
	if word != "ok" {
		a.FaultName = word
	}
	switch word {
	case "ok":
		a.Status = 200
	case "connection_reset", "empty_response":
		a.Category = "transport"
	case "hang":
		a.Category, a.Ended = "transport", at+s
	case "truncated_body":
		a.Category, a.Status = "transport", 200
	case "malformed_json":
		a.Category, a.Status = "decoding", 200
	default:
		n, err := strconv.Atoi(word)
		if err != nil {
			panic("no such fault: " + word)
		}
		a.Category, a.FaultName, a.Status = "status", "status", n
	}
	for _, m := range mods {
		m(a)
	}
	return a
}

func key(k string) func(*history.Attempt) { return func(a *history.Attempt) { a.Key = k } }

func hidden(a *history.Attempt) { a.Hidden, a.Reused = true, false }
func reused(a *history.Attempt) { a.Reused = true }

// asks gives the answer a Retry-After: a valid one of that many seconds, or with 0 one that is not valid.
func asks(line string, wait time.Duration) func(*history.Attempt) {
	return func(a *history.Attempt) {
		a.RetryAfter = append(a.RetryAfter, line)
		if wait > 0 {
			a.NotBefore = a.Ended + wait
		}
	}
}

// call is a POST without a key that meets the attempts and tells the truth about the last one.
func call(id string, attempts ...*history.Attempt) *history.Call {
	c := &history.Call{ID: id, Group: "calls", Method: "POST", Path: "/charges/" + id, Resource: "/charges/" + id,
		BodyHash: "h", BodyLen: 7, Returned: true, Deadline: 30 * s, Attempts: attempts}
	for i, a := range attempts {
		a.N = i + 1
		c.Planned = append(c.Planned, a.Fault)
	}
	last := c.Last()
	if last == nil {
		c.Outcome.Error = "nothing"
		return c
	}
	c.Ended = last.Ended
	o := &c.Outcome
	switch last.FaultName {
	case "":
		o.OK, o.Status = true, 200
	case "status":
		o.Status, o.Error = last.Status, "status"
	case "connection_reset":
		o.Error, o.Traits = "reset", []string{history.TraitReset}
	case "empty_response":
		o.Error, o.Traits = "EOF", []string{history.TraitEOF}
	case "hang":
		o.Error, o.Traits = "timeout", []string{history.TraitTimeout}
	case "truncated_body":
		o.Error, o.Traits = "short", []string{history.TraitUnexpectedEOF}
	case "malformed_json":
		o.Error, o.Traits = "not JSON", []string{history.TraitDecoding}
	}
	return c
}

// with changes a call.
func with(c *history.Call, mods ...func(*history.Call)) *history.Call {
	for _, m := range mods {
		m(c)
	}
	return c
}

func method(m string) func(*history.Call) {
	return func(c *history.Call) {
		c.Method = m
		for _, a := range c.Attempts {
			a.Method = m
		}
	}
}

// keyed gives the call and all its attempts a key that the server is known to honour.
func keyed(c *history.Call) {
	c.Keyed, c.KeyHonoured = true, true
	for _, a := range c.Attempts {
		if a.Key == "" {
			a.Key = "k-" + c.ID
		}
	}
}

func ends(at time.Duration) func(*history.Call) { return func(c *history.Call) { c.Ended = at } }

func deadline(at time.Duration) func(*history.Call) { return func(c *history.Call) { c.Deadline = at } }

func cancelled(at time.Duration) func(*history.Call) {
	return func(c *history.Call) { c.CancelAt, c.Outcome = at, says("canceled", 0, history.TraitCanceled) }
}

func outcome(o history.Outcome) func(*history.Call) { return func(c *history.Call) { c.Outcome = o } }

// givenUp is a call that never returned.
func givenUp(c *history.Call) { c.Returned, c.Outcome = false, history.Outcome{} }

// says is the outcome of a failed call.
func says(text string, status int, traits ...string) history.Outcome {
	return history.Outcome{Error: text, Status: status, Traits: traits}
}

// run makes a history in virtual time of the calls, with the effects that their attempts committed.
func run(calls ...*history.Call) *history.History {
	h := &history.History{Scenario: "test/run", Client: "client", World: "virtual", Grain: ms, Calls: calls, AttemptCap: 100,
		Leaks: history.Leaks{Known: true}}
	for _, c := range calls {
		h.End = max(h.End, c.Ended)
		for _, a := range c.Attempts {
			if a.Effect != 0 {
				effect(h, c, a, a.At)
			}
		}
	}
	return h
}

func effect(h *history.History, c *history.Call, a *history.Attempt, at time.Duration) {
	a.Effect = len(h.Effects) + 1
	h.Effects = append(h.Effects, history.Effect{N: a.Effect, At: at, Call: c.ID, Attempt: a.N, Method: c.Method, Resource: c.Resource})
}

// declares sets what the client says of itself.
func declares(h *history.History, d history.Declared) *history.History {
	h.Declared = d
	return h
}

// a row is a history and what a check must say of it.
type row struct {
	name   string
	h      *history.History
	want   Status
	reason string // part of the reason, or of a note
}

func table(t *testing.T, c Check, rows []row) {
	t.Helper()
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Helper()
			v := c.judge(r.h)
			if v.Status != r.want {
				t.Fatalf("%s, want %s: %s\n%s", v.Status, r.want, v.Reason, strings.Join(v.Evidence, "\n"))
			}
			if v.Reason == "" || v.Check != c.ID || v.Level == "" {
				t.Errorf("incomplete verdict: %+v", v)
			}
			if text := fmt.Sprint(v.Reason, v.Notes, v.Level); !strings.Contains(text, r.reason) {
				t.Errorf("%q does not contain %q", text, r.reason)
			}
			if v.Status == Fail && len(v.Calls) == 0 && c.ID != "resources.released" {
				t.Error("a failure names no call")
			}
		})
	}
}

// herdOf makes n calls that fail together at instant zero and come back after wait(i, k), k times.
func herdOf(n, k int, wait func(i, k int) time.Duration) *history.History {
	var calls []*history.Call
	for i := range n {
		at := time.Duration(0)
		attempts := []*history.Attempt{try(at, "503")}
		for j := 1; j <= k; j++ {
			at += wait(i, j)
			what := "503"
			if j == k {
				what = "ok"
			}
			attempts = append(attempts, try(at, what))
		}
		calls = append(calls, with(call("c"+strconv.Itoa(i+1), attempts...), keyed, deadline(0)))
	}
	return run(calls...)
}
