package retry

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A Budget bounds what retries may add to the load of a server. It is a bucket
// of tokens, full at first, that all calls of a client share: retries and
// failures take from it, successes and time give back. While there is not
// enough in it, calls are not repeated: the last real outcome comes back at
// once, with a [*BudgetError] in Error.Stop.
//
// Back-off alone does not save an overloaded server: the calls keep coming, and
// each still costs MaxAttempts attempts. A budget makes the retries end when
// few calls succeed.
//
// The zero Budget is [DefaultBudget]. Amounts are tokens, kept to a thousandth.
type Budget struct {
	// Capacity is the most tokens there can be, and what a client starts with.
	Capacity float64

	// Cost is what a retry takes.
	Cost float64

	// ThrottledCost is what a retry takes after the server has limited the
	// rate (see Decision.Throttled). Default Cost.
	ThrottledCost float64

	// TimeoutCost is what a retry takes after a timeout. Default Cost.
	TimeoutCost float64

	// FailureCost is what each failure that could be repeated takes,
	// whether or not it is. It never takes more than there is.
	FailureCost float64

	// Reserve, if positive, is a level: calls are repeated only while there
	// is more in the bucket, after FailureCost was taken.
	Reserve float64

	// PerSuccess is what a call gives back when it succeeds.
	PerSuccess float64

	// RefundLast makes a call that succeeds after retries give back what
	// the last of them took, instead of PerSuccess.
	RefundLast bool

	// PerCall is what each call gives when it begins, whatever becomes of it.
	PerCall float64

	// PerSecond is what time gives.
	PerSecond float64

	// Throttle, if positive, makes the budget no bucket of tokens: a retry is
	// refused by chance, the more likely the more requests there were in the
	// last half minute above Throttle times the calls that succeeded (see
	// [AdaptiveBudget]). 1 or more; no other field may be set with it.
	Throttle float64

	// Unlimited switches the budget off. No other field may be set with it.
	Unlimited bool
}

// DefaultBudget lets a client make 100 retries, and then one for each ten calls
// that succeed.
//
// It is funded by successes, and by nothing else, because that holds at every
// load: while a server answers nobody, retries come to an end, and the load is
// what it would be without them. Budgets that requests pay for add their share
// for as long as the outage lasts; those that time pays for add something for
// each client that there is. The 100 tokens are there so that a short outage, or
// a burst of calls that fail together, is retried as the policy says.
func DefaultBudget() Budget { return Budget{Capacity: 100, Cost: 1, PerSuccess: 0.1} }

// GRPCBudget is the retry throttling of gRPC (proposal A6) with its usual
// numbers: 10 tokens; a failure takes one, a success gives a tenth; retries are
// made while more than half is left.
func GRPCBudget() Budget {
	return Budget{Capacity: 10, FailureCost: 1, PerSuccess: 0.1, Reserve: 5}
}

// FinagleBudget allows retries for a fifth of the calls, and ten a second on
// top, as Finagle and Linkerd do. They forget what was given ten seconds ago;
// here the capacity, what ten seconds give at the least, bounds what is saved up.
func FinagleBudget() Budget {
	return Budget{Capacity: 100, Cost: 1, PerCall: 0.2, PerSecond: 10}
}

// RequestBudget allows retries for a tenth of the calls, as the book "Site
// Reliability Engineering" has it (chapter 21), and ten more to begin with.
// In an outage it goes on to add that tenth.
func RequestBudget() Budget { return Budget{Capacity: 10, Cost: 1, PerCall: 0.1} }

// AWSBudget is the retry quota of the standard mode of the AWS SDKs, in the
// form of 2026: 500 tokens; a retry takes 14, or 5 after throttling; a success
// gives one, or what the call's last retry took.
func AWSBudget() Budget {
	return Budget{Capacity: 500, Cost: 14, ThrottledCost: 5, PerSuccess: 1, RefundLast: true}
}

// AdaptiveBudget is the adaptive throttling of the book "Site Reliability
// Engineering" (chapter 21) with its K of 2, for retries: one is refused with
// probability max(0, (requests − K·accepts) / (requests + 1)). Requests are first
// attempts and retries, refused ones included; accepts are calls that succeeded.
//
// Two things differ from the book. First attempts are never refused, so that a
// client notices at once that its server is well again. And half a minute is
// counted, not two minutes: successes of before an outage pay for retries for as long as they
// are counted, and keep a server down that much longer.
func AdaptiveBudget() Budget { return Budget{Throttle: 2} }

// NoBudget never refuses.
func NoBudget() Budget { return Budget{Unlimited: true} }

