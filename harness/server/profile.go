package server

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

// A profile is the book by which the store goes. It is data and pure functions.
type profile struct {
	expiry  time.Duration // how long a key is kept where the scenario does not say; 0: for ever
	scoped  bool          // keys belong to the caller
	created int           // status of a POST that was carried out
	// takes says whether the key of a request with that method is looked at.
	takes func(method string) bool
	// key reads the field lines of Idempotency-Key, of which there is one at least.
	key func(lines []string) (string, error)
	// refuse makes the answer to a request that the store turns down.
	refuse func(call string, r refusal) faults.Reply
	// marks is added to the header of a replay.
	marks http.Header
}

// refusal is why the store turns a request down.
type refusal int

const (
	welcome      refusal = iota // it does not
	keyMissing                  // a key is required
	keyInvalid                  // it is no key by the profile
	otherPayload                // it was used with another payload
	inFlight                    // the first request with it is at work
)

// detail says it to the people at the other end.
func (r refusal) detail() string {
	switch r {
	case welcome:
		return ""
	case keyMissing:
		return "this operation needs an Idempotency-Key"
	case keyInvalid:
		return "this is no valid Idempotency-Key"
	case otherPayload:
		return "this Idempotency-Key was used with another payload"
	}
	return "a request with this Idempotency-Key is at work"
}

// status is that of draft-ietf-httpapi-idempotency-key-header-07 §2.7, which plain shares.
func (r refusal) status() int {
	switch r {
	case otherPayload:
		return http.StatusUnprocessableEntity
	case inFlight:
		return http.StatusConflict
	}
	return http.StatusBadRequest
}

// profileOf returns the book of that name; plain for "".
func profileOf(name scenarios.Profile) profile {
	switch name {
	case scenarios.IETF:
		return ietf()
	case scenarios.Stripe:
		return stripe()
	case scenarios.Plain, "":
		return plain()
	}
	panic(fmt.Sprintf("server: no profile %q", name)) // scenarios.Validate knows the same names
}

// plain asks nothing of a key: any text is one, it is everybody's, and it is kept.
func plain() profile {
	return profile{
		created: http.StatusOK,
		takes:   func(method string) bool { return !history.SafeMethod(method) },
		key:     func(lines []string) (string, error) { return strings.Join(lines, ", "), nil },
		refuse: func(call string, r refusal) faults.Reply {
			return jsonReply(r.status(), reply{Call: call, Error: r.detail()})
		},
	}
}
