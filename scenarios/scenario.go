// Package scenarios holds scenarios as data: what calls an application makes, what goes wrong, how the
// server behaves and what is expected. A scenario is written in YAML or as a Go literal; the two can say
// the same things. The library that ships with retrychaos is embedded: see Library.
package scenarios

import (
	"net/http"
	"slices"
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

// TokenMode is what the server does with the token that requests carry (RFC 6750). Where there is one, every
// call starts with a token that has expired, and is answered 401 until it has another that the server takes.
type TokenMode string

const (
	// TokenNone does not look at tokens.
	TokenNone TokenMode = ""
	// TokenExpired has a new token for whoever asks.
	TokenExpired TokenMode = "expired"
	// TokenRevoked has a new token that is refused as well.
	TokenRevoked TokenMode = "revoked"
	// TokenLocked has no token for anybody: asking for one is answered 401 too.
	TokenLocked TokenMode = "locked"
)

// Profile is by which book the server keeps its keys.
type Profile string

const (
	// Plain takes any text for a key, of any method that is not safe, and keeps it for the whole run.
	Plain Profile = "plain"
	// IETF goes by draft-ietf-httpapi-idempotency-key-header-07: the key of a non-idempotent request is a
	// structured-field string, belongs to its caller and is kept for 24h; refusals are problem+json.
	IETF Profile = "ietf"
	// Stripe does what Stripe documents of its API v1: the key of a POST is a bare text of up to 255
	// characters, belongs to its caller and is kept for 24h; replays are marked.
	Stripe Profile = "stripe"
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
	// KeyText is the key, where the application has one of its own, made of an order number, say; it may
	// hold {call}. It is raw: the form on the wire is the client's business. Needs Key.
	KeyText string
	// Idempotent: the application says that the call may happen twice, whatever its method: a write that
	// is made conditional by its header, say.
	Idempotent  bool
	Body        string        // default for POST, PUT, PATCH: a small JSON object
	BodySize    int           // in place of Body: a JSON object of so many bytes, always the same
	Stream      bool          // the application's body is a stream that can be read once, of unknown length
	Header      http.Header   // further request headers
	Deadline    time.Duration // from the call's start; default 30s; NoDeadline for none
	CancelAfter time.Duration // the application cancels so long after the call's start; 0: never
	Start       time.Duration // from the start of the run
	Every       time.Duration // distance between the starts of the group's calls
	Arrivals    Arrivals      // how the starts follow each other; default even
	After       string        // starts when the calls of that group are over (then Start counts from there)
	Fleet       bool          // every call has a client instance, and connections, of its own
	SameInstant bool          // no start skew at all: all start in the same nanosecond
	Faults      []faults.Fault
}

// NoDeadline as Deadline leaves a call without one.
const NoDeadline time.Duration = -1

// Server is how the fake server behaves where no fault strikes.
type Server struct {
	Keys    KeyMode // default honour
	Profile Profile // default plain
	// Expiry is how long a key is kept, from its first request on. 0: as the profile has it.
	Expiry   time.Duration
	TLS      bool // speaks HTTPS, with a certificate made for the run, which clients are told to trust
	Token    TokenMode
	Protocol string // faults.HTTP1 (the default) or faults.HTTP2, without TLS and by prior knowledge
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

// Meets reports whether the scenario has a fault that strikes at that stage.
func (s *Scenario) Meets(l faults.Level) bool {
	here := func(f faults.Fault) bool { return !f.IsOK() && f.Level() == l }
	return slices.ContainsFunc(s.Faults, here) ||
		slices.ContainsFunc(s.Calls, func(g Group) bool { return slices.ContainsFunc(g.Faults, here) }) ||
		slices.ContainsFunc(s.Storms, func(st faults.Storm) bool { return here(st.Fault) }) ||
		s.Draw != nil && slices.ContainsFunc(s.Draw.Faults, here)
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
