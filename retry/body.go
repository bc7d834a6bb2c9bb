package retry

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"time"
)

// The bounds within which a discarded response is read to its end, so that its
// connection can be used again. What is longer or slower costs more than a new
// connection, and is cut off.
const (
	drainBytes = 64 << 10
	drainTime  = 250 * time.Millisecond
)

// errNoGetBody is why a body cannot be sent twice.
var errNoGetBody = errors.New("the request has a body but no GetBody")

// A bodySource gives each attempt a request body of its own. The transport may
// still be reading an attempt's body when the next attempt begins, so that
// one reader is never used twice, rewound or not.
type bodySource struct {
	first    io.ReadCloser
	get      func() (io.ReadCloser, error)
	none     bool // there is no body
	buffered bool // first is not the request's own
	used     bool
}

// take takes over the body of req, buffering up to limit bytes of it if there
// is no other way to have it again.
func (b *bodySource) take(req *http.Request, limit int64) error {
	b.first, b.get = req.Body, req.GetBody
	// An emptyBody comes from a Client above this Transport.
	if req.Body == nil || req.Body == http.NoBody || req.Body == (emptyBody{}) {
		b.none = true
		return nil
	}
	if b.get != nil || limit == 0 {
		return nil
	}
	b.buffered = true
	// One byte more than the limit shows that the body is longer.
	head, err := io.ReadAll(io.LimitReader(req.Body, addOne(limit)))
	if err != nil {
		req.Body.Close()
		return err
	}
	if int64(len(head)) > limit {
		b.first = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(bytes.NewReader(head), req.Body), req.Body}
		return nil
	}
	if err := req.Body.Close(); err != nil {
		return err
	}
	b.get = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(head)), nil }
	b.first, _ = b.get()
	return nil
}

func addOne(n int64) int64 { return max(n, n+1) }

// next returns the body of the next attempt, and whether it is the one that
// the request came with.
func (b *bodySource) next() (body io.ReadCloser, own bool, err error) {
	if b.none {
		return b.first, true, nil
	}
	if !b.used {
		b.used = true
		return b.first, !b.buffered, nil
	}
	body, err = b.get()
	return body, false, err
}

// replayable returns nil if there can be another body.
func (b *bodySource) replayable() error {
	if b.get == nil && !b.none {
		return errNoGetBody
	}
	return nil
}

// discard reads body to its end, within bounds, and closes it. cancel ends the
// exchange that the body belongs to.
func discard(body io.ReadCloser, cancel func()) {
	timer := time.AfterFunc(drainTime, func() {
		cancel()
		body.Close() // for a reader that does not heed the context
	})
	io.CopyN(io.Discard, body, drainBytes+1)
	timer.Stop()
	body.Close()
}

// keepBody reads the body of a response into memory, within bounds, so that its
// connection is free while the response is still wanted.
func keepBody(resp *http.Response) {
	rest := resp.Body
	head, err := io.ReadAll(io.LimitReader(rest, drainBytes+1))
	if err == nil && len(head) <= drainBytes {
		rest.Close()
		resp.Body = io.NopCloser(bytes.NewReader(head))
		return
	}
	// What is longer, or has broken off, is left to the reader.
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), rest), rest}
}

// handOver makes the response's body end the call when it has been read or
// closed. Until then the call's contexts stay alive: the body is read with
// them.
func (t *try) handOver(resp *http.Response) {
	if resp.Body == nil || resp.Body == http.NoBody {
		t.release()
		return
	}
	t.body = wholeBody{lastBody{resp.Body, t}}
	switch body := resp.Body.(type) {
	case io.Writer:
		// 101 Switching Protocols: the body is the connection.
		resp.Body = struct {
			*lastBody
			io.Writer
		}{&t.body.lastBody, body}
	case io.WriterTo:
		resp.Body = &t.body
	default:
		resp.Body = &t.body.lastBody
	}
}

type lastBody struct {
	io.ReadCloser
	try *try
}

func (b *lastBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil {
		b.try.release()
	}
	return n, err
}

func (b *lastBody) Close() error {
	err := b.ReadCloser.Close()
	b.try.release()
	return err
}

// A wholeBody is a lastBody that can be written at once, as one in memory can.
type wholeBody struct{ lastBody }

func (b *wholeBody) WriteTo(w io.Writer) (int64, error) {
	n, err := b.ReadCloser.(io.WriterTo).WriteTo(w)
	if err == nil { // else there may be more to read
		b.try.release()
	}
	return n, err
}
