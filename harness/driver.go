package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/driver"
	"github.com/retrychaos/retrychaos/harness/history"
)

// Driver adapts a client of another language by a driver: a command that reads calls as JSON lines on its standard
// input and writes what came of them on its standard output (docs/drivers.md). Nothing is started before the first
// run, or Meet. One process serves all runs; each instance is a client object of its own in it. Close ends it.
//
// With name "" the client is called what the driver says. Driver returns an error if the command is empty or
// names a program that is not there.
func Driver(name string, command ...string) (Client, error) {
	if len(command) == 0 {
		return Client{}, errors.New("the command is empty")
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return Client{}, fmt.Errorf("driver %q: %w", strings.Join(command, " "), err)
	}
	return driven(name, driver.New(cmp.Or(name, filepath.Base(command[0])), name, "", command...)), nil
}

// DriverOf adapts the client of a driver's manifest. A client that is not installed is Missing, which Meet finds
// out.
func DriverOf(m driver.Manifest) Client {
	c := driven(m.Name, m.Driver())
	c.installed = sync.OnceValue(m.Installed)
	return c
}

func driven(name string, d *driver.Driver) Client {
	return Client{Name: name, Declared: history.Declared{Remote: true}, driver: d, New: func(env Env) (Caller, error) {
		var ca cacert
		if env.CA != nil {
			var err error
			if ca, err = writeCA(env.CA); err != nil {
				return nil, err
			}
		}
		inst, err := d.Open(string(ca), func(err error) { env.Finding(history.FindingHarness, err.Error()) })
		if err != nil {
			return nil, errors.Join(err, ca.Close())
		}
		return &remote{inst, ca}, nil
	}}
}

// Outside reports whether the client runs in another process, so that it cannot enter the virtual world.
func (c Client) Outside() bool { return c.driver != nil || c.Declared.Outside() }

// Meet returns the client with what it says of itself: for a driver, it is started if need be and its name, its
// version and its policy are filled in. For any other client there is nothing to do. The error is a fault of the
// driver.
func (c Client) Meet() (Client, error) {
	if c.driver == nil || c.Missing != "" {
		return c, nil
	}
	if c.installed != nil {
		if c.Missing = c.installed(); c.Missing != "" {
			return c, nil
		}
	}
	h, err := c.driver.Hello()
	if err != nil {
		return c, err
	}
	if c.Name == "" {
		c.Name = h.Client
	}
	c.Version, c.Policy, c.Declared = h.Version, h.Policy, h.Declared.History()
	c.trusts, c.cancels = h.TLS, h.Cancels
	return c, nil
}

// Close ends the process of a driver. The error is a fault of it that no run was told of; for any other client it
// is nil.
func (c Client) Close() error {
	if c.driver == nil {
		return nil
	}
	return c.driver.Close()
}

// Fault writes a fault of the harness, such as the error of Client.Close, into a result: nothing that was found in
// the run counts against the client any more.
func (r *Result) Fault(err error, level check.Level) {
	f := history.Finding{Kind: history.FindingHarness, Text: err.Error()}
	r.Findings = append(r.Findings, f)
	if h := r.History; h != nil {
		h.Findings = append(h.Findings[:len(h.Findings):len(h.Findings)], f)
		for i := range r.Verdicts {
			r.Verdicts[i] = check.Excuse(h, r.Verdicts[i])
		}
	}
	r.judge(level)
}

// remote is one instance of a client behind a driver.
type remote struct {
	instance *driver.Instance
	ca       cacert
}

// Close gives the client object back.
func (r *remote) Close() error { return errors.Join(r.instance.Close(), r.ca.Close()) }

// Call has the driver perform the call.
func (r *remote) Call(ctx context.Context, call Call) Outcome {
	req := driver.Request{Call: call.ID, Method: call.Method, URL: call.URL, Headers: map[string]string{},
		Key: call.Key, KeyHonoured: call.KeyHonoured, Idempotent: call.Idempotent}
	for k, v := range call.Header {
		req.Headers[k] = strings.Join(v, ", ")
	}
	switch {
	case call.Body == nil:
	case utf8.Valid(call.Body):
		text := string(call.Body)
		req.Body = &text
	default:
		req.BodyBase64 = call.Body
	}
	if end, ok := ctx.Deadline(); ok {
		req.DeadlineMS = max(1, time.Until(end).Milliseconds())
	}
	o, err := r.instance.Call(ctx, req)
	if err != nil {
		return Outcome{Err: err}
	}
	return received(call, o)
}

// received is what an application sees of a driver's outcome. A reply that the driver hands over is decoded here, by
// the rules of Receive.
func received(call Call, o driver.Outcome) Outcome {
	out := Outcome{OK: o.OK, Status: o.Status, Attempts: o.Attempts, Decoding: o.Decoding, NotSent: o.NotSent}
	switch {
	case o.OK && o.Status >= http.StatusMultipleChoices:
		out.OK = false
	case o.OK && o.Body != nil && call.Method != http.MethodHead:
		if err := DecodeReply(call, []byte(*o.Body)); err != nil {
			return Outcome{Err: err, Decoding: true, Attempts: o.Attempts}
		}
	}
	if o.Error != "" {
		out.Err = &remoteError{o.Error, o.Kind}
	}
	return out
}

// remoteError is an error of another language.
type remoteError struct{ text, kind string }

func (e *remoteError) Error() string { return e.text }
