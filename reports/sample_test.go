package reports

import (
	"fmt"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
)

const ms = time.Millisecond

func pass(id string) check.Verdict {
	return check.Verdict{Check: id, Status: check.Pass, Level: check.Must, Reason: "holds"}
}

// result is one that passes.
func result(client, scenario string) harness.Result {
	return harness.Result{
		Scenario: scenario, Summary: "A summary of " + scenario + ".", Rule: "effects.once", Client: client,
		World: "virtual", Seed: 42, Status: check.Pass, Verdicts: []check.Verdict{pass("effects.once")},
		Decisions: []harness.Decision{{Call: "c1", Attempt: 1, Fault: "ok"}},
		Simulated: 3 * time.Second, Real: 130 * time.Microsecond,
	}
}

// failing adds a verdict that fails.
func failing(r harness.Result, v check.Verdict) harness.Result {
	v.Status = check.Fail
	if v.Level == "" {
		v.Level = check.Must
	}
	r.Status, r.Reason = check.Fail, v.Check+": "+v.Reason
	r.Verdicts = append(r.Verdicts[:len(r.Verdicts):len(r.Verdicts)], v)
	return r
}

// duplicated is a run in which a reset after the commit charged twice.
func duplicated(client, scenario string) harness.Result {
	r := failing(result(client, scenario), check.Verdict{
		Check: "effects.once", Source: "RFC 9110 §9.2.2", Calls: []string{"c1"},
		Reason:   "call c1 had 2 effects, by attempts 1 and 2",
		Evidence: []string{"effect 1 at 2ms by attempt 1", "effect 2 at 1.004s by attempt 2"},
		Notes:    []string{"the client sent no Idempotency-Key"},
	})
	r.Summary = "A charge is committed and its reply is lost; a good client does not charge again."
	r.History = &history.History{
		Scenario: scenario, Client: client, World: "virtual", Seed: 42, KeyMode: "ignore",
		Start: time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC), End: 1006 * ms, AttemptCap: 100,
		Effects: []history.Effect{
			{N: 1, At: 2 * ms, Call: "c1", Attempt: 1, Method: "POST", Resource: "/charges/c1", Conn: 1},
			{N: 2, At: 1004 * ms, Call: "c1", Attempt: 2, Method: "POST", Resource: "/charges/c1", Conn: 2},
		},
		Calls: []*history.Call{{
			ID: "c1", Group: "calls", Method: "POST", Path: "/charges/c1", Resource: "/charges/c1",
			Ended: 1006 * ms, Returned: true, Deadline: 30 * time.Second, Planned: []string{"connection_reset@after_commit"},
			Outcome: history.Outcome{OK: true, Status: 201, Attempts: 2},
			Attempts: []*history.Attempt{
				{N: 1, At: ms, Ended: 3 * ms, Conn: 1, Method: "POST", Fault: "connection_reset@after_commit",
					FaultName: "connection_reset", Phase: "after_commit", Category: "transport", Delivered: true, Effect: 1},
				{N: 2, At: 1003 * ms, Ended: 1005 * ms, Conn: 2, Method: "POST", Fault: "ok", Category: "none",
					Delivered: true, Status: 201, Effect: 2},
			},
		}},
		Faults: []history.Account{{Fault: "connection_reset@after_commit", Planned: 1, Claimed: 1, Delivered: 1}},
		Leaks:  history.Leaks{Known: true},
	}
	return r
}

// impatient is a run in which Retry-After was not obeyed.
func impatient(client string) harness.Result {
	r := failing(result(client, "rate-limits/429-seconds"), check.Verdict{
		Check: "timing.retry-after", Source: "RFC 9110 §10.2.3", Calls: []string{"c1"},
		Reason: "call c1 came back after 500ms, 1.5s before Retry-After allowed",
	})
	r.History = &history.History{Calls: []*history.Call{{
		ID: "c1", Method: "GET", Path: "/charges/c1", Ended: 503 * ms, Returned: true,
		Outcome: history.Outcome{OK: true, Status: 200},
		Attempts: []*history.Attempt{
			{N: 1, At: ms, Ended: 2 * ms, Conn: 1, Fault: "429 retry-after=2s", Category: "status", Delivered: true,
				Status: 429, RetryAfter: []string{"2"}, NotBefore: 2002 * ms},
			{N: 2, At: 502 * ms, Ended: 503 * ms, Conn: 1, Reused: true, Fault: "ok", Delivered: true, Status: 200},
		},
	}}}
	return r
}

// sample is a run with some of everything.
func sample(client string) []harness.Result {
	var out []harness.Result
	for _, key := range []string{"honour", "ignore", "require"} {
		for _, f := range []string{"dropped", "hung", "reset"} {
			name := fmt.Sprintf("duplicates/post-unkeyed-%s-server-%s", f, key)
			if key == "honour" || f == "dropped" {
				out = append(out, result(client, name))
			} else {
				out = append(out, duplicated(client, name))
			}
		}
	}
	for _, n := range []string{"400", "401", "403", "404", "422"} {
		out = append(out, result(client, "permanent/"+n+"-once"))
	}
	out = append(out, impatient(client), result(client, "rate-limits/503-date"))

	spread := failing(result(client, "herd/storm-1000"), check.Verdict{
		Check: "timing.spread", Level: check.Should, Source: "AWS Architecture Blog, Exponential Backoff and Jitter",
		Reason: "1000 clients came back within 12ms of each other, where 410 are expected at most",
	})
	spread.Verdicts[0].Notes = []string{"the first wait has no jitter"}
	out = append(out, spread)

	crashed := result(client, "permanent/409-once")
	crashed.Status = check.Unknown
	crashed.Verdicts = append(crashed.Verdicts, check.Verdict{Check: "key.stable", Status: check.Unknown, Level: check.Must,
		Reason: "the check crashed: index out of range [3] with length 3", Evidence: []string{"goroutine 7 [running]:", "\tcheck.go:81"}})
	capped := result(client, "bounded/endless-hang")
	capped.Status = check.Unknown
	capped.Findings = []history.Finding{{Kind: history.FindingWorldCap, Text: "the limit of 24h on the world's clock was reached", Call: "c1"}}
	out = append(out, crashed, capped)

	for _, n := range []string{"tls/bad-certificate", "tls/handshake"} {
		s := result(client, n)
		s.Status, s.Verdicts, s.Reason = check.Skipped, nil, "does not run in the virtual world: it needs a real certificate"
		out = append(out, s)
	}
	return out
}

func fixed(run Run, results []harness.Result) *Report {
	run.Version, run.Seed, run.World = "0.1.0", 42, "virtual"
	run.Started = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	if run.Level == "" {
		run.Level = check.Must
	}
	run.Real = 1200 * ms
	r := New(run, results)
	r.Tool.Go = "go1.26"
	return r
}

func oneClient() *Report {
	return fixed(Run{Clients: []ClientInfo{{Name: "example", Version: "1.2.0", Declared: history.Declared{MaxAttempts: 3}}}}, sample("example"))
}

func threeClients() *Report {
	results := sample("careless")
	for _, s := range sample("careful") {
		if s.Status == check.Skipped {
			results = append(results, s)
			continue
		}
		results = append(results, result("careful", s.Scenario))
	}
	results = append(results, sample("curl")[3:12]...)
	return fixed(Run{Clients: []ClientInfo{
		{Name: "careful", Version: "0.1.0"}, {Name: "careless", Version: "2.17.2"},
		{Name: "curl", Version: "8.14.1", Repro: "retrychaos run --exec " + ShellQuote("curl -sS --retry 3 -d {body} {url}")},
	}}, results)
}
