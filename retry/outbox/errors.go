package outbox

import (
	"errors"
	"fmt"
	"time"
)

// Errors that say what state an Outbox is in.
var (
	// ErrClosed is returned by every method after Close.
	ErrClosed = errors.New("outbox: closed")

	// ErrRunning is returned by Run and Drain while another Run or Drain of
	// the same Outbox goes on.
	ErrRunning = errors.New("outbox: already running")
)

// A CallError says what is wrong with a call given to Enqueue. Nothing was
// stored.
type CallError struct {
	Field   string // of Call
	Problem string
}

func (e *CallError) Error() string { return "outbox: Call." + e.Field + " " + e.Problem }

// An UnsafeError says that a call must not be repeated, so that the outbox
// cannot promise to deliver it: after a lost response it could only lose it or
// do it twice. Nothing was stored.
type UnsafeError struct {
	Method string
	Keyed  bool // it has a key, which nobody says that the server honours
}

func (e *UnsafeError) Error() string {
	if e.Keyed {
		return fmt.Sprintf("outbox: a %s may be repeated only if the server honours its key: say so by Call.KeyHonoured or Policy.HonouredKeys", e.Method)
	}
	return fmt.Sprintf("outbox: a %s may not be repeated: it needs a key that the server honours (Call.KeyHonoured), or to be harmless when it happens twice (Call.Idempotent)", e.Method)
}

// A KeyReusedError says that another call with the same key, to the same
// server, waits already or is a dead letter, and differs. A server that honours
// keys would refuse or mistake it. Nothing was stored.
type KeyReusedError struct {
	Key string // as in the header
	ID  ID     // of the call that has it
}

func (e *KeyReusedError) Error() string {
	return fmt.Sprintf("outbox: the key %s belongs to call %d, which is not the same", e.Key, e.ID)
}

// A KeyExpiredError says that a call cannot be repeated safely any more: the
// server may have carried it out, and may have forgotten its key since.
type KeyExpiredError struct {
	ID    ID
	Since time.Time     // when the server may first have seen the key
	Limit time.Duration // Options.KeyLifetime
}

func (e *KeyExpiredError) Error() string {
	return fmt.Sprintf("outbox: call %d may have reached the server at %s, and its key counts for %v only", e.ID, e.Since.Format(time.RFC3339), e.Limit)
}

// A NotFoundError says that there is no dead letter with an id.
type NotFoundError struct{ ID ID }

func (e *NotFoundError) Error() string {
	return fmt.Sprintf("outbox: there is no dead letter %d", e.ID)
}

// A LockedError says that another process, or another Outbox of this one, has
// the file open.
type LockedError struct {
	Path   string
	Waited time.Duration
}

func (e *LockedError) Error() string {
	return fmt.Sprintf("outbox: %s is in use by another process (waited %v)", e.Path, e.Waited)
}

// A FormatError says that the file was not written by this version of the
// package, and is no outbox or a newer one. It was not changed.
type FormatError struct {
	Path  string
	Found int // its format, 0 if it is no outbox
	Known int // the newest format that this version reads
}

func (e *FormatError) Error() string {
	if e.Found == 0 {
		return fmt.Sprintf("outbox: %s is a bbolt file, but no outbox", e.Path)
	}
	return fmt.Sprintf("outbox: %s has format %d, this version reads up to %d: use a newer version", e.Path, e.Found, e.Known)
}

// A DamagedError says that the file cannot be read. It was not changed.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("outbox: %s is damaged (it was left as it is): %v", e.Path, e.Err)
}

// Unwrap returns what was found wrong.
func (e *DamagedError) Unwrap() error { return e.Err }

// An OptionError is a field of Options that makes no sense.
type OptionError struct {
	Field   string
	Problem string
}

func (e *OptionError) Error() string { return "outbox: Options." + e.Field + " " + e.Problem }
