package server

import (
	"cmp"
	"context"
	"hash/fnv"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

// A station is the queueing station that a server with a capacity is: workers that take attempts from a
// bounded queue in order of arrival. All its instants are offsets from the start of the run. It is safe for
// concurrent use.
type station struct {
	seed      uint64
	capacity  scenarios.Capacity
	incidents []scenarios.Incident
	now       func() time.Duration

	mu     sync.Mutex
	closed bool
	busy   map[*ticket]bool // being worked on
	queue  []*ticket        // queue[head:] waits
	head   int
	turns  int // attempts that a worker has taken
	since  int // attempts worked on since the last restart
	warm   scenarios.Incident
	timers []*time.Timer // of incidents
}

// A ticket is one attempt in the station.
type ticket struct {
	service time.Duration // as drawn; what it takes also depends on incidents
	ctx     context.Context
	work    *history.Work // written under station.mu; nil for an attempt of others
	begun   chan struct{} // closed when a worker has taken it, or it was lost
	done    chan struct{} // closed when the worker is free again, or it was lost
	turn    int           // its place among those worked on, from 1; 0: begun is not closed; under station.mu
	lost    string        // why it came to nothing: a shed reason; under station.mu until done is closed
	timer   *time.Timer
}

// Reasons for turning an attempt away, as history.Work.Shed has them.
const (
	shedFull    = "full"
	shedRefuse  = "refuse"
	shedRestart = "restart"
	shedLeft    = "left"   // not begun, because its client had left
	shedClosed  = "closed" // the world was closed
)

func newStation(seed uint64, c scenarios.Capacity, incidents []scenarios.Incident, now func() time.Duration) *station {
	return &station{seed: seed, capacity: c, incidents: incidents, now: now, busy: make(map[*ticket]bool, c.Workers)}
}

// start sets the timers of incidents that do something by themselves.
func (s *station) start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := func(t time.Duration, f func()) { s.timers = append(s.timers, time.AfterFunc(t-s.now(), f)) }
	for _, i := range s.incidents {
		switch i.Do {
		case scenarios.Restart:
			at(i.At, func() { s.restart(i) })
		case scenarios.Burst:
			for n := range i.Count {
				at(i.At+i.For*time.Duration(n)/time.Duration(i.Count), func() {
					s.enter(&ticket{service: s.draw("burst", n), ctx: context.Background()})
				})
			}
		}
	}
}

// close loses all that waits or is worked on.
func (s *station) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, t := range s.timers {
		t.Stop()
	}
	s.lose(shedClosed)
}

// draw returns the service time of an attempt, a function of the seed and of what identifies it.
func (s *station) draw(call string, attempt int) time.Duration {
	mean := float64(s.capacity.Service)
	h := fnv.New64a()
	_, _ = io.WriteString(h, call)
	r := rand.New(rand.NewPCG(s.seed, h.Sum64()+uint64(attempt)))
	switch s.capacity.Distribution {
	case scenarios.Exponential:
		mean *= r.ExpFloat64()
	case scenarios.LogNormal:
		// With σ² = ln 2 the standard deviation is as large as the mean, which is exp(μ + σ²/2).
		mean *= math.Exp(math.Sqrt(math.Ln2)*r.NormFloat64() - math.Ln2/2)
	}
	return max(1, time.Duration(mean))
}

// enter takes an attempt in. The answer is "" or why it is turned away; in that case the queue's length tells
// how much there is to do.
func (s *station) enter(t *ticket) (shed string, waiting int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return shedClosed, 0
	}
	now := s.now()
	waiting = len(s.queue) - s.head
	if t.work != nil {
		t.work.Ahead = waiting
	}
	shed = s.turnsAway(now, waiting)
	if t.work != nil {
		t.work.Shed = shed
	}
	if shed != "" {
		return shed, waiting
	}
	t.begun, t.done = make(chan struct{}), make(chan struct{})
	if len(s.busy) < s.capacity.Workers {
		s.begin(t, now)
	} else {
		s.queue = append(s.queue, t)
	}
	return "", waiting
}

