package faults

import (
	"fmt"
	"math"
	"math/bits"
	"time"
)

// A Schedule says which fault hits which attempt. It is read-only once a run has begun.
type Schedule struct {
	Sequence []Fault // attempt k of a call gets the k-th; past the end: ok
	Storms   []Storm // where the sequence says ok
	Draw     *Draw   // where neither sequence nor storm has a fault
}

// A Storm is a fault for every attempt that arrives in a window of time.
type Storm struct {
	From, To time.Duration // offsets from the start of the run; To is exclusive
	Fault    Fault
	Route    string // path template of the calls that it meets; "": all
}

// Meets reports whether the storm meets calls of that route.
func (w Storm) Meets(route string) bool { return w.Route == "" || w.Route == route }

// A Draw gives an attempt one of Faults, each as likely as the other, with probability P. A P of 0 is the
// same as no Draw.
type Draw struct {
	P      float64
	Faults []Fault
	Route  string // path template of the calls that it meets; "": all
}

// Meets reports whether the draw meets calls of that route.
func (d Draw) Meets(route string) bool { return d.Route == "" || d.Route == route }

// A Point is one attempt as the schedule sees it.
type Point struct {
	Seed     uint64
	Scenario string
	Route    string
	Call     string
	Attempt  int           // from 1
	At       time.Duration // since the start of the run
	Reused   bool          // on a connection that has carried a request before
	Dial     bool          // no request yet: the connection for the attempt is about to be made
}

// maxPlanned bounds what Planned writes down; no run has so many attempts of one call.
const maxPlanned = 10_000

// For returns the fault for one attempt: the sequence's, else the first storm's, else the draw's. A fault
// that is restricted to another kind of connection leaves the attempt to the next of them, and so does one
// of LevelConnection where the attempt has come without a dial. At a dial the answer is a fault of that
// level or ok: whatever else is planned strikes when the request arrives. The answer depends on p alone,
// never on what was asked before. It is for this one attempt: its Times is 0, as in Planned.
func (s Schedule) For(p Point) Fault {
	own := s.Choose(&p)
	if own == nil {
		return Fault{Name: OK}
	}
	f := *own
	f.Times = 0
	return f
}

// Choose is For without a copy, for what is asked at every attempt: the fault as it stands in the schedule, its Times
// included, and nil for ok. It is not to be changed.
func (s *Schedule) Choose(p *Point) *Fault {
	f := s.chosen(p)
	if f != nil && p.Dial && f.Level() != LevelConnection {
		return nil
	}
	return f
}

func (s *Schedule) chosen(p *Point) *Fault {
	if f := s.sequence(p.Attempt); f != nil && f.strikes(p) {
		return f
	}
	for i := range s.Storms {
		w := &s.Storms[i]
		if p.At >= w.From && p.At < w.To && (w.Route == "" || w.Route == p.Route) && w.Fault.strikes(p) {
			return &w.Fault
		}
	}
	if d := s.Draw; d != nil && len(d.Faults) > 0 && d.Meets(p.Route) {
		h := p.hash()
		// The upper 53 bits are a float64 in [0, 1): never less than a P of 0, always less than one of 1.
		if float64(h>>11)/(1<<53) < d.P {
			i, _ := bits.Mul64(mix(h), uint64(len(d.Faults)))
			if f := &d.Faults[i]; f.strikes(p) {
				return f
			}
		}
	}
	return nil
}

func (f *Fault) strikes(p *Point) bool {
	switch {
	case f.Name == "" || f.Name == OK:
		return false
	case !p.Dial && find(f.Name).at(LevelConnection):
		return false
	case f.On == Fresh:
		return !p.Reused
	case f.On == Reused:
		return p.Reused
	}
	return true
}

// sequence returns the entry of the sequence that takes attempt k, nil past the end.
func (s *Schedule) sequence(k int) *Fault {
	for i := range s.Sequence {
		f := &s.Sequence[i]
		if f.Times == Forever {
			return f
		}
		if k -= max(1, f.Times); k <= 0 {
			return f
		}
	}
	return nil
}

// Planned returns the sequence with each entry as often as it is to strike; endless says that the last one
// goes on for ever.
func (s Schedule) Planned() (planned []Fault, endless bool) {
	for _, f := range s.Sequence {
		n := max(1, f.Times)
		endless = f.Times == Forever
		f.Times = 0
		for ; n > 0; n-- {
			if len(planned) == maxPlanned {
				return planned, false
			}
			planned = append(planned, f)
		}
		if endless {
			return planned, true
		}
	}
	return planned, false
}

// Validate reports the first thing wrong with the schedule.
func (s Schedule) Validate() error {
	for i, f := range s.Sequence {
		if err := f.Validate(); err != nil {
			return fmt.Errorf("sequence entry %d: %w", i+1, err)
		}
		if f.Times == Forever && i+1 < len(s.Sequence) {
			return fmt.Errorf("sequence entry %d: no attempt gets past times=forever", i+1)
		}
	}
	for i, w := range s.Storms {
		if err := w.validate(); err != nil {
			return fmt.Errorf("storm %d: %w", i+1, err)
		}
	}
	if s.Draw != nil {
		if err := s.Draw.validate(); err != nil {
			return fmt.Errorf("draw: %w", err)
		}
	}
	return nil
}

func (w Storm) validate() error {
	switch {
	case w.From < 0:
		return fmt.Errorf("it begins at %v, before the run", w.From)
	case w.To <= w.From:
		return fmt.Errorf("it ends at %v, not after its beginning at %v", w.To, w.From)
	case w.Fault.IsOK():
		return fmt.Errorf("ok is no fault")
	}
	return single(w.Fault)
}

func (d Draw) validate() error {
	switch {
	case math.IsNaN(d.P) || d.P < 0 || d.P > 1:
		return fmt.Errorf("a probability of %v: want 0 to 1", d.P)
	case len(d.Faults) == 0:
		return fmt.Errorf("it has no faults to draw from")
	}
	for i, f := range d.Faults {
		if err := single(f); err != nil {
			return fmt.Errorf("fault %d: %w", i+1, err)
		}
	}
	return nil
}

// single validates a fault outside of a sequence.
func single(f Fault) error {
	if f.Times != 0 && f.Times != 1 {
		return fmt.Errorf("times= has a meaning only in a sequence")
	}
	return f.Validate()
}

// hash is a function of what identifies the attempt, and of nothing else: 64-bit FNV-1a over the seed and
// the attempt as 8 bytes, least first, and each text behind its length in the same form, then mix. Neither
// Go's version nor the platform has a say in it, so that a printed seed replays a run anywhere.
func (p Point) hash() uint64 {
	h := uint64(14695981039346656037)
	octet := func(b byte) { h = (h ^ uint64(b)) * 1099511628211 }
	word := func(n uint64) {
		for range 8 {
			octet(byte(n))
			n >>= 8
		}
	}
	word(p.Seed)
	for _, s := range [...]string{p.Scenario, p.Route, p.Call} {
		word(uint64(len(s)))
		for i := range len(s) {
			octet(s[i])
		}
	}
	word(uint64(p.Attempt))
	return mix(h)
}

// mix is one step of splitmix64 (Steele, Lea, Flood, 2014): FNV's upper bits depend too little on the last
// bytes to be used as they are.
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
