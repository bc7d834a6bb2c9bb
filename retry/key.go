package retry

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"net/http"
	"strings"
)

// Options of one call travel in the context of its request, so that they reach
// the loop through any layer in between.
type callOptions struct {
	key        string // an idempotency key, raw
	makeKey    bool   // make one
	honoured   bool   // the server honours the key
	idempotent bool   // the caller says that the call may happen twice
}

type optionsKey struct{}

func optionsFrom(ctx context.Context) callOptions {
	o, _ := ctx.Value(optionsKey{}).(callOptions)
	return o
}

func withOptions(ctx context.Context, change func(*callOptions)) context.Context {
	o := optionsFrom(ctx)
	change(&o)
	return context.WithValue(ctx, optionsKey{}, o)
}

// WithIdempotencyKey makes the call carry an idempotency key, made once, before
// the first attempt, and the same for all of them: a random UUID with 122 bits
// from crypto/rand. A key that the request already has in its header is kept.
//
// It also declares that the server honours the key, so that the call may be
// repeated when it is unknown whether an attempt had its effect. Do not use it
// with a server that ignores keys.
func WithIdempotencyKey(ctx context.Context) context.Context {
	return withOptions(ctx, func(o *callOptions) { o.key, o.makeKey, o.honoured = "", true, true })
}

// WithKey is WithIdempotencyKey with a key of the caller's, for a call that is
// continued in another process, say. Use a key for one call only. Give it raw:
// the quotes of the structured-field form are added (see Policy.BareKeys).
// An empty key is none, and one that cannot be sent is a [*KeyError].
func WithKey(ctx context.Context, key string) context.Context {
	return withOptions(ctx, func(o *callOptions) { o.key, o.makeKey, o.honoured = key, false, true })
}

// WithHonouredKey declares that the server honours the key that the request
// carries in its header already. Without it, or [Policy.HonouredKeys], such a
// header is a header like any other: it does not make a POST repeatable.
func WithHonouredKey(ctx context.Context) context.Context {
	return withOptions(ctx, func(o *callOptions) { o.honoured = true })
}

// Idempotent declares that the call may happen twice, whatever its method: a
// POST that is a search, a method that this package does not know, or an
// operation given to Do.
func Idempotent(ctx context.Context) context.Context {
	return withOptions(ctx, func(o *callOptions) { o.idempotent = true })
}

// keyFor returns the value of the key header that every attempt of the call
// with the options o gets, or "" where the request stays as it is, and whether
// the call carries a key that the server honours.
func keyFor(req *http.Request, o callOptions, p *Policy) (value string, honoured bool) {
	honoured = o.honoured || p.HonouredKeys
	if len(req.Header) > 0 && req.Header.Get(p.KeyHeader) != "" {
		return "", honoured
	}
	if o.key == "" && !o.makeKey {
		return "", false
	}
	if o.key == "" {
		// A redirected request is the same call. It has lost the header that
		// was added below http.Client, so look where it came from.
		if r := req.Response; r != nil && r.Request != nil {
			if previous := r.Request.Header.Get(p.KeyHeader); previous != "" {
				return previous, honoured
			}
		}
		o.key = newKey()
	}
	if p.BareKeys {
		return o.key, honoured
	}
	return quote(o.key), honoured
}

// newKey returns a random UUID (RFC 9562 §5.4).
func newKey() string {
	var u [16]byte
	rand.Read(u[:]) // never fails
	u[6] = u[6]&0x0f | 0x40
	u[8] = u[8]&0x3f | 0x80
	s := hex.EncodeToString(u[:])
	return s[:8] + "-" + s[8:12] + "-" + s[12:16] + "-" + s[16:20] + "-" + s[20:]
}

// quote writes key as a structured-field string (RFC 9651 §4.1.6).
func quote(key string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// idempotentMethod reports whether a method is defined as idempotent: by
// RFC 9110 §9.2.2, by RFC 10008 (QUERY), or by another specification that the
// IANA registry of methods names, mostly of WebDAV. A method that is not
// registered is not idempotent until the caller says so. Method names have
// case.
func idempotentMethod(method string) bool {
	switch method {
	case "", "GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "QUERY",
		"ACL", "BASELINE-CONTROL", "BIND", "CHECKIN", "CHECKOUT", "COPY",
		"LABEL", "LINK", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL",
		"MKREDIRECTREF", "MKWORKSPACE", "MOVE", "ORDERPATCH", "PRI",
		"PROPFIND", "PROPPATCH", "REBIND", "REPORT", "SEARCH", "UNBIND",
		"UNCHECKOUT", "UNLINK", "UNLOCK", "UPDATE", "UPDATEREDIRECTREF",
		"VERSION-CONTROL":
		return true
	}
	return false
}
