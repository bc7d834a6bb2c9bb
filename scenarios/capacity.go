package scenarios

import (
	"time"
)

// A Capacity bounds how fast the server works: Workers take attempts from a queue in order of arrival, and each is
// busy with one for a time drawn from Distribution. An attempt whose client has left is worked on all the same,
// unless Abandon is set: the worker does not know. The server's rate is Workers ÷ Service.
type Capacity struct {
	Workers      int           // at work at once
	Service      time.Duration // mean time that a worker is busy with one attempt
	Distribution Distribution  // default fixed
	Queue        int           // attempts that can wait; 0: none
	Full         Overflow      // what an attempt meets when the queue is full; default 503
	Abandon      bool          // an attempt whose client left while it waited is not begun
}

// Rate is how many attempts the server can do a second.
func (c Capacity) Rate() float64 { return float64(c.Workers) / c.Service.Seconds() }

// Distribution says how service times are drawn around their mean.
type Distribution string

const (
	Fixed       Distribution = "fixed"
	Exponential Distribution = "exponential"
	// LogNormal has a coefficient of variation of 1, as the exponential, and a heavier tail.
	LogNormal Distribution = "lognormal"
)

// Overflow says what an attempt meets that finds the queue full.
type Overflow string

const (
	Full503    Overflow = "503"    // at once
	Full429    Overflow = "429"    // at once, with the seconds in which the queue will have been worked off as Retry-After
	FullRefuse Overflow = "refuse" // the connection is reset
	FullDrop   Overflow = "drop"   // silence, until the client leaves
)

// An Incident changes what the server can do, from At on for the time of For: the trigger of an overload.
type Incident struct {
	At     time.Duration // from the start of the run
	For    time.Duration
	Do     Trigger
	Factor float64 // slow, and restart: how many times as long the work takes
	Count  int     // burst: attempts of others; restart: attempts after which the cache is warm
}

// End is when the incident is over.
func (i Incident) End() time.Duration { return i.At + i.For }

// Trigger is what an incident does.
type Trigger string

const (
	// Stall stops all workers; attempts still arrive and wait.
	Stall Trigger = "stall"
	// Slow makes work take Factor times as long.
	Slow Trigger = "slow"
	// Refuse resets the connection of every attempt that arrives.
	Refuse Trigger = "refuse"
	// Burst adds Count attempts of others, evenly spread over For, or all at once where For is 0.
	Burst Trigger = "burst"
	// Restart loses what waits and what is worked on, and refuses as Refuse does while it lasts. Then the cache is
	// empty: work takes Factor times as long, and less and less so until Count attempts have been worked on.
	Restart Trigger = "restart"
)

// Arrivals says how the calls of a group follow each other.
type Arrivals string

const (
	Even    Arrivals = "even"
	Poisson Arrivals = "poisson" // seeded, with Every as the mean distance
)

func distributions() []string {
	return []string{string(Fixed), string(Exponential), string(LogNormal)}
}

func overflows() []string {
	return []string{string(Full503), string(Full429), string(FullRefuse), string(FullDrop)}
}

func triggers() []string {
	return []string{string(Stall), string(Slow), string(Refuse), string(Burst), string(Restart)}
}

func arrivals() []string { return []string{string(Even), string(Poisson)} }
