package retry

import (
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// NoTimeout switches [Policy.AttemptTimeout] off. The zero value cannot do
// that, because zero asks for the default.
const NoTimeout time.Duration = -1

// Defaults that the zero fields of a [Policy] take.
const (
	DefaultMaxAttempts    = 4
	DefaultBaseDelay      = time.Second
	DefaultMaxDelay       = 30 * time.Second
	DefaultMultiplier     = 2.0
	DefaultJitterWidth    = 500 * time.Millisecond
	DefaultAttemptTimeout = 10 * time.Second
	DefaultMaxRetryAfter  = 2 * time.Minute
	DefaultMaxWaitHeader  = 5 * time.Second
	DefaultKeyHeader      = "Idempotency-Key"
)

// A Policy says how often, how fast and how long to try. It holds numbers,
// not logic, and is never changed after it was handed over, so one value may
// be shared by any number of clients.
//
// The zero Policy is ready to use: each zero field takes the default that its
// comment names. [Policy.Validate] says what is refused.
type Policy struct {
	// MaxAttempts is the most requests that one call may put on the wire,
	// the first one included. Requests that net/http sends again by itself
	// count too. Default 4; 1 never repeats anything.
	MaxAttempts int

	// BaseDelay is the nominal delay before the first retry. Default 1s.
	BaseDelay time.Duration

	// ThrottledDelay is the nominal delay before the first retry where the
	// server has limited the rate (429). Default BaseDelay.
	ThrottledDelay time.Duration

	// MaxDelay caps the nominal delay. The jitter is drawn after the cap, so
	// that delays do not pile up on it. Default 30s.
	MaxDelay time.Duration

	// Multiplier is the growth of the nominal delay from one retry to the
	// next, at least 1. Default 2.
	Multiplier float64

	// Jitter is how the delay is drawn from the nominal one.
	// Default FullJitter.
	Jitter Jitter

	// JitterWidth is the width that AdditiveJitter adds to the nominal delay,
	// and the least width that is added above a Retry-After under every
	// jitter but NoJitter. Default 500ms.
	JitterWidth time.Duration

	// AttemptTimeout bounds one attempt, from dialling to the end of the
	// response's body: it does not end with the headers, so a download that
	// is given back by Client.Do must be read within it. Its expiry is a
	// failure like a lost connection, and repeated where that is safe.
	// Default 10s; NoTimeout switches it off.
	AttemptTimeout time.Duration

	// CallTimeout bounds the whole call: attempts, waits and the reading of
	// the last body. Default 0: only the context's own deadline counts.
	CallTimeout time.Duration

	// MaxRetryAfter is the longest Retry-After that is waited for. When the
	// server asks for more, the call ends at once with the server's response;
	// see RetryAfterError. Default 2m.
	MaxRetryAfter time.Duration

	// WaitHeader names a header, other than Retry-After, in which the server
	// gives the wait in whole milliseconds, as x-amz-retry-after does. The
	// delay drawn is lifted to it, by no more than MaxWaitHeader; what is no
	// number, or negative, is ignored. Default "": none.
	WaitHeader string

	// MaxWaitHeader is how much WaitHeader may add. Default 5s.
	MaxWaitHeader time.Duration

	// Budget bounds the retries of all calls of a client together.
	// Default DefaultBudget; NoBudget switches it off.
	Budget Budget

	// HedgeDelay makes calls that read (GET, HEAD, OPTIONS, TRACE, QUERY,
	// PROPFIND, SEARCH and REPORT, without a body) start a second attempt
	// when the first has no response after this long. The first good response wins, the
	// other attempt is cancelled. A hedge counts in MaxAttempts, and in the
	// budget like a retry; there is one a call. Set it to about the 95th
	// percentile of the latency. Default 0: no hedging.
	HedgeDelay time.Duration

	// MaxBufferedBody is the most bytes of a request body without GetBody
	// that are read into memory before the first attempt, so that it can be
	// sent again. A longer body is sent once; when it would have to be
	// repeated the call ends with a BodyError. Default 0: bodies without
	// GetBody are never buffered.
	MaxBufferedBody int64

	// Unprocessed503 declares that the server answers 503 only before it has
	// done any work, as a load shedder or a rate limiter does. Then a 503 may
	// be repeated for every call. By default a 503 says nothing about what
	// has happened, and only a repeatable call is sent again.
	Unprocessed503 bool

	// HonouredKeys declares that the server honours the idempotency key on
	// every call made with this policy: it carries out requests with equal
	// keys once. Then a call that carries a key may be repeated. WithKey,
	// WithIdempotencyKey and WithHonouredKey declare the same for one call.
	HonouredKeys bool

	// KeyHeader names the header that carries the idempotency key.
	// Default "Idempotency-Key".
	KeyHeader string

	// BareKeys puts keys on the wire as they are. By default a key is
	// written as a structured-field string, in double quotes, as the
	// Idempotency-Key draft asks; many services, Stripe among them, document
	// the bare form.
	BareKeys bool
}

// AdditivePreset is the schedule that many services recommend: waits of 1, 2,
// 4 … seconds, up to 30, plus a random 0 to 0.5 s each.
func AdditivePreset() Policy {
	return Policy{
		BaseDelay:   time.Second,
		Multiplier:  2,
		Jitter:      AdditiveJitter,
		JitterWidth: 500 * time.Millisecond,
	}
}

// AWSStandardPreset is the standard retry mode of the AWS SDKs, rules 2.1 of
// 2026: 3 attempts; full jitter from 50 ms, after throttling from 1 s, doubling
// up to 20 s; x-amz-retry-after; the quota of AWSBudget.
//
// AWS operations are POSTs that may be repeated: say so by [Idempotent]. Their
// error codes are in the response; [WithClassifier] is the place to tell
// throttling from other errors by them. Two things differ from AWS: a delay is
// never less than 1 ms, and 408 and 425 are repeated too.
func AWSStandardPreset() Policy {
	return Policy{
		MaxAttempts:    3,
		BaseDelay:      50 * time.Millisecond,
		ThrottledDelay: time.Second,
		MaxDelay:       20 * time.Second,
		Multiplier:     2,
		Jitter:         FullJitter,
		WaitHeader:     "X-Amz-Retry-After",
		MaxWaitHeader:  5 * time.Second,
		Budget:         AWSBudget(),
	}
}

// hinted applies WaitHeader to a delay that was drawn.
func (p *Policy) hinted(delay time.Duration, h http.Header) time.Duration {
	if p.WaitHeader == "" {
		return delay
	}
	ms, err := strconv.ParseInt(strings.TrimSpace(h.Get(p.WaitHeader)), 10, 64)
	if err != nil || ms < 0 {
		return delay
	}
	asked := mulSaturating(time.Duration(ms), int64(time.Millisecond))
	return min(max(asked, delay), addSaturating(delay, p.MaxWaitHeader))
}

// withDefaults returns p with its zero fields filled in.
func (p Policy) withDefaults() Policy {
	setDefault(&p.MaxAttempts, DefaultMaxAttempts)
	setDefault(&p.BaseDelay, DefaultBaseDelay)
	setDefault(&p.ThrottledDelay, p.BaseDelay)
	setDefault(&p.MaxDelay, DefaultMaxDelay)
	setDefault(&p.MaxWaitHeader, DefaultMaxWaitHeader)
	p.Budget = p.Budget.withDefaults()
	setDefault(&p.Multiplier, DefaultMultiplier)
	setDefault(&p.JitterWidth, DefaultJitterWidth)
	setDefault(&p.AttemptTimeout, DefaultAttemptTimeout)
	setDefault(&p.MaxRetryAfter, DefaultMaxRetryAfter)
	setDefault(&p.KeyHeader, DefaultKeyHeader)
	return p
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Validate reports every field that makes no sense as one error that wraps a
// [PolicyError] for each. NewClient, NewTransport and Do call it.
func (p Policy) Validate() error {
	p = p.withDefaults()
	var errs policyErrors
	check := func(ok bool, field, format string, args ...any) {
		if !ok {
			errs = append(errs, &PolicyError{Field: field, Problem: fmt.Sprintf(format, args...)})
		}
	}
	check(p.MaxAttempts >= 1, "MaxAttempts", "is %d; the first attempt counts, so it is at least 1", p.MaxAttempts)
	check(p.BaseDelay > 0, "BaseDelay", "is %v; it must be positive", p.BaseDelay)
	check(p.MaxDelay >= p.BaseDelay, "MaxDelay", "is %v, less than BaseDelay %v", p.MaxDelay, p.BaseDelay)
	check(p.ThrottledDelay > 0 && p.ThrottledDelay <= p.MaxDelay, "ThrottledDelay", "is %v; it must be positive and at most MaxDelay %v", p.ThrottledDelay, p.MaxDelay)
	check(p.Multiplier >= 1 && !math.IsInf(p.Multiplier, 1), "Multiplier", "is %v; it must be finite and at least 1", p.Multiplier)
	check(p.Jitter.valid(), "Jitter", "is %d, which is no known jitter", int(p.Jitter))
	check(p.JitterWidth > 0, "JitterWidth", "is %v; it must be positive (NoJitter switches jitter off)", p.JitterWidth)
	check(p.AttemptTimeout > 0 || p.AttemptTimeout == NoTimeout, "AttemptTimeout", "is %v; it must be positive or NoTimeout", p.AttemptTimeout)
	check(p.CallTimeout >= 0, "CallTimeout", "is %v; it must not be negative", p.CallTimeout)
	check(p.MaxRetryAfter > 0, "MaxRetryAfter", "is %v; it must be positive", p.MaxRetryAfter)
	check(p.MaxBufferedBody >= 0, "MaxBufferedBody", "is %d; it must not be negative", p.MaxBufferedBody)
	check(p.WaitHeader == "" || validFieldName(p.WaitHeader), "WaitHeader", "is %q, which is no header name", p.WaitHeader)
	check(p.MaxWaitHeader > 0, "MaxWaitHeader", "is %v; it must be positive", p.MaxWaitHeader)
	check(p.HedgeDelay >= 0, "HedgeDelay", "is %v; it must not be negative", p.HedgeDelay)
	problem := p.Budget.problem()
	check(problem == "", "Budget", "%s", problem)
	check(validFieldName(p.KeyHeader), "KeyHeader", "is %q, which is no header name", p.KeyHeader)
	if len(errs) == 0 {
		return nil
	}
	return errs
}

// validFieldName reports whether s is a token (RFC 9110 §5.6.2).
func validFieldName(s string) bool {
	if s == "" {
		return false
	}
	return strings.IndexFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	}) < 0
}

