package server

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

// queueUp waits until a worker takes the attempt. It returns nil where there is nothing to be worked on: the server
// has no capacity, a planned fault strikes before any work, or the attempt is turned away, which fault then says.
func (s *Server) queueUp(c *call, a *history.Attempt, r *http.Request, fault *faults.Fault) *ticket {
	if s.station == nil || !fault.IsOK() && fault.Phase == faults.BeforeCommit {
		return nil
	}
	t := &ticket{ctx: r.Context(), work: &history.Work{}, service: s.station.draw(c.rec.ID, a.N)}
	s.mu.Lock()
	a.Work = t.work
	s.mu.Unlock()
	shed, waiting := s.station.enter(t)
	if shed != "" {
		s.claim(a, s.station.answer(shed, waiting), fault)
		return nil
	}
	// The attempt is over for its client when that leaves; the work goes on.
	stop := context.AfterFunc(t.ctx, func() { s.over(a) })
	<-t.begun
	stop()
	return t
}

// worked waits until the worker is done with t. It reports whether the client has left by then and nothing else
// is planned for the attempt; an attempt that was lost, and whose client is still there, meets a reset.
func (s *Server) worked(a *history.Attempt, t *ticket, fault *faults.Fault) (left bool) {
	if t == nil {
		return false
	}
	stop := context.AfterFunc(t.ctx, func() { s.over(a) })
	defer stop()
	<-t.done
	switch gone := t.ctx.Err() != nil; {
	case t.lost == "":
		return gone && fault.IsOK()
	case gone:
		return true
	}
	s.claim(a, reset, fault)
	return false
}

// reset is what an attempt meets that is refused or lost.
var reset = faults.Fault{Name: "connection_reset", Phase: faults.BeforeCommit}

// answer is what an attempt meets that the station does not take in.
func (s *station) answer(shed string, waiting int) faults.Fault {
	if shed != shedFull {
		return reset
	}
	switch s.capacity.Full {
	case scenarios.FullRefuse:
		return reset
	case scenarios.FullDrop:
		return faults.Fault{Name: "hang", Phase: faults.BeforeCommit}
	case scenarios.Full429:
		seconds := (s.drain(waiting) + time.Second - 1) / time.Second
		return mustParse(fmt.Sprintf("429 retry-after=%ds", seconds))
	}
	return mustParse("503")
}

// mustParse is for texts of this package's own.
func mustParse(text string) faults.Fault {
	f, err := faults.Parse(text)
	if err != nil {
		panic(err)
	}
	return f
}

// claim claims for the attempt what a server without capacity to spare does to it, as journal does for a planned
// fault.
func (s *Server) claim(a *history.Attempt, f faults.Fault, fault *faults.Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*fault = f
	a.Fault, a.FaultName, a.Phase, a.Category = f.String(), f.Name, string(f.Phase), string(f.Category())
	account := s.account(f)
	account.Planned = -1
	account.Claimed++
}
