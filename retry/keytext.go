package retry

import (
	"fmt"
	"strings"
)

// A KeyError says that an idempotency key cannot be put on the wire, so that
// the call was not made: a structured-field string holds printable ASCII only
// (RFC 9651 §3.3.3), and a bare key is a header value like any other, without
// control characters (RFC 9110 §5.5).
type KeyError struct {
	Key  string
	Bare bool // see Policy.BareKeys
}

func (e *KeyError) Error() string {
	if e.Bare {
		return fmt.Sprintf("the idempotency key %q is no value of a header field", e.Key)
	}
	return fmt.Sprintf("the idempotency key %q cannot be written as a structured-field string", e.Key)
}

// checkKey judges the form that a key of the caller's has on the wire.
func checkKey(value string, p *Policy) error {
	bad := func(r rune) bool { return r < ' ' || r > '~' }
	if p.BareKeys {
		bad = func(r rune) bool { return r < ' ' || r == 0x7f }
	}
	if value == "" || strings.IndexFunc(value, bad) < 0 {
		return nil
	}
	return &KeyError{Key: value, Bare: p.BareKeys}
}
