package check

import (
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

// many is a call of n attempts that all meet the same.
func many(n int, what string) *history.Call {
	var out []*history.Attempt
	for i := range n {
		out = append(out, try(time.Duration(i)*s, what))
	}
	return call("c1", out...)
}

func TestBounded(t *testing.T) {
	four := history.Declared{MaxAttempts: 4}
	refresh := func(n int) *history.Call {
		c := many(n, "503")
		c.Attempts[0] = try(0, "401")
		return c
	}
	hid := many(5, "503")
	hid.Attempts[4].Hidden = true
	dials := many(1, "503")
	dials.Trips = make([]history.Trip, 6)
	redirected := many(5, "503")
	redirected.Attempts[0].Status = 307
	table(t, attemptsBounded, []row{
		{"as declared", declares(run(many(4, "503")), four), Pass, "no call made more than 4 attempts for at most 4"},
		{"one too many", declares(run(many(5, "503")), four), Fail, "5 attempts for at most 4"},
		{"hidden ones are named", declares(run(hid), four), Fail, "5 attempts for at most 4; 1 of them resent by net/http"},
		{"a fresh token is free", declares(run(refresh(5)), four), Pass, ""},
		{"but only once", declares(run(refresh(6)), four), Fail, "6 attempts for at most 5"},
		{"a redirect is free", declares(run(redirected), four), Pass, ""},
		{"refused dials count", declares(run(dials), four), Fail, "6 attempts"},
		{"undeclared, ends by itself", run(many(30, "503")), Pass, "no maximum is declared"},
		{"undeclared, until the deadline", run(with(many(30, "503"), ends(30*s))), Fail, "30 attempts, and only its deadline"},
		{"undeclared, few until the deadline", run(with(many(20, "503"), ends(30*s))), Pass, ""},
		{"undeclared, until cancelled", run(with(many(30, "503"), cancelled(29*s))), Fail, "cancellation"},
		{"the cap", run(with(many(3, "503"), func(c *history.Call) { c.Capped = true })), Fail, "the harness's cap"},
		{"never returned", run(with(many(40, "503"), givenUp, deadline(0))), Fail, "still trying"},
		{"never returned, not trying", run(with(many(2, "503"), givenUp, deadline(0))), Pass, ""},
	})
}

func TestPermanentOnce(t *testing.T) {
	inFlight := func(a *history.Attempt) { a.InFlight = true }
	undelivered := func(a *history.Attempt) { a.Delivered = false }
	pair := func(first *history.Attempt) *history.History { return run(call("c1", first, try(s, "ok"))) }
	rows := []row{
		{"once", run(call("c1", try(0, "503"), try(s, "400"))), Pass, "1 permanent answer (400)"},
		{"nothing permanent", run(call("c1", try(0, "503"), try(s, "ok"))), Skipped, ""},
		{"decoding once", run(call("c1", try(0, "malformed_json"))), Pass, ""},
		{"decoding repeated", pair(try(0, "malformed_json")), Fail, "cannot be decoded"},
		{"decoding fault that did not happen", pair(try(0, "malformed_json", undelivered, func(a *history.Attempt) { a.Status = 0 })), Skipped, ""},
		{"409 at work", pair(try(0, "409", inFlight)), Skipped, ""},
		{"417 in place of a 100", pair(try(0, "417", func(a *history.Attempt) { a.FaultName = "expect_continue_417" })), Skipped, ""},
		{"417", pair(try(0, "417")), Fail, "answered with 417"},
		{"one refresh", pair(try(0, "401")), Skipped, ""},
		{"two refreshes", run(call("c1", try(0, "401"), try(s, "401"), try(2*s, "ok"))), Fail, "1 further attempt after attempt 2 had been answered with a second 401"},
		{"413 with Retry-After", pair(try(0, "413", asks("1", s))), Skipped, ""},
		{"403 with Retry-After", pair(try(0, "403", asks("1", s))), Skipped, ""},
		{"a hedge was under way", run(call("c1", try(0, "hang", func(a *history.Attempt) { a.Status, a.Category = 400, "status" }), try(s/2, "ok"))), Pass, ""},
		{"three more", run(call("c1", try(0, "404"), try(s, "404"), try(2*s, "404"), try(3*s, "404"))), Fail, "3 further attempts after attempt 1"},
	}
	for _, code := range []string{"400", "403", "404", "409", "410", "413", "422", "501", "505"} {
		rows = append(rows, row{"repeated " + code, pair(try(0, code)), Fail, "answered with " + code})
	}
	for _, code := range []string{"408", "425", "429", "421", "500", "502", "503", "504"} {
		rows = append(rows, row{"may be repeated " + code, pair(try(0, code)), Skipped, ""})
	}
	table(t, attemptsPermanentOnce, rows)
}

func TestUnsafeNotRepeated(t *testing.T) {
	pair := func(first *history.Attempt, mods ...func(*history.Call)) *history.History {
		return run(with(call("c1", first, try(2*s, "ok")), mods...))
	}
	untrusted := func(c *history.Call) { c.Keyed = true; c.Attempts[0].Key, c.Attempts[1].Key = "k", "k" }
	forgot := func(c *history.Call) { c.Keyed, c.KeyHonoured = true, true }
	table(t, attemptsUnsafeNotRepeated, []row{
		{"repeated after a reset", pair(try(0, "connection_reset")), Fail, "call c1 (POST, without a key) was repeated after attempt 1, which ended without an answer"},
		{"repeated after 503", pair(try(0, "503")), Fail, "answered with 503"},
		{"repeated after a hang", pair(try(0, "hang")), Fail, "without an answer"},
		{"repeated after a truncated answer", pair(try(0, "truncated_body+")), Fail, "broke off"},
		{"repeated after success", pair(try(0, "ok")), Fail, "had been carried out"},
		{"key not known to be honoured", pair(try(0, "503"), untrusted), Fail, "not known to be honoured"},
		{"key forgotten", pair(try(0, "503"), forgot), Fail, "without the key"},
		{"resent by net/http", run(call("c1", try(0, "empty_response", reused), try(ms, "ok", hidden))), Fail, "1 repeat by net/http inside one RoundTrip"},
		{"given back", run(call("c1", try(0, "503"))), Pass, "none repeated after 1 failure"},
		{"licensed", pair(try(0, "503"), keyed), Skipped, "no non-idempotent call"},
		{"idempotent", pair(try(0, "503"), method("PUT")), Skipped, ""},
		{"QUERY", pair(try(0, "503"), method("QUERY")), Skipped, ""},
		{"rate limit", pair(try(0, "429")), Skipped, "no unkeyed non-idempotent call met"},
		{"other connection", pair(try(0, "421")), Skipped, ""},
		{"408", pair(try(0, "408")), Skipped, ""},
		{"permanent is another rule's", pair(try(0, "400")), Skipped, ""},
		{"decoding is another rule's", pair(try(0, "malformed_json+")), Skipped, ""},
		{"not processed", pair(try(0, "empty_response", func(a *history.Attempt) { a.Fault, a.Unprocessed = "h2_goaway", true })), Skipped, ""},
		{"not told that it was not", pair(try(0, "empty_response", func(a *history.Attempt) { a.Fault, a.Unprocessed, a.Delivered = "h2_goaway", true, false })), Fail, "without an answer"},
		{"a stream reset for another reason", pair(try(0, "empty_response", func(a *history.Attempt) { a.Fault = "h2_rst_stream code=CANCEL" })), Fail, "without an answer"},
		{"a broken server refuses behind its header", pair(try(0, "truncated_body", func(a *history.Attempt) { a.Fault = "h2_rst_stream code=REFUSED_STREAM at=headers" })), Skipped, ""},
	})
}
