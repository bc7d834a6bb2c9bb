package harness

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"

	"github.com/retrychaos/retrychaos/harness/driver"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

// A Client is the thing under test, behind an adapter: how to make an instance of it, and what its author
// says of its policy. Make one with HTTPClient, RoundTripper, DoFunc or Exec, or fill it in.
type Client struct {
	Name     string
	Version  string // of the library under test, for reports
	Declared history.Declared
	// New makes an instance for one run, or for one call of a fleet. If the Caller is an io.Closer it is
	// closed when its calls are over.
	New func(env Env) (Caller, error)
	// Known are the failures that are known and accepted. One that does not show is a finding of KnownID.
	Known []scenarios.KnownFailure

	// Policy is its effective policy in words, for people; "" where nobody says.
	Policy string
	// Missing says why this client cannot be run here, such as a runtime that is not installed. Every scenario is
	// then skipped with that reason.
	Missing string

	driver    *driver.Driver
	installed func() string // says what is missing for the driver, "" for nothing
	trusts    bool          // a process that is told which certificate authority to trust
	cancels   bool          // a driver that can cancel a call
}

// A Caller performs calls. It must be safe for concurrent use unless every scenario that it meets is a
// fleet.
type Caller interface {
	// Call performs one logical operation and reports what an application would see of it. It reports and
	// never judges.
	Call(ctx context.Context, call Call) Outcome
}

// CallerFunc is a function as a Caller.
type CallerFunc func(ctx context.Context, call Call) Outcome

// Call calls f.
func (f CallerFunc) Call(ctx context.Context, call Call) Outcome { return f(ctx, call) }

// Env is what a client instance is built on.
type Env struct {
	// Transport reaches the fake server; it counts what passes. It wraps one http.Transport of this
	// instance's own. In the virtual world it is the only way there, with DialContext.
	Transport http.RoundTripper
	// DialContext reaches the fake server for clients that build their own transport.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
	// Protocol is what the server speaks: faults.HTTP1, or faults.HTTP2 without TLS and with prior knowledge
	// (RFC 9113 §3.3). Transport does already; a client's own transport has to be told.
	Protocol string
	// BaseURL is the server's, without a slash at the end.
	BaseURL string
	// TLS trusts the server, for clients that build their own transport; nil where it speaks no TLS.
	TLS *tls.Config
	// CA is the certificate of the authority that TLS trusts, in PEM; nil where the server speaks no TLS, but for
	// a command that has asked for it.
	CA []byte
	// Refresh asks the server for a new token, for the hook of a client that repeats a request answered 401
	// with another token: "Authorization: Bearer " and the token. It is nil where the scenario has no tokens;
	// calls then carry none. The call's header starts with a token that has expired.
	Refresh func(ctx context.Context) (string, error)
	// Seed is for clients whose randomness can be seeded; it differs from instance to instance.
	Seed uint64
	// Finding tells of something that is wrong with the test and not with the client, such as a request to
	// somewhere that the test does not know. The run is then undecided, and says why. kind is one of the
	// history.Finding constants. It may be called from several goroutines at once.
	Finding func(kind, text string)
}

// Call is one logical operation that an application asks a client for.
type Call struct {
	ID     string
	Method string
	URL    string
	Header http.Header // calls of a group share it: it is not to be written to
	Body   []byte      // nil: none
	// Stream: the application has the body as a stream that can be read once, from Reader.
	Stream bool
	// Key is an idempotency key made for this call, for clients that do not make their own; "" where the
	// application wants none.
	Key string
	// KeyHonoured tells that the application knows the server to honour keys. A key that is not known to
	// be honoured is no licence to repeat.
	KeyHonoured bool
	// KeyText is the key without the form that it has on the wire, where the application has one of its own:
	// a client that makes keys must send this one. "" where it leaves the key to the client.
	KeyText string
	// Idempotent tells that the application says that the call may happen twice, whatever its method.
	Idempotent bool

	stream io.Reader // of Stream, shared by all copies of the call
}

// Reader returns the call's body to be read, nil if there is none. It begins anew each time, but for a Stream:
// there it is always the same one, and nothing more comes of it when it has been read.
func (c Call) Reader() io.Reader {
	switch {
	case c.Body == nil:
		return nil
	case c.Stream:
		return c.stream
	}
	return bytes.NewReader(c.Body)
}

// Request makes the call's request, with Key as its Idempotency-Key where there is one. It has GetBody, unless the
// body is a Stream.
func (c Call) Request(ctx context.Context) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, c.Method, c.URL, c.Reader())
	if err != nil {
		return nil, err
	}
	for k, v := range c.Header {
		req.Header[k] = append([]string(nil), v...)
	}
	if c.Key != "" {
		req.Header.Set("Idempotency-Key", c.Key)
	}
	return req, nil
}

// Outcome is what a client told the application.
type Outcome struct {
	OK     bool // the operation succeeded, reply read and decoded
	Status int  // status of the response that the application was given, or can reach through Err; 0: none
	Err    error
	// Attempts is the client's own count, where it tells one.
	Attempts int
	// Decoding: the reply came whole and could not be understood.
	Decoding bool
	// NotSent: the client says that nothing was sent.
	NotSent bool
}