// turnsAway says why an attempt that comes now is not taken in; "" if it is. The caller holds mu.
func (s *station) turnsAway(now time.Duration, waiting int) string {
	for _, i := range s.incidents {
		if now < i.At || now >= i.End() {
			continue
		}
		switch i.Do {
		case scenarios.Refuse:
			return shedRefuse
		case scenarios.Restart:
			return shedRestart
		}
	}
	if len(s.busy) == s.capacity.Workers && waiting >= s.capacity.Queue {
		return shedFull
	}
	return ""
}

// begin gives a worker to t. The caller holds mu.
func (s *station) begin(t *ticket, now time.Duration) {
	s.busy[t] = true
	s.turns++
	t.turn = s.turns
	if t.work != nil {
		t.work.Began = max(1, now)
	}
	close(t.begun)
	t.timer = time.AfterFunc(s.takes(now, t.service), func() { s.finish(t) })
}

// takes returns how long a work that begins now lasts: progress stops in a stall and is slower while the server is
// slow or its cache cold.
func (s *station) takes(now, service time.Duration) time.Duration {
	left := float64(service) * s.cold()
	at := now
	for {
		speed, until := s.speed(at)
		if until < 0 || left <= speed*float64(until-at) {
			return at - now + time.Duration(left/speed)
		}
		left -= speed * float64(until-at)
		at = until
	}
}

// speed returns the speed of work at an instant and when it next changes; -1: never again, and then it is not 0.
func (s *station) speed(at time.Duration) (speed float64, until time.Duration) {
	speed, until = 1, -1
	edge := func(t time.Duration) {
		if t > at && (until < 0 || t < until) {
			until = t
		}
	}
	for _, i := range s.incidents {
		if i.Do != scenarios.Stall && i.Do != scenarios.Slow {
			continue
		}
		edge(i.At)
		if at >= i.At && at < i.End() {
			edge(i.End())
			if i.Do == scenarios.Stall {
				speed = 0
			} else {
				speed /= i.Factor
			}
		}
	}
	return speed, until
}

// cold is how many times as long work takes because the cache has not been filled since the last restart.
func (s *station) cold() float64 {
	if s.warm.Count == 0 || s.since >= s.warm.Count {
		return 1
	}
	return 1 + (s.warm.Factor-1)*(1-float64(s.since)/float64(s.warm.Count))
}

// finish ends the work on t and gives its worker to the next.
func (s *station) finish(t *ticket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.busy[t] {
		return // lost in a restart at the same instant
	}
	delete(s.busy, t)
	s.since++
	now := s.now()
	if t.work != nil {
		t.work.Done, t.work.Wasted = now, t.ctx.Err() != nil
	}
	close(t.done)
	for s.head < len(s.queue) && len(s.busy) < s.capacity.Workers {
		next := s.queue[s.head]
		s.queue[s.head] = nil
		s.head++
		if s.capacity.Abandon && next.ctx.Err() != nil {
			s.forget(next, shedLeft)
			continue
		}
		s.begin(next, now)
	}
	if s.head > 64 && s.head > len(s.queue)/2 {
		s.queue = append(s.queue[:0], s.queue[s.head:]...)
		s.head = 0
	}
}

// restart loses everything and empties the cache.
func (s *station) restart(i scenarios.Incident) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since, s.warm = 0, i
	s.lose(shedRestart)
}

// working returns what is worked on, in the order in which the work began: clients that draw from one source then draw
// in the same order in each run. The caller holds mu.
func (s *station) working() []*ticket {
	return slices.SortedFunc(maps.Keys(s.busy), func(a, b *ticket) int { return cmp.Compare(a.turn, b.turn) })
}

// lose ends all tickets without their work done. The caller holds mu.
func (s *station) lose(why string) {
	for _, t := range s.working() {
		t.timer.Stop()
		s.forget(t, why)
	}
	for _, t := range s.queue[s.head:] {
		s.forget(t, why)
	}
	clear(s.busy)
	s.queue, s.head = nil, 0
}

// forget ends a ticket that is not, or no longer, worked on.
func (s *station) forget(t *ticket, why string) {
	t.lost = why
	if t.work != nil {
		t.work.Shed = why
	}
	if t.turn == 0 {
		close(t.begun)
	}
	close(t.done)
}

// drain is how long the server needs to work off so many attempts.
func (s *station) drain(waiting int) time.Duration {
	return time.Duration(waiting+1) * s.capacity.Service / time.Duration(s.capacity.Workers)
}
