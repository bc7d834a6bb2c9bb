package check

import (
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

// dial is an attempt that met a fault while its connection was made.
func dial(at time.Duration, fault string, mods ...func(*history.Attempt)) *history.Attempt {
	name, _, _ := strings.Cut(fault, " ")
	a := &history.Attempt{At: at, Ended: at, Method: "POST", Fault: fault, FaultName: name, Category: "transport",
		Delivered: true, Connection: true, Unsent: true, Closed: true}
	for _, m := range mods {
		m(a)
	}
	return a
}

func written(a *history.Attempt) { a.Unsent = false }
func unmet(a *history.Attempt)   { a.Unmet = true }

// What was not sent may be repeated by anybody; what was written to a connection that nobody reads may not.
func TestUnsafeAfterConnectionFaults(t *testing.T) {
	posts := func(first *history.Attempt) *history.History { return run(call("c1", first, try(s, "ok"))) }
	table(t, attemptsUnsafeNotRepeated, []row{
		{"refused", posts(dial(0, "connect_refused")), Skipped, "met a failure that leaves open"},
		{"not resolved", posts(dial(0, "dns_temporary")), Skipped, ""},
		{"handshake", posts(dial(0, "tls_handshake_hang")), Skipped, ""},
		{"accepted by a stranger", posts(dial(0, "tls_bad_certificate", written)), Fail, "ended without an answer (tls_bad_certificate)"},
		{"written and never read", posts(dial(0, "accept_hang", written)), Fail, "ended without an answer (accept_hang)"},
		{"hung before anything was written", posts(dial(0, "accept_hang")), Skipped, ""},
		{"never met", posts(dial(0, "accept_hang", written, unmet)), Skipped, ""},
		{"a race", posts(dial(0, "close_at_accept", written)), Skipped, ""},
		{"not repeated", run(call("c1", dial(0, "accept_hang", written))), Pass, ""},
		{"with a key", run(with(call("c1", dial(0, "accept_hang", written), try(s, "ok")), keyed)), Skipped, ""},
	})
}

func TestPermanentConnectionFaults(t *testing.T) {
	pair := func(first *history.Attempt) *history.History { return run(call("c1", first, try(s, "ok"))) }
	table(t, attemptsPermanentOnce, []row{
		{"certificate once", run(call("c1", dial(0, "tls_bad_certificate"))), Pass, "1 permanent answer (a certificate"},
		{"certificate again", pair(dial(0, "tls_bad_certificate variant=expired")), Fail, "had met a certificate that must not be accepted (tls_bad_certificate variant=expired)"},
		{"certificate again is a MUST", pair(dial(0, "tls_bad_certificate")), Fail, "MUST"},
		{"no such name, again, is a SHOULD", pair(dial(0, "dns_not_found")), Fail, "SHOULD"},
		{"the worse one wins", run(call("c1", dial(0, "dns_not_found"), dial(s, "connect_refused")), call("c2", dial(0, "tls_bad_certificate"), try(s, "ok"))), Fail, "MUST"},
		{"resolver again", pair(dial(0, "dns_temporary")), Skipped, ""},
		{"alert again", pair(dial(0, "tls_handshake_failure")), Skipped, ""},
		{"version again", pair(dial(0, "tls_version_refused")), Skipped, ""},
		{"never met", pair(dial(0, "tls_bad_certificate", unmet)), Skipped, ""},
		{"not delivered", pair(dial(0, "tls_bad_certificate", func(a *history.Attempt) { a.Delivered = false })), Skipped, ""},
	})
}

// Where there was no connection every method is expected to be repeated; where there was one, the usual rules hold.
func TestRecoversAfterConnectionFaults(t *testing.T) {
	gaveUp := func(a *history.Attempt, m string) *history.History {
		return declares(run(with(call("c1", a), method(m), outcome(says("x", 0)))), history.Declared{MaxAttempts: 4, BaseDelay: s, MaxDelay: s})
	}
	table(t, livenessRecovers, []row{
		{"refused POST", gaveUp(dial(0, "connect_refused"), "POST"), Fail, "attempt 1 (connect_refused) was safe to repeat"},
		{"refused GET", gaveUp(dial(0, "connect_refused"), "GET"), Fail, ""},
		{"resolver, POST", gaveUp(dial(0, "dns_temporary"), "POST"), Fail, ""},
		{"closed, GET", gaveUp(dial(0, "close_at_accept"), "GET"), Fail, ""},
		{"closed, POST", gaveUp(dial(0, "close_at_accept"), "POST"), Skipped, ""},
		{"no such name", gaveUp(dial(0, "dns_not_found"), "GET"), Skipped, ""},
		{"certificate", gaveUp(dial(0, "tls_bad_certificate"), "GET"), Skipped, ""},
		{"recovered", run(call("c1", dial(0, "connect_refused"), try(s, "ok"))), Pass, "1 call recovered"},
	})
}

func TestLastRealOfConnectionFaults(t *testing.T) {
	one := func(fault string, traits ...string) *history.History {
		return run(with(call("c1", dial(0, fault)), outcome(says("x", 0, traits...))))
	}
	for fault, right := range map[string]string{
		"connect_refused": history.TraitRefused, "dns_not_found": history.TraitDNS, "dns_temporary": history.TraitDNS,
		"accept_hang": history.TraitTimeout, "tls_handshake_hang": history.TraitDeadline, "tls_handshake_failure": history.TraitTLS,
		"tls_version_refused": history.TraitTLS, "tls_close_in_handshake": history.TraitEOF, "tls_bad_certificate": history.TraitCertificate,
	} {
		table(t, errorLastReal, []row{
			{fault, one(fault, right), Pass, ""},
			{fault + " masked", one(fault), Fail, fault + " in attempt 1"},
			{fault + " as something else", one(fault, history.TraitDecoding), Fail, ""},
		})
	}
	table(t, errorLastReal, []row{
		{"closed, without a sentinel", one("close_at_accept"), Pass, ""},
		{"closed, and a timeout in its place", one("close_at_accept", history.TraitDeadline), Fail, ""},
		{"one never met is no failure", run(with(call("c1", try(0, "503"), dial(s, "tls_handshake_hang", unmet)), outcome(says("x", 503)))), Pass, ""},
	})
}

// Of a request that did not arrive nothing is known but its key, and one that was never met is no attempt.
func TestUnarrivedRequests(t *testing.T) {
	table(t, bodyIntact, []row{{"no body arrived", run(call("c1", dial(0, "connect_refused"), try(s, "ok"))), Pass, "1 attempt,"}})
	table(t, keyStable, []row{
		{"one key", run(with(call("c1", dial(0, "connect_refused"), try(s, "ok")), keyed)), Pass, ""},
		{"unknown to the base transport", run(with(call("c1", try(s, "ok", key("k")), dial(2*s, "connect_refused")), func(c *history.Call) { c.Keyed = true })), Pass, ""},
		{"nothing known at all", run(with(call("c1", dial(s, "connect_refused")), func(c *history.Call) { c.Keyed = true })), Skipped, ""},
		{"a new key", run(with(call("c1", dial(0, "connect_refused", key("other")), try(s, "ok")), keyed)), Fail, "carried 2 keys"},
	})
	five := call("c1", try(0, "503"), try(s, "503"), try(2*s, "503"), dial(3*s, "accept_hang", unmet), try(3*s, "503"))
	table(t, attemptsBounded, []row{{"four of five", declares(run(five), history.Declared{MaxAttempts: 4}), Pass, "no call made more than 4 attempts"}})
}
