// Package scenarios holds scenarios as data: what calls an application makes, what goes wrong, how the
// server behaves and what is expected. A scenario is written in YAML or as a Go literal; the two can say
// the same things. The library that ships with retrychaos is embedded: see Library.
package scenarios

import (
	"net/http"
	"time"

	"github.com/retrychaos/retrychaos/faults"
)

// KeyMode is what the server does with an Idempotency-Key.
type KeyMode string

const (
	// Honour stores the reply by key: a repeat is answered from the store, 409 while the first is at
	// work, 422 when the payload differs.
	Honour KeyMode = "honour"
	// Ignore does not look at keys: each attempt that commits is an effect.
	Ignore KeyMode = "ignore"
	// Require honours, and answers 400 to a non-idempotent request without a key.
	Require KeyMode = "require"
)

// World names where a scenario can run.
type World string

const (
	Virtual  World = "virtual"
	Loopback World = "loopback"
)

// A Scenario is calls + schedule + server behaviour + expectations. Load and Validate make sure that it
// makes sense. It is read-only once validated.
type Scenario struct {
	Name    string   // family/name: letters, digits, '-', one '/'
	Summary string   // one sentence: what happens and what a good client does
	Rule    string   // id of the check that it is about
	Source  string   // RFC section, draft, paper or public thread that it is drawn from
	Labels  []string // for filters
	Worlds  []World  // where it can run; empty: everywhere
	Why     string   // why it cannot run elsewhere, where Worlds is set

	Calls  []Group
	Server Server

	Faults []faults.Fault // sequence for every call of a group that has none of its own
	Storms []faults.Storm // in time; a storm wins over the sequence's ok
	Draw   *faults.Draw   // seeded; where neither sequence nor storm has a fault

	Connection faults.ConnState // reused: a connection is warmed before the first call
	Expect     Expect
	// Settle is how long the world goes on after the last call, to see attempts that come late. Default 1s
	// in the virtual world.
	Settle time.Duration

	Origin string // file:line of its definition, for messages
}

// A Group is one or more calls of one kind.
type Group struct {
	Name   string // default "calls", "calls2" …
	Method string // default POST
	Path   string // default /charges/{call}; must hold {call}
	// Resource is what the calls write, where several write the same thing. Default: the path.
	Resource string
	Count    int  // default 1
	Key      bool // the application asks for an idempotency key
	// KeyUntrusted: the application sends a key but does not know the server to honour it, so that it
	// is no licence to repeat.
	KeyUntrusted bool
	Body         string        // default for POST, PUT, PATCH: a small JSON object
	Header       http.Header   // further request headers
	Deadline     time.Duration // from the call's start; default 30s; NoDeadline for none
	CancelAfter  time.Duration // the application cancels so long after the call's start; 0: never
	Start        time.Duration // from the start of the run
	Every        time.Duration // distance between the starts of the group's calls
	Arrivals     Arrivals      // how the starts follow each other; default even
	After        string        // starts when the calls of that group are over (then Start counts from there)
	Fleet        bool          // every call has a client instance, and connections, of its own
	SameInstant  bool          // no start skew at all: all start in the same nanosecond
	Faults       []faults.Fault
}

// NoDeadline as Deadline leaves a call without one.
const NoDeadline time.Duration = -1

// Server is how the fake server behaves where no fault strikes.
type Server struct {
	Keys KeyMode // default honour
	// Capacity bounds how fast it works; nil: it answers at once.
	Capacity  *Capacity
	Incidents []Incident // what happens to a server that has a Capacity
}

// Expect is what the author expects of any good client, beyond the checks. Nil means no expectation.
type Expect struct {
	OK          *bool // the call succeeds
	MinAttempts *int  // wire attempts per call
	MaxAttempts *int
	MinEffects  *int // effects per call
	MaxEffects  *int
	Status      *int   // status that the caller gets to see
	Trait       string // trait that the error shows: see the history.Trait constants
}

// Family returns the part of the name before the slash.
func (s *Scenario) Family() string {
	for i, r := range s.Name {
		if r == '/' {
			return s.Name[:i]
		}
	}
	return s.Name
}

// RunsIn reports whether the scenario can run in w.
func (s *Scenario) RunsIn(w World) bool {
	if len(s.Worlds) == 0 {
		return true
	}
	for _, x := range s.Worlds {
		if x == w {
			return true
		}
	}
	return false
}
