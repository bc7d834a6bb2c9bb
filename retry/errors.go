package retry

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// An Attempt is what is known about one try of a call.
type Attempt struct {
	Number   int           // 1 is the first
	Start    time.Time     // when the attempt began
	Elapsed  time.Duration // until its response's header, or its failure
	Status   int           // the response's status code, or 0
	Err      error         // the failure, or nil; a bad status is no Err
	Wire     Wire          // what was seen on the wire
	Decision Decision      // what the outcome was taken for
	Retrying bool          // whether another attempt follows
	Wait     time.Duration // the wait before that one; if Offline, before the next probe
	Offline  bool          // the network is down, and is waited for (see WithConnectivity)
}

// String prints the attempt on one line.
func (a Attempt) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "attempt %d: ", a.Number)
	if a.Err != nil {
		b.WriteString(a.Err.Error())
	} else {
		fmt.Fprintf(&b, "status %d", a.Status)
	}
	fmt.Fprintf(&b, " (%v)", a.Decision)
	if n := a.Wire.Resent(); n > 0 {
		fmt.Fprintf(&b, ", resent %d× by net/http", n)
	}
	if a.Retrying {
		fmt.Fprintf(&b, ", waited %v", a.Wait)
		if a.Offline {
			b.WriteString(" and for the network")
		}
	}
	return b.String()
}

// An Error is the end of a call without a result. It unwraps to the last real
// failure, to the context's cause when the context ended the call, and to the
// reason for giving up where that has a type: errors.Is and errors.As reach
// all of them.
//
// [Explain] gives the Error behind a response that was handed back.
type Error struct {
	Attempts []Attempt // every try, in order; empty when none was made
	Reason   string    // why there was no further try
	Err      error     // the last real failure; never the context's, if there was another
	Stop     error     // *RetryAfterError, *BodyError, *DeadlineError, *BudgetError, *TokenError, *OfflineError, or nil
	Cause    error     // context.Cause of the call, if that ended it, or nil
}

// Error names the number of attempts, why the call was given up, and the last
// real failure.
func (e *Error) Error() string {
	if e == nil {
		return "retry: no failure"
	}
	var b strings.Builder
	switch n := len(e.Attempts); n {
	case 0:
		b.WriteString("retry: no attempt made")
	case 1:
		b.WriteString("retry: gave up after 1 attempt")
	default:
		fmt.Fprintf(&b, "retry: gave up after %d attempts", n)
	}
	if e.Reason != "" {
		b.WriteString(": " + e.Reason)
	}
	if e.Err != nil {
		b.WriteString(": " + e.Err.Error())
	}
	if e.Cause != nil && e.Cause != e.Err {
		b.WriteString(" (" + e.Cause.Error() + ")")
	}
	return b.String()
}

// Unwrap returns Err, Stop and Cause, those that are set. Like Error it takes a
// nil receiver, so that what Explain returns can go to errors.As as it is.
func (e *Error) Unwrap() []error {
	if e == nil {
		return nil
	}
	var errs []error
	for _, err := range []error{e.Err, e.Stop, e.Cause} {
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

// Timeout reports whether the call ended by a timeout, so that *url.Error and
// callers that ask for a net.Error see it.
func (e *Error) Timeout() bool {
	last := e.Err
	if e.Cause != nil {
		last = e.Cause
	}
	return isTimeout(last)
}

// Temporary is part of net.Error. It is always false: what could pass by
// itself has been waited for.
func (e *Error) Temporary() bool { return false }

// A StatusError is a response whose status is a failure. Fetch returns it
// (wrapped in an Error), and an operation given to Do may return one, to have
// it judged as a response.
type StatusError struct {
	StatusCode int
	Header     http.Header
	Body       []byte // the first bytes of the body, at most 4 KiB
}

// HTTPStatus returns the status code.
func (e *StatusError) HTTPStatus() int { return e.StatusCode }

func (e *StatusError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("HTTP status %d %s", e.StatusCode, http.StatusText(e.StatusCode)))
}

// A DecodeError is a whole response that could not be understood. It is never
// retried: the server has done its work, and would say the same again.
type DecodeError struct {
	StatusCode int
	Err        error // what the decoder said
}

func (e *DecodeError) Error() string { return "decoding the response: " + e.Err.Error() }

// Unwrap returns the decoder's error.
func (e *DecodeError) Unwrap() error { return e.Err }

// A BodyError says that a failed attempt would have been repeated, had there
// been a way to send its body again. Set Request.GetBody, as
// http.NewRequest does for readers in memory, or Policy.MaxBufferedBody.
type BodyError struct {
	Err   error // the failure that would have been repeated
	Cause error // why there is no second body: GetBody's error, or that there is no GetBody
}

func (e *BodyError) Error() string {
	return fmt.Sprintf("the request body cannot be sent again: %v; after: %v", e.Cause, e.Err)
}

// Unwrap returns the original failure and the cause.
func (e *BodyError) Unwrap() []error { return []error{e.Err, e.Cause} }

// A RetryAfterError says that the server asked for a longer wait than the
// caller allows. Come back after Wait.
type RetryAfterError struct {
	Wait  time.Duration // what the server asked for, from the arrival of its response
	Limit time.Duration // Policy.MaxRetryAfter, or the time that was left to the deadline
}

func (e *RetryAfterError) Error() string {
	return fmt.Sprintf("the server asks for a wait of %v, but only %v is allowed", e.Wait, e.Limit)
}

// A DeadlineError says that the next attempt would have come after the call's
// deadline, so that it was not waited for.
type DeadlineError struct {
	Wait time.Duration // the wait that was due
	Left time.Duration // the time to the deadline
}

func (e *DeadlineError) Error() string {
	return fmt.Sprintf("the next attempt is due in %v, the deadline in %v", e.Wait, e.Left)
}

// A TimeoutError is the expiry of a Policy's own timeout. It is a
// context.DeadlineExceeded to errors.Is.
type TimeoutError struct {
	What  string // "attempt" or "call"
	After time.Duration
}

func (e *TimeoutError) Error() string   { return fmt.Sprintf("%s timed out after %v", e.What, e.After) }
func (e *TimeoutError) Timeout() bool   { return true }
func (e *TimeoutError) Temporary() bool { return true }

// Is makes errors.Is(err, context.DeadlineExceeded) true.
func (e *TimeoutError) Is(target error) bool { return target == context.DeadlineExceeded }

// A PolicyError is a field of a Policy that makes no sense: an error of the
// program, found when the policy is first used.
type PolicyError struct {
	Field   string
	Problem string
}

func (e *PolicyError) Error() string { return "Policy." + e.Field + " " + e.Problem }

// policyErrors lists all wrong fields on one line.
type policyErrors []error

func (e policyErrors) Error() string {
	parts := make([]string, len(e))
	for i, err := range e {
		parts[i] = err.Error()
	}
	return "retry: " + strings.Join(parts, "; ")
}

func (e policyErrors) Unwrap() []error { return e }