func (b Budget) withDefaults() Budget {
	if b == (Budget{}) {
		b = DefaultBudget()
	}
	setDefault(&b.ThrottledCost, b.Cost)
	setDefault(&b.TimeoutCost, b.Cost)
	return b
}

// problem returns what makes no sense, or "".
func (b Budget) problem() string {
	if b.Unlimited {
		if b != (Budget{Unlimited: true}) {
			return "is unlimited and has limits"
		}
		return ""
	}
	if k := b.Throttle; k != 0 {
		switch {
		case b != (Budget{Throttle: k}):
			return "has a Throttle and other fields"
		case !(k >= 1 && k <= maxTokens):
			return fmt.Sprintf("has Throttle %v; it must be from 1 to %g", k, float64(maxTokens))
		}
		return ""
	}
	b = b.withDefaults()
	for _, f := range []struct {
		name  string
		value float64
	}{
		{"Capacity", b.Capacity}, {"Cost", b.Cost}, {"ThrottledCost", b.ThrottledCost}, {"TimeoutCost", b.TimeoutCost},
		{"FailureCost", b.FailureCost}, {"Reserve", b.Reserve}, {"PerSuccess", b.PerSuccess}, {"PerCall", b.PerCall},
		{"PerSecond", b.PerSecond},
	} {
		if !(f.value >= 0 && f.value <= maxTokens) {
			return fmt.Sprintf("has %s %v; it must be from 0 to %g", f.name, f.value, float64(maxTokens))
		}
		if f.value > 0 && milli(f.value) == 0 {
			return fmt.Sprintf("has %s %v; tokens are counted to a thousandth", f.name, f.value)
		}
	}
	switch {
	case b.Capacity == 0:
		return "has no capacity; one attempt a call is MaxAttempts 1, and NoBudget switches the budget off"
	case b.Cost == 0 && b.FailureCost == 0:
		return "costs nothing; NoBudget switches it off"
	case b.Cost > b.Capacity:
		return fmt.Sprintf("has capacity %v, less than a retry costs, %v", b.Capacity, b.Cost)
	case b.Reserve >= b.Capacity:
		return fmt.Sprintf("has reserve %v, which its capacity %v does not exceed", b.Reserve, b.Capacity)
	case b.PerSuccess == 0 && b.PerCall == 0 && b.PerSecond == 0 && !b.RefundLast:
		return "is never filled again"
	}
	return ""
}

// maxTokens bounds the amounts, so that no sum overflows.
const maxTokens = 1e9

// milli converts tokens to thousandths.
func milli(tokens float64) int64 { return int64(math.Round(tokens * 1000)) }

// String prints the budget, defaults filled in, such as
// "budget of 100, 1 a retry, 0.1 back a success".
func (b Budget) String() string {
	if b.Unlimited {
		return "no budget"
	}
	if b.Throttle > 0 {
		return fmt.Sprintf("budget by chance: the requests of half a minute above %v times the successes are not repeated", b.Throttle)
	}
	b = b.withDefaults()
	var s strings.Builder
	fmt.Fprintf(&s, "budget of %v", b.Capacity)
	if b.Cost > 0 {
		fmt.Fprintf(&s, ", %v a retry", b.Cost)
	}
	if b.ThrottledCost != b.Cost {
		fmt.Fprintf(&s, " (%v when throttled)", b.ThrottledCost)
	}
	if b.TimeoutCost != b.Cost {
		fmt.Fprintf(&s, " (%v after a timeout)", b.TimeoutCost)
	}
	if b.FailureCost > 0 {
		fmt.Fprintf(&s, ", %v a failure", b.FailureCost)
	}
	if b.Reserve > 0 {
		fmt.Fprintf(&s, ", retries above %v", b.Reserve)
	}
	if b.PerSuccess > 0 {
		fmt.Fprintf(&s, ", %v back a success", b.PerSuccess)
	}
	if b.RefundLast {
		s.WriteString(" (the last retry's cost after retries)")
	}
	if b.PerCall > 0 {
		fmt.Fprintf(&s, ", %v back a call", b.PerCall)
	}
	if b.PerSecond > 0 {
		fmt.Fprintf(&s, ", %v back a second", b.PerSecond)
	}
	return s.String()
}

// A BudgetError says that a failed attempt would have been repeated, had there
// been enough in the retry budget.
type BudgetError struct {
	Tokens float64 // what was left
	Needed float64 // what the retry costs, or the reserve that has to be exceeded
	Chance float64 // of being refused, where Budget.Throttle decides; above 0
}

