package faults

import (
	"io"
	"net/http"
	"time"
)

// Reply is what a well-behaved server would answer.
type Reply struct {
	Status int
	Header http.Header
	Body   []byte
}

// An Exchange is one attempt as a fault sees it: the request has been read whole, the good answer is known,
// and the effect waits for Commit.
type Exchange struct {
	// W answers over net/http, or is hijacked for what net/http would not send. A hijacked connection
	// satisfies world.Conn (CloseWrite, SetLinger).
	W http.ResponseWriter
	// Stream, if not nil, is the HTTP/2 stream that the attempt came on; W is nil then.
	Stream Stream
	// R is the request; its body has been read, unless the fault strikes before that (Fault.BeforeBody).
	// Its context ends when the client goes, over HTTP/1.1 once the body has been read.
	R *http.Request
	// Reply is the good answer.
	Reply Reply
	// Closing ends when the world is being closed; nothing may block past it.
	Closing <-chan struct{}
	// Server is what the fault has the server do, and what it tells it.
	Server
}

// A Server is the server's side of an exchange. Its methods are not called at the same time.
type Server interface {
	// Receive takes the body from r to its end, notes it, and makes Reply and what Commit does. Only faults
	// that strike before the body has been read use it; before it there is nothing to reply or to commit. Its
	// error says that the client broke off.
	Receive(r io.Reader) error
	// Forgo makes Reply and what Commit does without the body, for a fault that commits and leaves it unread.
	Forgo()
	// Unread is told by such a fault how many bytes of the body it took, where it leaves the rest.
	Unread(n int)
	// Quota, for rate_limit, says whether the attempt is within its quota and, where it is not, how long
	// it is until the next window. The server decided it when it claimed the fault, under its lock.
	Quota() (within bool, wait time.Duration)
	// Commit makes the effect real. It may be called more than once; only the first counts. It may fill
	// in Reply (a number given by the ledger).
	Commit()
	// Store takes r for the application's own outcome of the request, to be kept with its idempotency key, for
	// status with stored=true. It is called after the commit, if there is one, and before r goes out. It returns
	// false where the request does not get as far as the application, whose stored outcome, or refusal, is Reply.
	Store(r Reply) bool
	// Delivered is called once, when the wire effect has happened or, for silence, begun.
	Delivered()
	// Over is called before a late commit, when the wire effect is over: the connection was left as the fault
	// says, or the client has gone. In the other phases Apply's return says so.
	Over()
	// Answered is called when a status line has been put on the wire, with the status and the
	// Retry-After lines sent and the earliest instant that they allow: zero where they ask for nothing
	// (none, invalid, 0, or a date that has passed).
	Answered(status int, retryAfter []string, notBefore time.Time)
}