// String prints the policy as it will be carried out, defaults filled in.
func (p Policy) String() string {
	p = p.withDefaults()
	var b strings.Builder
	fmt.Fprintf(&b, "%d attempts, %v ×%v up to %v, %v", p.MaxAttempts, p.BaseDelay, p.Multiplier, p.MaxDelay, p.Jitter)
	if p.Jitter == AdditiveJitter {
		fmt.Fprintf(&b, " of %v", p.JitterWidth)
	}
	if p.ThrottledDelay != p.BaseDelay {
		fmt.Fprintf(&b, ", from %v when throttled", p.ThrottledDelay)
	}
	if p.AttemptTimeout != NoTimeout {
		fmt.Fprintf(&b, ", attempt timeout %v", p.AttemptTimeout)
	}
	if p.CallTimeout > 0 {
		fmt.Fprintf(&b, ", call timeout %v", p.CallTimeout)
	}
	fmt.Fprintf(&b, ", Retry-After up to %v", p.MaxRetryAfter)
	if p.WaitHeader != "" {
		fmt.Fprintf(&b, ", %s up to %v more", p.WaitHeader, p.MaxWaitHeader)
	}
	fmt.Fprintf(&b, ", %v", p.Budget)
	if p.HedgeDelay > 0 {
		fmt.Fprintf(&b, ", reads hedged after %v", p.HedgeDelay)
	}
	if p.MaxBufferedBody > 0 {
		fmt.Fprintf(&b, ", bodies buffered up to %d bytes", p.MaxBufferedBody)
	}
	if p.Unprocessed503 {
		b.WriteString(", 503 means unprocessed")
	}
	if p.HonouredKeys {
		b.WriteString(", keys honoured")
	}
	return b.String()
}
