// Package history is the record of one run, seen from both sides: what the client was asked and what it
// said came of it, what reached the server, and what the server really did. It is pure data. Checks read
// it and nothing else, so a stored history can be judged again by a newer check.
//
// All instants are offsets from the start of the run on the world's clock, in nanoseconds in JSON.
// A History that is complete is read-only and safe for concurrent use.
package history

import "time"

// A History is the record of one run of one scenario by one client.
type History struct {
	Scenario string        `json:"scenario"`
	Client   string        `json:"client"`
	World    string        `json:"world"`
	Seed     uint64        `json:"seed"`
	Grain    time.Duration `json:"grain_ns"` // the resolution of instants: noise of this size means nothing
	// Lateness is how late timers of the harness itself were at worst while the run lasted: what a client
	// cannot be blamed for. 0 in the virtual world.
	Lateness time.Duration `json:"lateness_ns,omitempty"`
	Declared Declared      `json:"declared"`
	KeyMode  string        `json:"key_mode"` // honour, ignore, require
	// KeyExpiry is how long the server keeps a key, from its first request on; 0: for ever.
	KeyExpiry time.Duration `json:"key_expiry_ns,omitempty"`
	Start     time.Time     `json:"start"`  // the world's clock at instant zero
	End       time.Duration `json:"end_ns"` // when the last call was over, or given up
	Calls     []*Call       `json:"calls"`
	Effects   []Effect      `json:"effects"`
	Faults    []Account     `json:"faults"`
	Findings  []Finding     `json:"findings,omitempty"`
	Leaks     Leaks         `json:"leaks"`
	// Limits of the harness: the hard cap on attempts per call.
	AttemptCap int `json:"attempt_cap"`
	// Refreshes is how often a token was asked for.
	Refreshes int `json:"refreshes,omitempty"`
	// Capacity is how fast the server worked; nil: it answered at once.
	Capacity *Capacity `json:"capacity,omitempty"`
	// Triggers are what made it fail or slow for a time, in the order of their beginnings.
	Triggers []Trigger `json:"triggers,omitempty"`
}

// Capacity is what the server could do: Workers attempts at once, each for Service on average, and Queue
// attempts waiting.
type Capacity struct {
	Workers int           `json:"workers"`
	Service time.Duration `json:"service_ns"`
	Queue   int           `json:"queue"`
}

// Rate is how many attempts the server could do a second.
func (c Capacity) Rate() float64 { return float64(c.Workers) / c.Service.Seconds() }

// A Trigger is a window of time in which the server was made to fail or to be slow.
type Trigger struct {
	From time.Duration `json:"from_ns"`
	To   time.Duration `json:"to_ns"`
	What string        `json:"what"`
}

// Declared is what the author of a client says of its policy. A zero field is not declared.
type Declared struct {
	MaxAttempts   int           `json:"max_attempts,omitempty"`       // including the first
	Jitter        Jitter        `json:"jitter,omitempty"`             // how waits are spread
	JitterWidth   time.Duration `json:"jitter_width_ns,omitempty"`    // additive: the width
	JitterRatio   float64       `json:"jitter_ratio,omitempty"`       // proportional: the width as a part of the delay (±20 % is 0.4)
	BaseDelay     time.Duration `json:"base_delay_ns,omitempty"`      // first wait before jitter
	Multiplier    float64       `json:"multiplier,omitempty"`         // growth a retry; 0 means 2 where BaseDelay is declared
	MaxDelay      time.Duration `json:"max_delay_ns,omitempty"`       // cap on a wait
	MaxRetryAfter time.Duration `json:"max_retry_after_ns,omitempty"` // the longest Retry-After that it waits for
	// CapsRetryAfter says that a longer Retry-After is cut to MaxRetryAfter, and not given back.
	CapsRetryAfter bool `json:"caps_retry_after,omitempty"`
	// CanBeTold says that the adapter passes the application's word on that a call may happen twice
	// (Call.Idempotent of package harness), so that the client can know.
	CanBeTold bool `json:"can_be_told,omitempty"`
	// Process says that every call is a process of its own: starting it costs time, and connections
	// cannot be warmed or seen from inside.
	Process bool `json:"process,omitempty"`
	// Remote says that calls are made by another program, through a driver: it tells what its application sees,
	// errors in words of its own, and its connections cannot be warmed, broken or seen from inside.
	Remote bool `json:"remote,omitempty"`
}

// Outside reports whether the client is not of this process: a command or a driver.
func (d Declared) Outside() bool { return d.Process || d.Remote }

// Jitter names a way to spread waits.
type Jitter string

const (
	JitterUndeclared   Jitter = ""
	JitterNone         Jitter = "none"
	JitterFull         Jitter = "full"         // uniform over the whole delay
	JitterEqual        Jitter = "equal"        // uniform over its upper half
	JitterDecorrelated Jitter = "decorrelated" // uniform from base to three times the last
	JitterAdditive     Jitter = "additive"     // delay plus uniform over JitterWidth
	JitterProportional Jitter = "proportional" // delay ± JitterRatio/2
)

