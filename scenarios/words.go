package scenarios

import (
	"slices"
	"strings"

	"github.com/retrychaos/retrychaos/faults"
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
		"canceled", "certificate", "deadline", "decoding", "dns", "eof", "not_sent", "refused", "reset", "timeout", "tls",
		"unexpected_eof",
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
var safeMethods = []string{"GET", "HEAD", "OPTIONS", "PROPFIND", "QUERY", "REPORT", "SEARCH", "TRACE"}

func keyModes() []string { return []string{string(Honour), string(Ignore), string(Require)} }

func protocols() []string { return []string{faults.HTTP1, faults.HTTP2} }

func tokenModes() []string {
	return []string{string(TokenExpired), string(TokenRevoked), string(TokenLocked)}
}

func profiles() []string { return []string{string(Plain), string(IETF), string(Stripe)} }

func worlds() []string { return []string{string(Virtual), string(Loopback)} }

// oneOf writes a list of words for a message.
func oneOf(list []string) string {
	if len(list) == 1 {
		return list[0]
	}
	list = slices.Clone(list)
	return strings.Join(list[:len(list)-1], ", ") + " or " + list[len(list)-1]
}
