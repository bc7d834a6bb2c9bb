package matchers

import "github.com/onsi/gomega/types"

// HaveNoDuplicateEffects is effects.once: no non-idempotent call happened twice, and what was reported as
// done was done.
func HaveNoDuplicateEffects() types.GomegaMatcher { return Hold("effects.once") }

// HaveNoPhantomEffects is effects.no-phantom: nothing happened for calls that were never attempted or that
// were reported as definitely failed.
func HaveNoPhantomEffects() types.GomegaMatcher { return Hold("effects.no-phantom") }

// KeepAttemptsBounded is attempts.bounded: no call made more attempts than declared.
func KeepAttemptsBounded() types.GomegaMatcher { return Hold("attempts.bounded") }

// AcceptPermanentAnswers is attempts.permanent-once: a permanent answer was not asked for again.
func AcceptPermanentAnswers() types.GomegaMatcher { return Hold("attempts.permanent-once") }

// RepeatOnlyWhatIsSafe is attempts.unsafe-not-repeated: no unkeyed non-idempotent call was repeated after an
// ambiguous failure.
func RepeatOnlyWhatIsSafe() types.GomegaMatcher { return Hold("attempts.unsafe-not-repeated") }

// KeepKeysStable is key.stable: one key a call, and a key of its own.
func KeepKeysStable() types.GomegaMatcher { return Hold("key.stable") }

// KeepBodiesIntact is body.intact: every attempt carried what the application gave.
func KeepBodiesIntact() types.GomegaMatcher { return Hold("body.intact") }

// ObeyRetryAfter is timing.retry-after: no attempt came before the server allowed it.
func ObeyRetryAfter() types.GomegaMatcher { return Hold("timing.retry-after") }

// GrowItsWaits is timing.backoff-grows: no hot loop, no overflow, and waits that grow.
func GrowItsWaits() types.GomegaMatcher { return Hold("timing.backoff-grows") }

// SpreadItsRetries is timing.spread: calls that failed together did not come back together.
func SpreadItsRetries() types.GomegaMatcher { return Hold("timing.spread") }

// MeetDeadlines is timing.deadline: calls ended by their deadlines, and did not sleep until them in vain.
func MeetDeadlines() types.GomegaMatcher { return Hold("timing.deadline") }

// StopWhenCancelled is timing.cancel: cancelled calls returned at once and made no further attempt.
func StopWhenCancelled() types.GomegaMatcher { return Hold("timing.cancel") }

// TellTheLastRealFailure is error.last-real: the caller can reach what really went wrong.
func TellTheLastRealFailure() types.GomegaMatcher { return Hold("error.last-real") }

// RecoverWhereSafe is liveness.recovers: calls recovered where a safe retry would have succeeded.
func RecoverWhereSafe() types.GomegaMatcher { return Hold("liveness.recovers") }

// LetTheServerRecover is load.amplification: retries did not keep an overloaded server down.
func LetTheServerRecover() types.GomegaMatcher { return Hold("load.amplification") }

// ReleaseResources is resources.released: nothing was left behind.
func ReleaseResources() types.GomegaMatcher { return Hold("resources.released") }