// A Call is one logical operation that the application asked of the client.
type Call struct {
	ID          string        `json:"id"`
	Group       string        `json:"group"`
	Method      string        `json:"method"`
	Path        string        `json:"path"`
	Resource    string        `json:"resource"`             // what its effect writes
	Keyed       bool          `json:"keyed,omitempty"`      // the application wants an idempotency key
	KeyHonoured bool          `json:"honoured,omitempty"`   // and told the client that the server honours it
	KeyText     string        `json:"key_text,omitempty"`   // the key, raw, where the application has one of its own
	Stream      bool          `json:"stream,omitempty"`     // the application's body is a stream that can be read once
	MayRepeat   bool          `json:"may_repeat,omitempty"` // the application says that it may happen twice, whatever its method
	Fleet       bool          `json:"fleet,omitempty"`      // a client instance of its own
	BodyHash    string        `json:"body_hash,omitempty"`  // of the bytes that the application gave
	BodyLen     int           `json:"body_len,omitempty"`
	Started     time.Duration `json:"started_ns"`
	Ended       time.Duration `json:"ended_ns"`
	Returned    bool          `json:"returned"`               // false: the harness gave it up
	Deadline    time.Duration `json:"deadline_ns,omitempty"`  // instant; 0: none
	CancelAt    time.Duration `json:"cancel_at_ns,omitempty"` // instant; 0: not cancelled
	Capped      bool          `json:"capped,omitempty"`       // reached the harness's cap on attempts
	Planned     []string      `json:"planned,omitempty"`      // the schedule's sequence for this call, in text form
	Endless     bool          `json:"endless,omitempty"`      // its last planned fault goes on for ever
	Outcome     Outcome       `json:"outcome"`
	Attempts    []*Attempt    `json:"attempts"`
	Trips       []Trip        `json:"trips,omitempty"`
}

// Outcome is what the client told the application, as facts.
type Outcome struct {
	OK       bool     `json:"ok"`
	Status   int      `json:"status,omitempty"`   // status of the response, or of the error, that the caller can reach
	Error    string   `json:"error,omitempty"`    // text, for people only
	Traits   []string `json:"traits,omitempty"`   // what errors.Is/As find in the error: see the Trait constants
	Attempts int      `json:"attempts,omitempty"` // the client's own count, where it tells one
	Panic    string   `json:"panic,omitempty"`    // the client panicked in the caller's goroutine
}

// Traits of an error: what a caller can find out with errors.Is and errors.As.
const (
	TraitCanceled      = "canceled"       // context.Canceled
	TraitDeadline      = "deadline"       // context.DeadlineExceeded
	TraitTimeout       = "timeout"        // net.Error with Timeout() true
	TraitReset         = "reset"          // ECONNRESET or EPIPE
	TraitRefused       = "refused"        // ECONNREFUSED
	TraitEOF           = "eof"            // io.EOF
	TraitUnexpectedEOF = "unexpected_eof" // io.ErrUnexpectedEOF
	TraitDecoding      = "decoding"       // the body could not be decoded
	TraitNotSent       = "not_sent"       // the client says that nothing was sent
	TraitDNS           = "dns"            // *net.DNSError
	TraitTLS           = "tls"            // a TLS alert, sent or received, or something that is no TLS
	TraitCertificate   = "certificate"    // the server's certificate was not accepted
)

// Has reports whether the outcome's error shows the trait.
func (o Outcome) Has(trait string) bool {
	for _, t := range o.Traits {
		if t == trait {
			return true
		}
	}
	return false
}

