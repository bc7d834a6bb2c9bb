package controls

import (
	"fmt"
	"net/http"
)

// kind is the stage at which an attempt failed.
type kind int

const (
	transport kind = iota // the exchange broke: no whole response
	status                // a whole response that says no
	decoding              // a good status whose body is not the reply
)

// failure is how one attempt ended.
type failure struct {
	kind       kind
	err        error // of transport and decoding
	status     int   // of status
	retryAfter []string
	sent       bool // it had a connection: the server may have acted
	hopeless   bool // waiting cannot change it
	// rival is the earlier attempt of the call that a 409 is about: the one that is still at work and holds
	// the key. Such a 409 tells nothing of what will come of it.
	rival *failure
}

func (f *failure) Error() string {
	switch {
	case f.rival != nil:
		return fmt.Sprintf("%d %s: an earlier attempt is still at work (%v)", f.status, http.StatusText(f.status), f.rival)
	case f.kind == status:
		return fmt.Sprintf("%d %s", f.status, http.StatusText(f.status))
	}
	return f.err.Error()
}

func (f *failure) Unwrap() error {
	if f.rival != nil {
		return f.rival
	}
	return f.err
}

// callError is the end of a call: its last real failure, how many attempts there were, and the end of the
// caller's context where that cut it short.
type callError struct {
	attempts int
	last     *failure
	ended    error
}

func (e *callError) Error() string {
	text := fmt.Sprintf("failed after %d attempts: %v", e.attempts, e.last)
	if e.ended != nil {
		text += fmt.Sprintf(" (then %v)", e.ended)
	}
	return text
}

func (e *callError) Unwrap() []error {
	if e.ended != nil {
		return []error{e.last, e.ended}
	}
	return []error{e.last}
}

// HTTPStatus is the status of the last real failure, 0 if it had none.
func (e *callError) HTTPStatus() int { return e.last.status }
