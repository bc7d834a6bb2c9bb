package retry

import "time"

// The parts of the loop, for code that keeps the account of a call itself:
// over restarts of the process, say, as package outbox does. Client, Transport
// and Do need none of them.

// IdempotentMethod reports whether requests with the method may be repeated by
// its definition: RFC 9110 §9.2.2, RFC 10008 (QUERY), or, of the safe ones of
// WebDAV, RFC 4918, RFC 5323 and RFC 3253. Method names have case; "" is GET.
func IdempotentMethod(method string) bool { return idempotentMethod(method) }

// NewKey returns an idempotency key as [WithIdempotencyKey] makes it: a random
// UUID (RFC 9562 §5.4), with 122 bits from crypto/rand, raw.
func NewKey() string { return newKey() }

// KeyValue returns the raw key as the policy puts it into the header p.KeyHeader:
// bare, or as a structured-field string.
func (p Policy) KeyValue(key string) string {
	if p.BareKeys {
		return key
	}
	return quote(key)
}

// WithDefaults returns p as it will be carried out: each zero field has the
// default that its comment names.
func (p Policy) WithDefaults() Policy { return p.withDefaults() }

// Delay draws the wait before retry n of a call, 1 being the first. previous is
// the wait before retry n−1, or 0, which DecorrelatedJitter goes by. floor is
// what the server asked for by Retry-After, or 0: the wait is never less. p must
// be valid. ThrottledDelay and WaitHeader are left to the caller. It may be called
// concurrently.
func (p Policy) Delay(n int, previous, floor time.Duration) time.Duration {
	p = p.withDefaults()
	b := backoff{policy: &p, retry: max(n, 1) - 1, prev: previous}
	return b.next(floor, false, globalRandom)
}
