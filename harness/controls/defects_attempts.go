package controls

import (
	"math"
	"net/http"

	"github.com/retrychaos/retrychaos/harness"
)

// attemptDefects repeat too often, or what must not be repeated.
func attemptDefects() []defect {
	return []defect{
		{
			name:   "unbounded",
			breaks: "attempts.bounded",
			doc:    "Goes on until it succeeds or the time is up, whatever maximum it declares.",
			wrong:  func(p *policy) { p.attempts = math.MaxInt },
		},
		{
			name:   "one-too-many",
			breaks: "attempts.bounded",
			doc:    "Counts retries where it says attempts, and makes five for a maximum of four.",
			wrong:  func(p *policy) { p.attempts++ },
		},
		{
			name:   "lets-nethttp-resend",
			breaks: "attempts.bounded",
			doc: "Counts to four by itself and lets net/http resend a GET on a reused connection that broke, inside " +
				"one attempt: the fifth is nobody's.",
			wrong: func(p *policy) {
				p.prepare = func(req *http.Request, _ int) {
					if req.Method == http.MethodGet && req.Body == (nothing{}) {
						req.Body = nil
					}
				}
			},
		},
		{
			name:   "retries-4xx",
			breaks: "attempts.permanent-once",
			doc:    "Asks again after 400, 401, 403, 404, 409, 422 and the like, which do not change by asking.",
			wrong: func(p *policy) {
				p.repeat = func(call harness.Call, f *failure) bool {
					return repeatable(call, f) || f.kind == status && f.status/100 == 4
				}
			},
		},
		{
			name:   "retries-decoding",
			breaks: "attempts.permanent-once",
			doc: "Asks again, where the call may happen twice, when a good status came with a body that it cannot " +
				"decode: the same bytes would come again.",
			wrong: func(p *policy) {
				p.repeat = func(call harness.Call, f *failure) bool {
					return repeatable(call, f) || f.kind == decoding && mayHappenTwice(call)
				}
			},
		},
		{
			name:   "retries-bad-certificates",
			breaks: "attempts.permanent-once",
			doc: "Asks again when the server has shown a certificate that must not be accepted, or has no name, as if the " +
				"connection had been lost.",
			wrong: func(p *policy) {
				p.repeat = func(call harness.Call, f *failure) bool {
					return repeatable(call, f) || f.kind == transport && f.hopeless && !f.sent
				}
			},
		},
		{
			name:   "retries-post-blindly",
			breaks: "attempts.unsafe-not-repeated",
			doc: "Repeats a POST without a key after 5xx and broken exchanges, as if it could not have happened. " +
				"effects.once follows: where it had happened, the repeat is the second effect.",
			follows: []string{"effects.once"},
			wrong: func(p *policy) {
				p.repeat = func(call harness.Call, f *failure) bool {
					call.KeyHonoured, call.Key = true, "any"
					return repeatable(call, f)
				}
			},
		},
		{
			name:   "trusts-every-key",
			breaks: "attempts.unsafe-not-repeated",
			doc: "Takes its own key for a licence to repeat although nobody said that the server honours keys. " +
				"effects.once follows: at a server that ignores them, the repeat is the second effect.",
			follows: []string{"effects.once"},
			wrong: func(p *policy) {
				p.repeat = func(call harness.Call, f *failure) bool {
					call.KeyHonoured = true
					return repeatable(call, f)
				}
			},
		},
	}
}
