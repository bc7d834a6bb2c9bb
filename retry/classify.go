package retry

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/textproto"
	"os"
	"regexp"
	"syscall"
	"time"
)

// A Category says at which stage an attempt ended.
type Category string

// The categories.
const (
	CategorySuccess         Category = "success"          // a response that is no failure
	CategoryTransport       Category = "transport"        // the exchange broke: no whole response arrived
	CategoryInvalidResponse Category = "invalid_response" // what arrived is not HTTP
	CategoryStatus          Category = "status"           // a whole response whose status is a failure
	CategoryDecoding        Category = "decoding"         // a whole response that cannot be understood
	CategoryCanceled        Category = "canceled"         // the caller gave up
	CategoryUnknown         Category = "unknown"          // an error nothing is known about
)

// An Outcome says what is known about the effect of an attempt. It decides
// whether the attempt may be repeated.
type Outcome string

// The outcomes.
const (
	// NotProcessed: the request was not sent, or the server says that it did
	// nothing. Any call may be repeated.
	NotProcessed Outcome = "not_processed"

	// Unknown: the server may have carried out the request. Only a call that
	// may safely happen twice is repeated: one with an idempotent method, or
	// with a key that the server honours (RFC 9110 §9.2.2).
	Unknown Outcome = "unknown"

	// Final: another try would end the same way, or is not wanted.
	Final Outcome = "final"
)

// A Decision is what an attempt's end is taken for, and why.
type Decision struct {
	Category Category
	Outcome  Outcome
	Reason   string // for people; not stable

	Throttled bool // the server limits the rate: 429
	Timeout   bool // the failure is a timeout
	Offline   bool // no connection: no route, no answer from DNS, or refused
}

// String returns category, outcome and reason, such as "status, unknown: 500 Internal Server Error".
func (d Decision) String() string {
	return fmt.Sprintf("%s, %s: %s", d.Category, d.Outcome, d.Reason)
}

// LogValue makes a Decision a group of the same parts in log/slog.
func (d Decision) LogValue() slog.Value {
	return slog.GroupValue(
		slog.String("category", string(d.Category)),
		slog.String("outcome", string(d.Outcome)),
		slog.String("reason", d.Reason))
}

// Repeatable reports whether a call may be tried again after d. safe says that
// the call may happen twice.
func (d Decision) Repeatable(safe bool) bool {
	return d.Outcome == NotProcessed || d.Outcome == Unknown && safe
}

// Classify judges the end of one attempt: a response, or an error. It goes by
// the types of errors and by what was seen on the wire, and by the text of an
// error only where net/http has no other way to say that an HTTP/2 server did
// not process a request; the zero Wire means that nothing is known of the wire.
//
// An error that it does not know is Final: repeating it is a guess.
//
// Classify cannot know whose deadline a context.DeadlineExceeded was, and
// takes it for a timeout on the way, like any other. Look at your own context
// first; Client and Do look at theirs.
func Classify(resp *http.Response, err error, wire Wire) Decision {
	if err == nil && resp != nil {
		return classifyStatus(resp.StatusCode, resp.Header)
	}
	if err == nil {
		return Decision{Category: CategorySuccess, Outcome: Final, Reason: "no error"}
	}
	d := classifyError(err, wire)
	if d.Category == CategoryTransport {
		d.Timeout = isTimeout(err)
		d.Offline = d.Outcome == NotProcessed && offline(err)
	}
	return d
}

// classifyStatus goes by RFC 9110 §15, RFC 6585 and RFC 8470.
func classifyStatus(code int, h http.Header) Decision {
	d := Decision{Category: CategoryStatus, Outcome: Final, Reason: fmt.Sprintf("%d %s", code, http.StatusText(code))}
	switch {
	case code < 400:
		d.Category = CategorySuccess
	case h.Get("Idempotent-Replayed") == "true":
		// Stripe stores a failure with the key as it does a success, and says
		// so: the key will never have another answer.
		d.Reason += ", replayed by the server for this key"
	case code == http.StatusRequestTimeout, // the request never arrived whole
		code == http.StatusTooEarly,        // refused unread, for fear of a replay
		code == http.StatusTooManyRequests: // refused by a rate limit
		d.Outcome = NotProcessed
		d.Throttled = code == http.StatusTooManyRequests
	case code == http.StatusRequestEntityTooLarge:
		// Temporary, if the server says when to try again (RFC 9110 §15.5.14).
		if _, ok := ParseRetryAfter(h, time.Now()); ok {
			d.Outcome = NotProcessed
		}
	case code == http.StatusNotImplemented, code == http.StatusHTTPVersionNotSupported:
		// A fact about the server that waiting does not change.
	case code >= 500:
		d.Outcome = Unknown
	}
	return d
}

