package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/retrychaos/retrychaos/faults"
)

// maxStripeKey is the longest key that Stripe takes, in characters.
const maxStripeKey = 255

// stripe is what Stripe documents of its API v1 (https://docs.stripe.com/api/idempotent_requests,
// https://docs.stripe.com/error-low-level). Keys are looked at on POST, are any text of up to 255 characters,
// belong to the account and are kept for 24 hours; whatever the endpoint answered once it had begun is
// replayed, a 500 as well, and marked.
//
// Not documented there, and ours: the status of another payload or endpoint (400, as is widely reported), and
// that it is told also while the first is at work; several field lines are one text with commas between.
func stripe() profile {
	return profile{
		expiry:  24 * time.Hour,
		scoped:  true,
		created: http.StatusOK,
		takes:   func(method string) bool { return method == http.MethodPost },
		key: func(lines []string) (string, error) {
			text := strings.Join(lines, ", ")
			if n := utf8.RuneCountInString(text); n == 0 || n > maxStripeKey {
				return "", fmt.Errorf("%d characters: want 1 to %d", n, maxStripeKey)
			}
			return text, nil
		},
		refuse: stripeError,
		marks:  http.Header{"Idempotent-Replayed": {"true"}},
	}
}

// stripeError is a refusal as an error object of Stripe's.
func stripeError(_ string, r refusal) faults.Reply {
	type object struct {
		Type    string `json:"type"`
		Code    string `json:"code,omitempty"`
		Message string `json:"message"`
	}
	e := object{Type: "invalid_request_error", Message: r.detail()}
	status := http.StatusBadRequest
	switch r {
	case otherPayload:
		e.Type = "idempotency_error"
	case inFlight:
		status, e.Code = http.StatusConflict, "idempotency_key_in_use"
	}
	body, err := json.Marshal(map[string]object{"error": e})
	if err != nil {
		panic(err) // a struct of strings always marshals
	}
	return faults.Reply{Status: status, Header: http.Header{"Content-Type": {"application/json"}}, Body: append(body, '\n')}
}
