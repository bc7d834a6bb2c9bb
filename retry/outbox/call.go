package outbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"

	"github.com/retrychaos/retrychaos/retry"
)

// An ID names a call in its file. IDs grow, and are never given twice.
type ID uint64

// String returns the number in decimal.
func (id ID) String() string { return strconv.FormatUint(uint64(id), 10) }

// A Call is a request to be delivered. All of it is written to the file as it
// is, credentials included: put those into the request by [Options.Prepare].
type Call struct {
	Method string // "" is GET
	URL    string // absolute, http or https
	Header http.Header
	Body   []byte

	// Key is the idempotency key, raw: the quotes of the structured-field
	// form are added (see retry.Policy.BareKeys). If it is empty, and the
	// header has none either, a call that needs one gets a new one. A key in
	// the header is sent as it is there.
	Key string

	// KeyHonoured declares that the server honours the key: of requests with
	// the same key it carries out one. Policy.HonouredKeys declares it for
	// all calls.
	KeyHonoured bool

	// Idempotent declares that the call may happen twice, whatever its
	// method.
	Idempotent bool

	// Order, if not empty, names a row of calls that are delivered one at a
	// time, in the order in which they were enqueued: a call that waits holds
	// back those behind it. When it becomes a dead letter they go on without
	// it. Without an Order a later call may overtake an earlier one, and an
	// old PUT that is tried again may undo a newer one.
	Order string
}

// dropped are the header fields that net/http does not send as given.
var dropped = [...]string{"Host", "Content-Length", "Transfer-Encoding", "Trailer"}

// prepare checks c and returns it as it is stored: the key is in the header, and
// nothing is shared with the caller.
func (c Call) prepare(o Options) (Call, error) {
	bad := func(field, format string, args ...any) (Call, error) {
		return Call{}, &CallError{Field: field, Problem: fmt.Sprintf(format, args...)}
	}
	if c.Method == "" {
		c.Method = http.MethodGet
	}
	if !httpguts.ValidHeaderFieldName(c.Method) || c.Method == http.MethodConnect { // both are tokens
		return bad("Method", "is %q, which cannot be sent", c.Method)
	}
	u, err := url.Parse(c.URL)
	switch {
	case err != nil:
		return bad("URL", "cannot be parsed: %v", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return bad("URL", "is %q; it must be absolute, http or https", c.URL)
	case !utf8.ValidString(c.URL):
		return bad("URL", "is not valid UTF-8")
	}
	h := make(http.Header, len(c.Header)+1)
	for _, name := range slices.Sorted(maps.Keys(c.Header)) {
		values := c.Header[name]
		if !httpguts.ValidHeaderFieldName(name) {
			return bad("Header", "has a field %q, which is no field name", name)
		}
		name = http.CanonicalHeaderKey(name)
		if slices.Contains(dropped[:], name) {
			return bad("Header", "has a field %s, which net/http sets itself", name)
		}
		for _, v := range values {
			if !httpguts.ValidHeaderFieldValue(v) || !utf8.ValidString(v) {
				return bad("Header", "has a field %s with a value that cannot be sent or stored", name)
			}
			h[name] = append(h[name], v)
		}
	}
	if !utf8.ValidString(c.Order) {
		return bad("Order", "is not valid UTF-8")
	}
	if len(c.Body) > o.MaxBody {
		return bad("Body", "has %d bytes; the limit is %d", len(c.Body), o.MaxBody)
	}
	c.Header, c.Body = h, bytes.Clone(c.Body)
	return c.withKey(o)
}

// withKey puts the key into the header, in the form that it will have on the
// wire for ever: a policy that changes between two runs must not change it.
func (c Call) withKey(o Options) (Call, error) {
	c.KeyHonoured = c.KeyHonoured || o.Policy.HonouredKeys
	name := http.CanonicalHeaderKey(o.Policy.KeyHeader)
	given := c.Header.Get(name) != ""
	if given && c.Key == c.Header.Get(name) { // as in a DeadLetter
		c.Key = ""
	}
	switch {
	case given && (c.Key != "" || len(c.Header[name]) > 1):
		return Call{}, &CallError{Field: "Key", Problem: "is given more than once"}
	case strings.TrimSpace(c.Key) != c.Key || strings.ContainsFunc(c.Key, unprintable):
		return Call{}, &CallError{Field: "Key", Problem: fmt.Sprintf("is %q; it must be printable ASCII (RFC 9651 §3.3.3), without spaces at its ends", c.Key)}
	}
	safe := c.Idempotent || retry.IdempotentMethod(c.Method)
	if !safe && !c.KeyHonoured {
		return Call{}, &UnsafeError{Method: c.Method, Keyed: given || c.Key != ""}
	}
	if given {
		c.Key = c.Header.Get(name)
		return c, nil
	}
	if c.Key == "" {
		if !c.KeyHonoured {
			return c, nil
		}
		c.Key = retry.NewKey()
	}
	c.Key = o.Policy.KeyValue(c.Key)
	c.Header.Set(name, c.Key)
	return c, nil
}

func unprintable(r rune) bool { return r < ' ' || r > '~' }

// keyOnly reports whether nothing but its key keeps the call from happening
// twice.
func (c Call) keyOnly() bool { return !c.Idempotent && !retry.IdempotentMethod(c.Method) }

// host is what a call shares with others to the same server.
func (c Call) host() string {
	u, err := url.Parse(c.URL)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// sum is a digest of all that is sent, by which damage is noticed and equal
// calls are known.
func (c Call) sum() []byte {
	h := sha256.New()
	part := func(b []byte) {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(b)))
		h.Write(n[:])
		h.Write(b)
	}
	part([]byte(c.Method))
	part([]byte(c.URL))
	part([]byte(c.Order))
	for _, name := range slices.Sorted(maps.Keys(c.Header)) {
		part([]byte(name))
		part([]byte(strings.Join(c.Header[name], "\n"))) // no value has a line break
	}
	part(c.Body)
	return h.Sum(nil)
}

// withoutSecrets prints the URL for the log, without the parts that may be
// secret.
func withoutSecrets(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}
