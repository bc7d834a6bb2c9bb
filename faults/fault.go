// Package faults is the fault vocabulary: the catalogue of what can be done to one attempt, how each effect
// is put on the wire, the schedules that say which attempt it hits, and the short text form.
//
// A fault is trigger × commit phase × wire effect. The wire effects are the entries of [Catalogue], one file
// each; [Apply] does the commit around them, and [Dialer] does those that strike before there is a request;
// [Schedule] is the trigger. A new effect is an entry in a file of its own, its line in Catalogue and its proof
// in one of the tables of proofs_*_test.go, without which the tests fail.
//
// The text form is what scenarios, flags, reports and reproduction lines use:
//
//	503
//	429 retry-after=2s times=3
//	connection_reset@after_commit on=reused
//	stall_body@commit_late after=10 delay=5s end=rst late=2s
package faults

import (
	"net/http"
	"time"
)

// Phase says where in a request's life a fault strikes, relative to the commit: the instant at which the
// server's side effect becomes real. It is the axis that decides whether a repeat is harmless or charges twice.
type Phase string

const (
	// BeforeCommit strikes before the effect; the effect never happens.
	BeforeCommit Phase = "before_commit"
	// AfterCommit strikes once the effect has happened; the client is not told.
	AfterCommit Phase = "after_commit"
	// CommitLate lets the effect happen after the wire effect is over, when the client has already given up.
	CommitLate Phase = "commit_late"
)

// Category tells a client what kind of failure a fault is, for its decision to retry.
type Category string

const (
	// None is no failure at all: a good answer, perhaps a slow one.
	None Category = "none"
	// Transport is a failure to exchange bytes: reset, EOF, timeout, a body that ends early.
	Transport Category = "transport"
	// InvalidResponse is an answer that is not HTTP.
	InvalidResponse Category = "invalid_response"
	// Status is a well-formed answer whose status says no.
	Status Category = "status"
	// Decoding is a good status whose body cannot be understood. Repeating it cannot help.
	Decoding Category = "decoding"
)

// End says how a wire effect that stops short leaves the connection.
type End string

const (
	// EndHang leaves the connection open and silent until the client goes.
	EndHang End = "hang"
	// EndFIN closes the connection in order (TCP FIN).
	EndFIN End = "fin"
	// EndRST aborts the connection (TCP RST).
	EndRST End = "rst"
	// EndNormal finishes the response as HTTP has it and keeps the connection.
	EndNormal End = "normal"
)

// ConnState restricts a fault to attempts on a certain kind of connection.
type ConnState string

const (
	// AnyConn puts no restriction.
	AnyConn ConnState = ""
	// Fresh is a connection that has carried no request before this one.
	Fresh ConnState = "fresh"
	// Reused is a connection that has already carried a request.
	Reused ConnState = "reused"
)

// Forever as Times makes an entry the last one of its sequence: it answers every further attempt.
const Forever = -1

// OK is the absence of a fault: the server answers well.
const OK = "ok"

// A Fault is what is done to one attempt. Parse makes valid ones; the zero value is OK.
// A Fault is a value: it may be copied and shared between goroutines.
type Fault struct {
	Name  string    // the catalogue name; "" and "ok" mean a good answer
	Phase Phase     // filled in by Parse from the entry's default
	On    ConnState // only on a fresh, only on a reused connection
	Times int       // how many attempts of a sequence it takes; 0 is 1; Forever for the rest

	Status     int           // status: the code
	RetryAfter []RetryAfter  // status: one Retry-After field line each
	Header     http.Header   // status: further fields
	Body       string        // status: the body sent
	HasBody    bool          // status: Body is meant even where it is empty; else "" is a small JSON error object
	Stored     bool          // status: the application's own answer, which the server keeps with the key
	Delay      time.Duration // latency: how long; stall: how long before it goes on, 0 for ever
	After      Amount        // how much of the response body goes out before the effect
	End        End           // how the connection is left
	Variant    string        // malformed_json, h2_flow_control_stall: which one
	Code       string        // h2_goaway, h2_rst_stream: the error code, by its name in RFC 9113 §7
	At         string        // h2_rst_stream, h2_connection_closed: when; one of the At constants
	Last, Then string        // h2_goaway: the last stream id; what becomes of the connection
	Late       time.Duration // commit_late: how long after the wire effect the commit comes; 0 is DefaultLate

	Rate    int           // slow_read, bandwidth: bytes per second
	Size    int           // bandwidth: bytes that the body is padded to; header_too_large: bytes of the head
	Chunk   int           // broken_stream, missing_final_chunk: bytes in a chunk
	By      int           // content_length_short, content_length_long: bytes that the length is off
	Interim int           // interim: the 1xx code
	Count   int           // interim: how many
	To      string        // redirect: same, other
	Quota   int           // rate_limit: requests per window
	Window  time.Duration // rate_limit: its length
}

// DefaultLate is how long after its wire effect a commit_late fault commits, where late= does not say.
const DefaultLate = time.Second

// IsOK reports whether f is the absence of a fault.
func (f Fault) IsOK() bool { return f.Name == "" || f.Name == OK }

// An Amount is a number of bytes, or a fraction of the whole. The zero Amount is the entry's default.
type Amount struct {
	Set      bool
	Bytes    int
	Fraction float64 // used where IsFraction
	// IsFraction tells `after=0.5` (half of the body) from `after=1` (one byte).
	IsFraction bool
}

// Of returns the number of bytes that a is of total, never more than total; def where a is not set.
func (a Amount) Of(total, def int) int {
	n := def
	switch {
	case a.Set && a.IsFraction:
		n = int(a.Fraction * float64(total))
	case a.Set:
		n = a.Bytes
	}
	return max(0, min(n, total))
}

// DateForm names one of the three HTTP-date forms of RFC 9110 §5.6.7.
type DateForm string

const (
	// Seconds is no date: delta-seconds.
	Seconds DateForm = ""
	// IMF is IMF-fixdate, the only form a sender may generate.
	IMF DateForm = "imf"
	// RFC850 is the obsolete form with a two-digit year.
	RFC850 DateForm = "rfc850"
	// Asctime is the obsolete form of C's asctime.
	Asctime DateForm = "asctime"
)

// RetryAfter is one Retry-After field line (RFC 9110 §10.2.3): a delay, a date that far from the server's
// now, or raw text, valid or not.
type RetryAfter struct {
	Form  DateForm
	Delay time.Duration // from the server's clock; whole seconds go on the wire
	Raw   string        // sent as it is when IsRaw
	IsRaw bool
}
