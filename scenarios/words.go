package scenarios

import (
	"slices"
	"strings"
)

// RuleIDs returns the ids of the checks that a scenario can name as its rule, sorted. The checks live
// above this package, which therefore keeps their ids as words.
func RuleIDs() []string {
	return []string{
		"attempts.bounded",
		"attempts.permanent-once",
		"attempts.unsafe-not-repeated",
		"body.intact",
		"effects.no-phantom",
		"effects.once",
		"error.last-real",
		"key.stable",
		"liveness.recovers",
		"resources.released",
		"timing.backoff-grows",
		"timing.cancel",
		"timing.deadline",
		"timing.retry-after",
		"timing.spread",
	}
}

// Traits returns the words that Expect.Trait can hold, sorted: what errors.Is and errors.As find in the
// error that a caller gets.
func Traits() []string {
	return []string{
		"canceled", "deadline", "decoding", "eof", "not_sent", "refused", "reset", "timeout", "unexpected_eof",
	}
}

// Methods returns the methods that a call can have, sorted: those of the IANA registry but PRI and
// CONNECT, which are no calls of an application. QUERY (RFC 10008) is among them.
func Methods() []string {
	return []string{
		"ACL", "BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", "COPY", "DELETE", "GET", "HEAD", "LABEL",
		"LINK", "LOCK", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL", "MKREDIRECTREF", "MKWORKSPACE", "MOVE",
		"OPTIONS", "ORDERPATCH", "PATCH", "POST", "PROPFIND", "PROPPATCH", "PUT", "QUERY", "REBIND", "REPORT",
		"SEARCH", "TRACE", "UNBIND", "UNCHECKOUT", "UNLINK", "UNLOCK", "UPDATE", "UPDATEREDIRECTREF",
		"VERSION-CONTROL",
	}
}

// safeMethods ask for no effect, so that nothing can be expected of the ledger.
var safeMethods = []string{"GET", "HEAD", "OPTIONS", "QUERY", "TRACE"}

func keyModes() []string { return []string{string(Honour), string(Ignore), string(Require)} }

func worlds() []string { return []string{string(Virtual), string(Loopback)} }

// nearest returns the word of list that text was perhaps meant to be; "" where none is near.
func nearest(text string, list []string) string {
	if text == "" || len(text) > 80 {
		return ""
	}
	low := strings.ToLower(text)
	limit := 3 // letters that may differ
	switch {
	case len(text) <= 2:
		limit = 1
	case len(text) <= 5:
		limit = 2
	}
	best, bestDist := "", limit+1
	for _, w := range list {
		if d := distance(low, strings.ToLower(w)); d < bestDist {
			best, bestDist = w, d
		}
	}
	if best != "" {
		return best
	}
	for _, w := range list { // "once" for "effects.once": the shortest word that holds it
		if len(low) >= 4 && strings.Contains(strings.ToLower(w), low) && (best == "" || len(w) < len(best)) {
			best = w
		}
	}
	return best
}

// distance is the optimal string alignment distance: a swap of neighbours counts one.
func distance(a, b string) int {
	ra, rb := []rune(a), []rune(b)
	if len(ra)-len(rb) > 8 || len(rb)-len(ra) > 8 {
		return 99
	}
	prev2, prev, cur := make([]int, len(rb)+1), make([]int, len(rb)+1), make([]int, len(rb)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(ra); i++ {
		cur[0] = i
		for j := 1; j <= len(rb); j++ {
			cost := 1
			if ra[i-1] == rb[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && ra[i-1] == rb[j-2] && ra[i-2] == rb[j-1] {
				cur[j] = min(cur[j], prev2[j-2]+1)
			}
		}
		prev2, prev, cur = prev, cur, prev2
	}
	return prev[len(rb)]
}

// oneOf writes a list of words for a message.
func oneOf(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	list = slices.Clone(list)
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}
