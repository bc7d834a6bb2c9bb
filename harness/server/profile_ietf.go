package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
)

// ietf is draft-ietf-httpapi-idempotency-key-header-07. Where the draft leaves a choice, this is ours:
//
//   - method, path and body make the payload; a repeat with another one is told so (422) also while the
//     first is at work;
//   - a key that is no structured-field string is answered 400, like a missing one (2.7), also where keys
//     are not required;
//   - a parameter of the field is accepted and means nothing; the empty string is a key;
//   - every outcome of the application is stored, success and error alike, and a replay is not marked;
//   - a key is kept for 24 hours from its first request on, and is then unknown;
//   - the caller is who Authorization says (5).
func ietf() profile {
	return profile{
		expiry:  24 * time.Hour,
		scoped:  true,
		created: http.StatusCreated,
		takes:   func(method string) bool { return !history.IdempotentMethod(method) }, // 1
		key:     stringItem,
		refuse:  problem,
	}
}

// stringItem reads a field whose value is an Item of type String (draft 2.1; RFC 9651 §3.3.3, §4.2). Several
// lines are one value with commas between them (RFC 9651 §4.2), which is a key only where a string spans them.
func stringItem(lines []string) (string, error) {
	item, err := httpsfv.UnmarshalItem(lines)
	if err != nil {
		return "", err
	}
	key, ok := item.Value.(string)
	if !ok { // a token is an httpsfv.Token, a date a time.Time …
		return "", fmt.Errorf("a %T is no string", item.Value)
	}
	return key, nil
}

// problem is a refusal as RFC 9457 has it. Without a type of its own its title is that of the status
// (RFC 9457 §4.2.1).
func problem(_ string, r refusal) faults.Reply {
	body, err := json.Marshal(struct {
		Title  string `json:"title"`
		Status int    `json:"status"`
		Detail string `json:"detail"`
	}{http.StatusText(r.status()), r.status(), r.detail()})
	if err != nil {
		panic(err) // a struct of strings and numbers always marshals
	}
	return faults.Reply{
		Status: r.status(),
		Header: http.Header{"Content-Type": {"application/problem+json"}},
		Body:   append(body, '\n'),
	}
}