func classifyError(err error, wire Wire) Decision {
	// What this package itself has to say.
	if d, ok := errors.AsType[*outcomeError](err); ok {
		return Decision{Category: CategoryUnknown, Outcome: d.outcome, Reason: "the operation says so"}
	}
	if _, ok := errors.AsType[*DecodeError](err); ok {
		return Decision{Category: CategoryDecoding, Outcome: Final, Reason: "the response cannot be decoded"}
	}
	if e, ok := errors.AsType[*Error](err); ok && !is[*BodyError](e.Stop) {
		// RFC 9110 §9.2.2: do not automatically retry a failed automatic
		// retry. Layers that did would multiply. A layer below that lacked
		// the body has not retried, though.
		return Decision{Category: CategoryUnknown, Outcome: Final, Reason: "has been retried already"}
	}
	if status, ok := errors.AsType[*StatusError](err); ok {
		return classifyStatus(status.StatusCode, status.Header)
	}

	if errors.Is(err, context.Canceled) {
		return Decision{Category: CategoryCanceled, Outcome: Final, Reason: "canceled"}
	}
	if is[*readError](err) {
		// The header had arrived, so nothing below applies that could say
		// that the request was not processed.
		if reason, ok := broken(err); ok {
			return Decision{Category: CategoryTransport, Outcome: Unknown, Reason: reason + " within the response"}
		}
		return Decision{Category: CategoryInvalidResponse, Outcome: Unknown, Reason: "the response's body is not valid HTTP"}
	}
	if reason, ok := permanent(err); ok {
		return Decision{Category: CategoryTransport, Outcome: Final, Reason: reason}
	}
	if reason, ok := unsent(err); ok && !wire.Written() {
		return Decision{Category: CategoryTransport, Outcome: NotProcessed, Reason: reason}
	}

	if refused(err) {
		return Decision{Category: CategoryTransport, Outcome: NotProcessed, Reason: "the server refused the stream unread"}
	}

	reason, onTheWay := broken(err)
	switch {
	case onTheWay && wire.Known && !wire.Written():
		return Decision{Category: CategoryTransport, Outcome: NotProcessed, Reason: reason + " before anything was sent"}
	case onTheWay:
		return Decision{Category: CategoryTransport, Outcome: Unknown, Reason: reason}
	case malformed(err) || wire.FirstByte:
		// Bytes came back and the failure is not one of the connection: they
		// were not HTTP.
		return Decision{Category: CategoryInvalidResponse, Outcome: Unknown, Reason: "the response is not valid HTTP"}
	case wire.Written():
		// net/http has no type for a reused connection that closes before
		// the response. That a request was written and no byte came back is
		// all there is to know.
		return Decision{Category: CategoryTransport, Outcome: Unknown, Reason: "the connection failed before a response"}
	case wire.Known && wire.Reused:
		return Decision{Category: CategoryTransport, Outcome: NotProcessed, Reason: "an idle connection had closed; nothing was sent"}
	case wire.Known && wire.Connected:
		// Neither has it one for a connection that the server closes right
		// after it was made.
		return Decision{Category: CategoryTransport, Outcome: NotProcessed, Reason: "the connection closed before anything was sent"}
	}
	return Decision{Category: CategoryUnknown, Outcome: Final, Reason: "unknown error"}
}

