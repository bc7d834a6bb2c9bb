package scenarios

import (
	"fmt"
	"slices"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/internal/nearest"
)

const (
	maxWorkers   = 100_000
	maxQueue     = 1_000_000
	maxService   = time.Hour
	maxFactor    = 1000
	maxIncidents = 100
)

// capacity validates what the server can do, and what happens to it.
func (v *validator) capacity(s *Scenario) {
	if s.Server.Capacity == nil {
		if len(s.Server.Incidents) > 0 {
			v.add("server.incidents", "incidents happen to a server that has a capacity: say server.capacity as well")
		}
		return
	}
	c, p := s.Server.Capacity, "server.capacity."
	if s.Server.Protocol != faults.HTTP1 {
		v.add("server.capacity", "a server with a capacity speaks http/1.1: what it refuses is reset, and with it would go all that its connection carries")
	}
	switch {
	case c.Workers < 1:
		v.add(p+"workers", "%d workers do no work: want 1 or more", c.Workers)
	case c.Workers > maxWorkers:
		v.add(p+"workers", "%d workers are more than %d, the most that make sense here", c.Workers, maxWorkers)
	}
	if c.Service == 0 {
		v.add(p+"service", "there is no service time: say how long a worker is busy with one attempt, like 100ms")
	}
	v.duration(p+"service", c.Service, maxService)
	if c.Queue < 0 || c.Queue > maxQueue {
		v.add(p+"queue", "a queue of %d: want 0 to %d", c.Queue, maxQueue)
	}
	v.oneOf(p+"distribution", "distribution", string(c.Distribution), distributions())
	v.oneOf(p+"full", "overflow", string(c.Full), overflows())
	for i := range s.Server.Incidents {
		v.incident(s.Server.Incidents, i)
	}
}

func (v *validator) oneOf(path, what, word string, list []string) {
	if !slices.Contains(list, word) {
		v.near(path, nearest.Word(word, list), "unknown %s %q; want %s", what, clip(word), oneOf(list))
	}
}

func (v *validator) incident(all []Incident, n int) {
	i, p := all[n], fmt.Sprintf("server.incidents[%d].", n)
	v.oneOf(p+"do", "trigger", string(i.Do), triggers())
	v.duration(p+"at", i.At, maxSpan)
	v.duration(p+"for", i.For, maxSpan)
	if i.For == 0 && (i.Do == Stall || i.Do == Slow || i.Do == Refuse) {
		v.add(p+"for", "%s for no time is nothing: say how long", i.Do)
	}
	switch i.Do {
	case Slow, Restart:
		if !(i.Factor > 1 && i.Factor <= maxFactor) && !(i.Do == Restart && i.Factor == 0 && i.Count == 0) {
			v.add(p+"factor", "a factor of %v: want how many times as long the work takes, more than 1 and at most %d", i.Factor, maxFactor)
		}
	default:
		if i.Factor != 0 {
			v.add(p+"factor", "%s has no factor", clip(string(i.Do)))
		}
	}
	switch i.Do {
	case Burst:
		if i.Count < 1 || i.Count > maxCalls {
			v.add(p+"count", "a burst of %d attempts: want 1 to %d", i.Count, maxCalls)
		}
	case Restart:
		if i.Count < 0 || i.Count > maxCalls || i.Factor > 1 && i.Count == 0 {
			v.add(p+"count", "a cache that is warm after %d attempts: want 1 to %d", i.Count, maxCalls)
		}
	default:
		if i.Count != 0 {
			v.add(p+"count", "%s has no count", clip(string(i.Do)))
		}
	}
	for j, o := range all[:n] {
		if o.Do == i.Do && i.Do != Burst && o.At < i.End() && i.At < o.End() {
			v.add(p+"at", "this %s overlaps that of server.incidents[%d]", i.Do, j)
		}
	}
}
