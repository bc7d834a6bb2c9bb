package server

import (
	"fmt"
	"sort"

	"github.com/retrychaos/retrychaos/harness/history"
)

// Record copies what the server knows into h: the calls with their attempts, the ledger, the account of
// the faults and the findings. It may be called at any time; what happens later is not in the copy.
func (s *Server) Record(h *history.History) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.AttemptCap = s.cfg.AttemptCap
	h.KeyMode = string(s.cfg.Keys)
	if s.station != nil {
		c := s.station.capacity
		h.Capacity = &history.Capacity{Workers: c.Workers, Service: c.Service, Queue: c.Queue}
		s.station.mu.Lock() // which guards the work of attempts
		defer s.station.mu.Unlock()
	}
	h.Refreshes = s.tokens
	h.KeyExpiry = s.cfg.Expiry
	h.Calls = make([]*history.Call, 0, len(s.order))
	for _, c := range s.order {
		rec := *c.rec
		rec.Attempts = make([]*history.Attempt, len(c.rec.Attempts))
		for i, a := range c.rec.Attempts {
			one := *a
			if a.Work != nil {
				work := *a.Work
				one.Work = &work
			}
			rec.Attempts[i] = &one
		}
		rec.Trips = nil
		h.Calls = append(h.Calls, &rec)
	}
	h.Effects = append([]history.Effect(nil), s.ledger...)
	h.Findings = append(h.Findings, s.findings...)
	if n := s.keys.dropped; n > 0 {
		h.Findings = append(h.Findings, history.Finding{Kind: history.FindingHarness,
			Text: fmt.Sprintf("the idempotency store was full (it keeps %d keys and %d bytes) and has forgotten %d keys before their time", s.cfg.MaxKeys, s.cfg.MaxKeyBytes, n)})
	}
	h.Faults = make([]history.Account, 0, len(s.accounts))
	for _, a := range s.accounts {
		h.Faults = append(h.Faults, *a)
	}
	sort.Slice(h.Faults, func(i, j int) bool { return h.Faults[i].Fault < h.Faults[j].Fault })
}