// permanent finds failures that say something about the configuration, or
// about who the server is, which waiting does not change.
func permanent(err error) (reason string, ok bool) {
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return "the server's certificate is not accepted", true
	}
	// Custom verification functions return these bare.
	for _, target := range []func(error) bool{
		is[x509.UnknownAuthorityError], is[x509.HostnameError], is[x509.CertificateInvalidError], is[x509.SystemRootsError],
	} {
		if target(err) {
			return "the server's certificate is not accepted", true
		}
	}
	if is[tls.RecordHeaderError](err) {
		return "the server does not speak TLS", true
	}
	if errors.Is(err, http.ErrSchemeMismatch) {
		return "the server does not speak TLS", true
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound && !dns.IsTemporary && !dns.IsTimeout {
		return "the host does not exist", true
	}
	if is[*net.AddrError](err) || is[*net.ParseError](err) || is[net.UnknownNetworkError](err) || is[net.InvalidAddrError](err) {
		return "the address is not valid", true
	}
	return "", false
}

func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// unsent finds failures whose type says that no request was sent, or that the
// server did not look at it.
func unsent(err error) (reason string, ok bool) {
	if is[*net.DNSError](err) {
		return "the host name could not be resolved", true
	}
	if op, ok := errors.AsType[*net.OpError](err); ok && (op.Op == "dial" || op.Op == "proxyconnect") {
		return "no connection could be made", true
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return "connection refused", true
	}
	return "", false
}

// offline finds failures that may mean that the network is down.
func offline(err error) bool {
	for _, errno := range []syscall.Errno{syscall.ENETUNREACH, syscall.EHOSTUNREACH, syscall.ENETDOWN, syscall.ECONNREFUSED} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return is[*net.DNSError](err)
}

// An http2StreamError has the shape of net/http's own, unexported type for a
// stream that was reset. errors.As finds that one by its shape: a documented
// bridge for code that cannot name it (go.dev/issue/53896).
type http2StreamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e http2StreamError) Error() string {
	return fmt.Sprintf("stream %d reset: code %d", e.StreamID, e.Code)
}

// refusedStream is REFUSED_STREAM: the server promises that no part of the
// request was processed (RFC 9113 §8.7).
const refusedStream = 0x7

func refused(err error) bool {
	if stream, ok := errors.AsType[http2StreamError](err); ok {
		return stream.Code == refusedStream
	}
	return notResent.MatchString(innermost(err).Error())
}

// notResent knows the errors by which net/http says that a server did not look
// at a request over HTTP/2: that it would have sent it again, had it been given
// the body, after a refused stream or a GOAWAY below the stream (RFC 9113
// §8.7), and a GOAWAY with an error code before a connection's first request.
// They have a text and no type, and this is the one place that goes by a text.
// It may: the text is net/http's own and holds nothing of the server's but
// numbers, and one that is not known says nothing, which is the safe side.
var notResent = regexp.MustCompile(`^http2: (Transport: cannot retry err \[(stream error: stream ID \d+; REFUSED_STREAM; received from peer|` +
	`http2: Transport received Server's graceful shutdown GOAWAY)\] after Request\.Body was written; |` +
	`Transport received GOAWAY from server ErrCode:\S+$)`)

// innermost is the error at the end of a chain of single wraps.
func innermost(err error) error {
	for next := err; next != nil; next = errors.Unwrap(next) {
		err = next
	}
	return err
}

// broken finds failures of a connection, on the way there or back.
func broken(err error) (reason string, ok bool) {
	switch {
	case isTimeout(err):
		return "timed out", true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "the connection ended early", true
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNABORTED), errors.Is(err, syscall.EPIPE):
		return "the connection was reset", true
	case is[*net.OpError](err), errors.Is(err, net.ErrClosed), errors.Is(err, io.ErrClosedPipe):
		return "the connection failed", true
	case is[http2StreamError](err):
		return "the stream was reset", true
	}
	return "", false
}

// isTimeout reports whether err is a timeout of any kind.
func isTimeout(err error) bool {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) {
		return true
	}
	ne, ok := errors.AsType[net.Error](err)
	return ok && ne.Timeout()
}

// malformed finds a response that is not HTTP by its type, where it has one.
func malformed(err error) bool {
	return is[textproto.ProtocolError](err) || is[*textproto.Error](err)
}