func (e *BudgetError) Error() string {
	if e.Chance > 0 {
		return fmt.Sprintf("the retry budget refuses: too few calls of the last half minute succeeded (%.0f %% of retries are refused)", 100*e.Chance)
	}
	return fmt.Sprintf("the retry budget is used up: %v left, %v needed", e.Tokens, e.Needed)
}

// A Bucket holds the tokens of a Budget. Each Client and Transport makes one of
// its own from its policy; [WithBucket] makes several share one, as they should
// when they talk to one server. It is safe for concurrent use.
type Bucket struct {
	budget   Budget // defaults filled in
	capacity int64  // of it, in thousandths

	mu     sync.Mutex
	tokens atomic.Int64 // thousandths; changed under mu
	filled time.Time    // when PerSecond was last added; zero before the first use
	window *window      // with Throttle only
}

// NewBucket returns a full bucket, or a [PolicyError].
func NewBucket(b Budget) (*Bucket, error) {
	if problem := b.problem(); problem != "" {
		return nil, policyErrors{&PolicyError{Field: "Budget", Problem: problem}}
	}
	b = b.withDefaults()
	bucket := &Bucket{budget: b, capacity: milli(b.Capacity)}
	bucket.tokens.Store(bucket.capacity)
	if b.Throttle > 0 {
		bucket.window = new(window)
	}
	return bucket, nil
}

// Budget returns the bucket's budget, with its defaults filled in.
func (b *Bucket) Budget() Budget { return b.budget }

// Tokens returns what is in the bucket now. It is +Inf if it has no limit, or
// Throttle decides.
func (b *Bucket) Tokens() float64 {
	if b.budget.Unlimited || b.window != nil {
		return math.Inf(1)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	return float64(b.tokens.Load()) / 1000
}

// fill adds what time gives. b.mu is held.
func (b *Bucket) fill() {
	if b.budget.PerSecond == 0 {
		return
	}
	now := time.Now()
	if b.filled.IsZero() {
		b.filled = now
		return
	}
	rate := float64(milli(b.budget.PerSecond))
	missing := b.capacity - b.tokens.Load()
	got := now.Sub(b.filled).Seconds() * rate
	if got >= float64(missing) {
		b.tokens.Add(missing)
		b.filled = now
		return
	}
	whole := int64(got)
	b.tokens.Add(whole)
	// What is less than a thousandth is not lost: it counts from then on.
	b.filled = b.filled.Add(time.Duration(float64(whole) / rate * float64(time.Second)))
}

// give adds n thousandths, up to the capacity.
func (b *Bucket) give(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	b.tokens.Store(min(b.tokens.Load()+n, b.capacity))
}

// full reports whether there is nothing to give, without a lock, so that the
// calls of a healthy client do not wait for each other. It is always true of a
// bucket without a limit.
func (b *Bucket) full() bool { return b.tokens.Load() == b.capacity }

// begin is told of each call that begins.
func (b *Bucket) begin() {
	if b.window != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.window.now(time.Now()).requests++
		return
	}
	if b.budget.PerCall > 0 && !b.full() {
		b.give(milli(b.budget.PerCall))
	}
}

// success is told of each call that succeeds; last is what its last retry took.
func (b *Bucket) success(last int64) {
	if b.window != nil {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.window.now(time.Now()).accepts++
		return
	}
	switch {
	case b.full():
	case last > 0 && b.budget.RefundLast:
		b.give(last)
	default:
		b.give(milli(b.budget.PerSuccess))
	}
}

// failure is told of each failure that could be repeated.
func (b *Bucket) failure() {
	if b.budget.FailureCost == 0 || b.budget.Unlimited {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	b.tokens.Store(max(b.tokens.Load()-milli(b.budget.FailureCost), 0))
}

// take pays for a retry after the failure d, and returns what it took, or why
// it could not. random is that of the engine, for Throttle.
func (b *Bucket) take(d Decision, random func(n int64) int64) (taken int64, refusal *BudgetError) {
	if b.budget.Unlimited {
		return 0, nil
	}
	if b.window != nil {
		return 0, b.refuse(random)
	}
	cost := milli(b.budget.Cost)
	switch {
	case d.Throttled:
		cost = milli(b.budget.ThrottledCost)
	case d.Timeout:
		cost = milli(b.budget.TimeoutCost)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fill()
	tokens := b.tokens.Load()
	if b.budget.Reserve > 0 && tokens <= milli(b.budget.Reserve) {
		return 0, &BudgetError{Tokens: float64(tokens) / 1000, Needed: b.budget.Reserve}
	}
	if tokens < cost {
		return 0, &BudgetError{Tokens: float64(tokens) / 1000, Needed: float64(cost) / 1000}
	}
	b.tokens.Add(-cost)
	return cost, nil
}
