package server

import (
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
)

// A strike is a fault as it hits one attempt, with what a journal says of it: made once, and not for each of a herd.
type strike struct {
	fault          faults.Fault
	text, category string
	unprocessed    bool
	account        *history.Account
}

// strikeOf makes the strike of f. Callers hold mu.
func (s *Server) strikeOf(f faults.Fault) *strike {
	f.Times = 0 // its count in the sequence
	text := f.String()
	return &strike{f, text, string(f.Category()), f.Unprocessed(), s.accountOf(text)}
}

// claim writes the strike into the journal as what a is to meet. Callers hold Server.mu.
func (k *strike) claim(a *history.Attempt) {
	a.Fault, a.FaultName, a.Phase, a.Category = k.text, k.fault.Name, string(k.fault.Phase), k.category
	a.Unprocessed = k.unprocessed
	k.account.Claimed++
}

// choose asks the call's schedule for the fault of its next attempt; nil is none. Callers hold mu.
func (s *Server) choose(c *call, now time.Duration, reused, dial bool) *strike {
	f := c.schedule.Choose(&faults.Point{
		Seed: s.cfg.Seed, Scenario: s.cfg.Scenario, Route: c.route, Call: c.rec.ID,
		Attempt: len(c.rec.Attempts) + 1, At: now, Reused: reused, Dial: dial,
	})
	if f == nil {
		return nil
	}
	k := s.planned[f]
	if k == nil {
		k = s.strikeOf(*f)
		s.planned[f] = k
	}
	return k
}
