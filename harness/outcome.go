package harness

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"syscall"

	"github.com/retrychaos/retrychaos/harness/history"
)

// maxReply bounds what an adapter reads of a reply.
const maxReply = 16 << 20

// Receive reads, closes and judges a reply as an application would: a status of 300 or more is a
// failure, a body that breaks off is an error, and a body that is not the reply to this call is a decoding
// failure. Adapters for clients with a shape of their own use it after their client has returned.
// Exactly one of resp and err may be nil; where both are set, err wins and resp is closed.
func Receive(call Call, resp *http.Response, err error) Outcome {
	if resp != nil && resp.Body != nil {
		defer resp.Body.Close()
	}
	if err != nil {
		return Outcome{Err: err, Status: statusOf(err), Decoding: isDecoding(err)}
	}
	if resp == nil {
		return Outcome{Err: errors.New("the client returned neither a response nor an error")}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxReply))
	if resp.StatusCode >= 300 {
		return Outcome{Status: resp.StatusCode}
	}
	if err != nil {
		return Outcome{Err: err}
	}
	if call.Method == http.MethodHead {
		return Outcome{OK: true, Status: resp.StatusCode}
	}
	if err := DecodeReply(call, body); err != nil {
		return Outcome{Err: err, Decoding: true}
	}
	return Outcome{OK: true, Status: resp.StatusCode}
}

// A ReplyError says that the body of a good status is not the reply to the call.
type ReplyError struct {
	Call string
	Err  error
}

func (e *ReplyError) Error() string { return fmt.Sprintf("reply to %s: %v", e.Call, e.Err) }
func (e *ReplyError) Unwrap() error { return e.Err }

// DecodeReply parses the fake server's reply as a careful application does: one JSON object of the known
// shape, about this call, with nothing behind it. Its error is a *ReplyError.
func DecodeReply(call Call, body []byte) error {
	var r struct {
		Call   *string `json:"call"`
		OK     *bool   `json:"ok"`
		Effect int     `json:"effect"`
	}
	if err := json.Unmarshal(body, &r); err != nil {
		return &ReplyError{call.ID, err}
	}
	switch {
	case r.Call == nil || r.OK == nil:
		return &ReplyError{call.ID, errors.New("the fields call and ok are missing")}
	case *r.Call != call.ID:
		return &ReplyError{call.ID, fmt.Errorf("it is about %q", *r.Call)}
	case !*r.OK:
		return &ReplyError{call.ID, errors.New("ok is false")}
	}
	return nil
}

// statusOf finds a response status in an error chain, by the methods and fields that libraries use.
func statusOf(err error) int {
	var a interface{ HTTPStatus() int }
	if errors.As(err, &a) {
		return a.HTTPStatus()
	}
	var b interface{ StatusCode() int }
	if errors.As(err, &b) {
		return b.StatusCode()
	}
	var c interface{ HTTPStatusCode() int }
	if errors.As(err, &c) {
		return c.HTTPStatusCode()
	}
	return 0
}

func isDecoding(err error) bool {
	var (
		reply  *ReplyError
		syntax *json.SyntaxError
		typ    *json.UnmarshalTypeError
	)
	return errors.As(err, &reply) || errors.As(err, &syntax) || errors.As(err, &typ)
}

func isDNS(err error) bool {
	var dns *net.DNSError
	return errors.As(err, &dns)
}

// isTLS finds alerts, whose type crypto/tls does not export, by the operation of their *net.OpError.
func isTLS(err error) bool {
	var (
		op     *net.OpError
		record tls.RecordHeaderError
	)
	return errors.As(err, &record) || errors.As(err, &op) && (op.Op == "remote error" || op.Op == "local error")
}

func isCertificate(err error) bool {
	var (
		verify    *tls.CertificateVerificationError
		authority x509.UnknownAuthorityError
		invalid   x509.CertificateInvalidError
		host      x509.HostnameError
	)
	return errors.As(err, &verify) || errors.As(err, &authority) || errors.As(err, &invalid) || errors.As(err, &host)
}

// record turns an outcome into facts for the history.
func (o Outcome) record() history.Outcome {
	h := history.Outcome{OK: o.OK, Status: o.Status, Attempts: o.Attempts}
	if o.Err != nil {
		h.Error = o.Err.Error()
	}
	h.Traits = traits(o)
	return h
}

func traits(o Outcome) []string {
	var list []string
	add := func(yes bool, trait string) {
		if yes {
			list = append(list, trait)
		}
	}
	err := o.Err
	var timeout net.Error
	add(errors.Is(err, context.Canceled), history.TraitCanceled)
	add(errors.Is(err, context.DeadlineExceeded), history.TraitDeadline)
	add(errors.As(err, &timeout) && timeout.Timeout(), history.TraitTimeout)
	add(errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE), history.TraitReset)
	add(errors.Is(err, syscall.ECONNREFUSED), history.TraitRefused)
	add(errors.Is(err, io.EOF), history.TraitEOF)
	add(errors.Is(err, io.ErrUnexpectedEOF), history.TraitUnexpectedEOF)
	add(o.Decoding || isDecoding(err), history.TraitDecoding)
	add(o.NotSent, history.TraitNotSent)
	add(isDNS(err), history.TraitDNS)
	add(isTLS(err), history.TraitTLS)
	add(isCertificate(err), history.TraitCertificate)
	var other *remoteError
	if errors.As(err, &other) {
		add(other.kind != "" && !slices.Contains(list, other.kind), other.kind)
	}
	return list
}
