package faults

import (
	"fmt"
	"io"
	"net/http/httputil"
	"strings"
	"time"
)

// expectsContinue reports whether the client waits for a 100 before it sends its body (RFC 9110 §10.1.1).
func (d *delivery) expectsContinue() bool {
	return d.R.ContentLength != 0 && strings.EqualFold(d.R.Header.Get("Expect"), "100-continue")
}

// takeBody takes the connection from net/http with the body unread and returns the body as it comes. From
// then on nobody sends a 100 but us. Reading ends at the world's closing; release gives the connection its
// patience back.
func (d *delivery) takeBody() (body io.Reader, release func(), err error) {
	if err := d.hijack(); err != nil {
		return nil, nil, err
	}
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-d.Closing:
			d.raw.SetReadDeadline(longAgo)
		case <-done:
		}
	}()
	release = func() { close(done); <-over }
	if d.R.ContentLength >= 0 {
		return &exactly{d.raw.r, d.R.ContentLength}, release, nil
	}
	return httputil.NewChunkedReader(d.raw.r), release, nil
}

// exactly reads n bytes; an earlier end is io.ErrUnexpectedEOF.
type exactly struct {
	r io.Reader
	n int64
}

func (e *exactly) Read(p []byte) (int, error) {
	if e.n == 0 {
		return 0, io.EOF
	}
	n, err := e.r.Read(p[:min(int64(len(p)), e.n)])
	e.n -= int64(n)
	if err == io.EOF && e.n > 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// receive reads the request's body whole.
func (d *delivery) receive(r io.Reader) error {
	if err := d.Receive(r); err != nil {
		return fmt.Errorf("%w: %w", ErrBrokenOff, err)
	}
	return nil
}

// unread notes how many bytes of the body were taken, where the rest is left.
func (d *delivery) unread(n int) { d.Unread(n) }

// stare leaves the connection open and takes nothing more from it than fits the buffer that net/http had for
// it: a client with more to say gets stuck once the windows are full. It lasts until the client goes, as far
// as that shows behind what it has sent, or the world closes.
func (d *delivery) stare() {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		for {
			n := d.raw.r.Buffered() + 1
			if n > d.raw.r.Size() {
				<-d.Closing
				return
			}
			if _, err := d.raw.r.Peek(n); err != nil {
				return
			}
		}
	}()
	select {
	case <-gone:
	case <-d.Closing:
		d.raw.SetReadDeadline(longAgo)
		<-gone
	}
}

// paced reads at a rate, in bytes per second: after so many bytes it waits as long as they take.
type paced struct {
	d    *delivery
	r    io.Reader
	rate int
}

// ticks is into how many portions a second's bytes are divided, where there are enough.
const ticks = 20

func (p paced) Read(b []byte) (int, error) {
	n, err := p.r.Read(b[:min(len(b), max(1, p.rate/ticks))])
	if n > 0 && p.d.patience(time.Duration(n)*time.Second/time.Duration(p.rate)) == worldClosing {
		return n, io.ErrUnexpectedEOF
	}
	return n, err
}
