package browser

import (
	"fmt"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/reports"
)

// sample is a report of so many clients and scenarios, ten scenarios a family. Of every client each seventh scenario
// fails at MUST, and each eleventh at MAY.
func sample(clients, scenarios int) *reports.Report {
	run := reports.Run{Version: "0.1.0", Seed: 1<<64 - 1, World: "virtual", Level: check.Must, Started: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)}
	var results []harness.Result
	for c := range clients {
		name := fmt.Sprintf("client-%02d", c)
		run.Clients = append(run.Clients, reports.ClientInfo{Name: name, Version: "1.0"})
		for s := range scenarios {
			results = append(results, one(name, s, (c+s)%7 == 0, (c+s)%11 == 0))
		}
	}
	return reports.New(run, results)
}

func one(client string, s int, fails, may bool) harness.Result {
	r := harness.Result{
		Scenario: fmt.Sprintf("family-%02d/scenario-%03d", s/10, s), Summary: "A charge is lost on its way back.", Client: client,
		World: "virtual", Seed: 1<<64 - 1, Status: check.Pass, Simulated: time.Second,
		Verdicts: []check.Verdict{{Check: "attempts.bounded", Status: check.Pass, Level: check.Must, Reason: "1 attempt"}},
	}
	if may {
		r.Verdicts = append(r.Verdicts, check.Verdict{Check: "timing.backoff-grows", Status: check.Fail, Level: check.May, Reason: "the waits are constant", Calls: []string{"c1"}})
		r.History = charged(r.Scenario, client)
	}
	if fails {
		r.Status, r.Reason = check.Fail, "effects.once"
		r.Verdicts = append(r.Verdicts, check.Verdict{Check: "effects.once", Status: check.Fail, Level: check.Must, Reason: "call c1 had 2 effects",
			Source: "RFC 9110 §9.2.2", Calls: []string{"c1"}, Evidence: []string{"effect 1 by attempt 1", "effect 2 by attempt 3"}})
		r.History = charged(r.Scenario, client)
	}
	return r
}

// charged is a history with three attempts, one of them resent, and two effects.
func charged(scenario, client string) *history.History {
	const s = time.Second
	return &history.History{
		Scenario: scenario, Client: client, World: "virtual", End: 4 * s,
		Effects: []history.Effect{{N: 1, At: 1, Call: "c1", Attempt: 1}, {N: 2, At: 3 * s, Call: "c1", Attempt: 3}},
		Calls: []*history.Call{{
			ID: "c1", Method: "POST", Path: "/charges/c1", Ended: 4 * s, Returned: true, Outcome: history.Outcome{OK: true, Status: 201},
			Attempts: []*history.Attempt{
				{N: 1, At: 1, Ended: s / 2, Conn: 1, Fault: "429@after_commit retry-after=5s", Category: "status", Status: 429, Delivered: true, Effect: 1,
					RetryAfter: []string{"5"}, NotBefore: 5 * s},
				{N: 2, At: 3 * s, Ended: 3 * s, Conn: 1, Reused: true, Fault: "connection_reset", Category: "transport", Delivered: true},
				{N: 3, At: 3 * s, Ended: 4 * s, Conn: 2, Hidden: true, Fault: "ok", Status: 201, Delivered: true, Effect: 2},
			},
		}},
	}
}

// compared is a comparison of two runs of one client: in the new one every seventh scenario of twenty fails.
func compared() *reports.Comparison {
	run := reports.Run{Version: "0.1.0", Seed: 7, World: "virtual", Level: check.Must, Clients: []reports.ClientInfo{{Name: "client", Version: "1.0"}}}
	var old, new []harness.Result
	for s := range 20 {
		a := one("client", s, false, false)
		a.Verdicts = append(a.Verdicts, check.Verdict{Check: "effects.once", Status: check.Pass, Level: check.Must, Reason: "1 effect"})
		a.History = charged(a.Scenario, a.Client)
		c := a.History.Calls[0]
		c.Attempts, c.Ended, a.History.Effects = c.Attempts[:1], time.Second/2, a.History.Effects[:1]
		c.Outcome = history.Outcome{Error: "429", Status: 429}
		b := a
		if s%7 == 0 {
			b = one("client", s, true, false)
		}
		old, new = append(old, a), append(new, b)
	}
	return reports.Diff(reports.New(run, old), reports.New(run, new))
}
