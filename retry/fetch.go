package retry

import (
	"errors"
	"io"
	"net/http"
)

// statusBody is how much of a failed response's body a StatusError keeps.
const statusBody = 4 << 10

// Fetch sends req as [Client.Do] does, and makes reading and decoding the
// response a part of the attempt: a body that breaks off is a failure of the
// transport, and repeated where that is safe. An error of decode itself is
// never repeated; it comes back in a [*DecodeError].
//
// decode is called for each response with a status from 200 to 299 and need
// not close the body. It may be called more than once, so it must not leave
// traces of a try that failed. Any other status is an error in the end, with a
// [*StatusError] in it.
func Fetch[T any](c *Client, req *http.Request, decode func(*http.Response) (T, error)) (T, error) {
	var value, zero T
	consumed := false
	resp, err := c.engine.roundTrip(req, c.http, c.http.Transport, func(resp *http.Response, cancel func()) (err error) {
		value, err = read(resp, cancel, decode)
		consumed = err == nil
		return err
	})
	switch {
	case err != nil:
		return zero, err
	case consumed:
		return value, nil
	}
	return zero, statusFailure(resp)
}

// read decodes resp, and tells failures of the connection from those of the
// decoder.
func read[T any](resp *http.Response, cancel func(), decode func(*http.Response) (T, error)) (T, error) {
	body := &watchedBody{ReadCloser: resp.Body}
	resp.Body = body
	defer body.Close()
	value, err := decode(resp)
	switch {
	case err == nil:
		// What the decoder left.
		discard(body.ReadCloser, cancel)
		return value, nil
	case body.err != nil:
		return value, &readError{body.err}
	}
	return value, &DecodeError{StatusCode: resp.StatusCode, Err: err}
}

// A watchedBody remembers how reading failed. Decoders wrap the error or
// replace it, so what they return does not tell.
type watchedBody struct {
	io.ReadCloser
	err error
}

func (b *watchedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && err != io.EOF {
		b.err = err
	}
	return n, err
}

// A readError is the failure of a response's body on its way.
type readError struct{ err error }

func (e *readError) Error() string { return "reading the response: " + e.err.Error() }
func (e *readError) Unwrap() error { return e.err }

// statusFailure turns a response with a bad status into an error.
func statusFailure(resp *http.Response) error {
	excerpt, _ := io.ReadAll(io.LimitReader(resp.Body, statusBody))
	resp.Body.Close()
	status := &StatusError{StatusCode: resp.StatusCode, Header: resp.Header, Body: excerpt}
	report := Explain(resp)
	if report == nil {
		// No failure to the loop, such as 304: the caller cannot use it.
		report = &Error{Reason: "the status is no success"}
		if t, _ := resp.Request.Context().Value(watchKey{}).(*try); t != nil {
			report.Attempts = t.call.record().attempts
		}
	}
	report.Err = status
	if stop, ok := errors.AsType[*BodyError](report.Stop); ok {
		stop.Err = status
	}
	return report
}