// An Attempt is one request for a call that reached the server, or was refused on its way: a wire attempt.
type Attempt struct {
	N          int           `json:"n"` // from 1, in order of arrival
	At         time.Duration `json:"at_ns"`
	Ended      time.Duration `json:"ended_ns"` // when the server was done with it on the wire, or the client had gone
	Conn       int           `json:"conn"`     // connection number, from 1
	Reused     bool          `json:"reused"`
	Peer       string        `json:"peer,omitempty"`
	Hidden     bool          `json:"hidden,omitempty"` // resent by net/http inside one RoundTrip
	Method     string        `json:"method"`
	Key        string        `json:"key,omitempty"` // Idempotency-Key as sent
	BodyHash   string        `json:"body_hash,omitempty"`
	BodyLen    int           `json:"body_len,omitempty"`
	BodyBroken bool          `json:"body_broken,omitempty"` // it ended before its announced length
	BodyUnread bool          `json:"body_unread,omitempty"` // its fault left the rest of it unread; BodyLen is what was read
	HeaderDiff []string      `json:"header_diff,omitempty"` // fields set by the application that are missing or altered
	Fault      string        `json:"fault"`                 // text form of what was claimed for it; "ok" for none
	FaultName  string        `json:"fault_name,omitempty"`
	Phase      string        `json:"phase,omitempty"`
	Category   string        `json:"category,omitempty"`
	// Unprocessed: the fault itself tells the client that the request was not processed, so that it may be
	// sent again whatever its method (RFC 9113 §8.7).
	Unprocessed bool `json:"unprocessed,omitempty"`
	Delivered   bool `json:"delivered"`
	// Connection says that the fault struck while the connection was made, so that no request arrived: of the
	// request nothing is known but what the base transport had been given, its method and its key.
	Connection bool `json:"connection,omitempty"`
	Unsent     bool `json:"unsent,omitempty"` // and the client sent nothing of it
	// Unmet says that the call never met the fault: net/http had begun to connect for it, and then gave it
	// another connection that had become free.
	Unmet      bool     `json:"unmet,omitempty"`
	Status     int      `json:"status,omitempty"`      // status put on the wire; 0: none
	Closed     bool     `json:"closed,omitempty"`      // the server left its connection unfit for another request
	Effect     int      `json:"effect,omitempty"`      // number of the effect that it committed; 0: none
	Replayed   bool     `json:"replayed,omitempty"`    // answered from the idempotency store
	Stored     bool     `json:"stored,omitempty"`      // its status is the application's own, and kept with its key
	InFlight   bool     `json:"in_flight,omitempty"`   // refused with 409: an earlier one with this key was at work
	RetryAfter []string `json:"retry_after,omitempty"` // field lines sent
	// NotBefore is the earliest instant that a valid Retry-After allows; 0: none asked.
	NotBefore time.Duration `json:"not_before_ns,omitempty"`
	// Work is what a server with a capacity made of it.
	Work *Work `json:"work,omitempty"`
}

// Work is an attempt's way through a server with a capacity.
type Work struct {
	Ahead int           `json:"ahead"`              // attempts that waited when it came
	Began time.Duration `json:"began_ns,omitempty"` // instant at which a worker took it; 0: none did
	Done  time.Duration `json:"done_ns,omitempty"`  // instant at which the worker was free again; 0: never
	// Wasted: the client had gone when the work was done, so that it helped nobody.
	Wasted bool `json:"wasted,omitempty"`
	// Shed says why it was turned away or lost: full, refuse, restart, left (its client had left before it was
	// begun) or closed (the world was); "" if it was not.
	Shed string `json:"shed,omitempty"`
}

// A Trip is one use of the base transport: a client attempt, as far as the harness can see it.
type Trip struct {
	Started time.Duration `json:"started_ns"`
	Ended   time.Duration `json:"ended_ns"`        // headers in, or failed
	Peers   []string      `json:"peers,omitempty"` // local addresses of the connections used, in order
	Status  int           `json:"status,omitempty"`
	Error   string        `json:"error,omitempty"`
	BodyEOF bool          `json:"body_eof,omitempty"` // the body was read to its end
	Closed  bool          `json:"closed,omitempty"`   // the body was closed
}

// An Effect is one commit in the server's ledger.
type Effect struct {
	N        int           `json:"n"` // from 1
	At       time.Duration `json:"at_ns"`
	Call     string        `json:"call"`
	Attempt  int           `json:"attempt"`
	Method   string        `json:"method"`
	Resource string        `json:"resource"`
	Key      string        `json:"key,omitempty"`
	Conn     int           `json:"conn"`
	Value    string        `json:"value,omitempty"` // hash of what was written
	Late     bool          `json:"late,omitempty"`  // after the client had gone
}

// An Account compares what was planned of a fault with what happened.
type Account struct {
	Fault     string `json:"fault"`
	Planned   int    `json:"planned"` // -1: without bound
	Claimed   int    `json:"claimed"`
	Delivered int    `json:"delivered"`
}

// A Finding is something that the harness saw of itself or of the scenario; it is never the client's fault.
type Finding struct {
	Kind string `json:"kind"` // see the Finding constants
	Text string `json:"text"`
	Call string `json:"call,omitempty"`
}

// Kinds of findings.
const (
	FindingUndelivered = "undelivered" // a fault was claimed and did not happen
	FindingUnclaimed   = "unclaimed"   // a fault was planned and no attempt came for it
	FindingUnmatched   = "unmatched"   // a request for no route of the scenario
	FindingWorldCap    = "world_cap"   // the world's limit on time was reached
	FindingHarness     = "harness"     // the harness itself failed
)

// Leaks is what the client left behind when its calls were over and its idle connections were closed.
type Leaks struct {
	Conns      int      `json:"conns,omitempty"`
	Bodies     int      `json:"bodies,omitempty"` // responses whose body was never closed
	Goroutines []string `json:"goroutines,omitempty"`
	// Known is false where nothing could be measured (a process of its own).
	Known bool `json:"known"`
}
