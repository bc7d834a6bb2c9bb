package harness

import (
	"time"

	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
)

// A Result is one scenario run by one client in one world, judged.
type Result struct {
	Scenario string `json:"scenario"`
	Summary  string `json:"summary"`
	Rule     string `json:"rule"`
	Source   string `json:"source,omitempty"`
	Client   string `json:"client"`
	World    string `json:"world"`
	Seed     uint64 `json:"seed"`
	// Drawn says that the scenario draws faults, arrivals or service times from the seed: with another one it
	// is another run.
	Drawn    bool            `json:"drawn,omitempty"`
	Status   check.Status    `json:"status"` // the worst of its verdicts at the level that was asked for
	Reason   string          `json:"reason,omitempty"`
	Verdicts []check.Verdict `json:"verdicts,omitempty"`
	// Findings are the harness's own: of the scenario or of itself, never of the client.
	Findings []history.Finding `json:"findings,omitempty"`
	// Decisions are the server-side decisions, by call and attempt. The same seed gives the same ones.
	Decisions []Decision       `json:"decisions,omitempty"`
	History   *history.History `json:"history,omitempty"`
	Simulated time.Duration    `json:"simulated_ns"` // on the world's clock
	Real      time.Duration    `json:"real_ns"`
}

// A Decision is what the server's schedule chose for one attempt.
type Decision struct {
	Call    string `json:"call"`
	Attempt int    `json:"attempt"`
	Fault   string `json:"fault"`
}
