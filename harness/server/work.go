package server

import (
	"context"
	"fmt"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

// worthy reports whether there is anything to be worked on: no planned fault strikes before any work.
func (h *handling) worthy() bool {
	return h.fault == nil || h.within || h.fault.Phase != faults.BeforeCommit && !h.fault.BeforeBody()
}

// queueUp waits until a worker takes the attempt. Where it is turned away it gets no ticket, and the fault says how.
func (h *handling) queueUp() {
	s, a := h.server, h.attempt
	t := &ticket{ctx: h.exchange.R.Context(), work: &history.Work{}, service: s.station.draw(h.call.rec.ID, a.N)}
	s.mu.Lock()
	a.Work = t.work
	s.mu.Unlock()
	shed, waiting := s.station.enter(t)
	if shed != "" {
		h.turnAway(s.station.answer(shed, waiting))
		return
	}
	// The attempt is over for its client when that leaves; the work goes on.
	stop := context.AfterFunc(t.ctx, func() { s.over(a) })
	<-t.begun
	stop()
	h.ticket = t
}

// worked waits until the worker is done with the ticket. It reports whether the client has left by then and nothing
// else is planned for the attempt; an attempt that was lost, and whose client is still there, meets a reset.
func (h *handling) worked() (left bool) {
	t, s, a := h.ticket, h.server, h.attempt
	stop := context.AfterFunc(t.ctx, func() { s.over(a) })
	defer stop()
	<-t.done
	switch gone := t.ctx.Err() != nil; {
	case t.lost == "":
		return gone && (h.fault == nil || h.within)
	case gone:
		return true
	}
	h.turnAway(reset)
	return false
}

// answer is what an attempt meets that the station does not take in.
func (s *station) answer(shed string, waiting int) string {
	if shed != shedFull {
		return reset
	}
	switch s.capacity.Full {
	case scenarios.FullRefuse:
		return reset
	case scenarios.FullDrop:
		return "hang"
	case scenarios.Full429:
		return fmt.Sprintf("429 retry-after=%ds", (s.drain(waiting)+time.Second-1)/time.Second)
	}
	return "503"
}

// reset is what an attempt meets that is refused or lost.
const reset = "connection_reset"

// turnAway claims a fault for the attempt that a server without capacity to spare turns away, as journal does for a
// planned one. The text is one of this package's own.
func (h *handling) turnAway(text string) {
	s := h.server
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.strikes[text]
	if k == nil {
		f, err := faults.Parse(text)
		if err != nil {
			panic(err)
		}
		k = s.strikeOf(f)
		k.account.Planned = -1
		s.strikes[text] = k
	}
	h.fault = &k.fault
	k.claim(h.attempt)
}
