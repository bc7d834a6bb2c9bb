package faults

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// linger is how long a connection that we have half-closed waits for the client to close its side. Closing
// at once would do for a client that has sent nothing more; if it has, a close with unread bytes is a reset
// (RFC 1122 §4.2.2.13), which could overtake the FIN that was meant.
const linger = 500 * time.Millisecond

// longAgo as a deadline ends what is blocked on it.
var longAgo = time.Unix(1, 0)

// rawConn is a connection taken from net/http.
type rawConn struct {
	net.Conn
	r *bufio.Reader // holds what net/http had read already
}

// hijack takes the connection from net/http.
func (d *delivery) hijack() error {
	if d.raw != nil {
		return nil
	}
	c, rw, err := http.NewResponseController(d.W).Hijack()
	if err != nil {
		return fmt.Errorf("taking the connection: %w", err)
	}
	d.raw = &rawConn{Conn: c, r: rw.Reader}
	return rw.Writer.Flush()
}

// sendRaw writes the head of r and the first n bytes of its body by hand, as net/http would write them.
func (d *delivery) sendRaw(r Reply, n int) error {
	if err := d.hijack(); err != nil {
		return err
	}
	now := time.Now()
	b := head(r, now)
	if d.R.Method != http.MethodHead {
		b = append(b, r.Body[:n]...)
	}
	if err := d.write(b); err != nil {
		return err
	}
	d.answered(r.Status, r.Header["Retry-After"], now)
	return nil
}

// head is the status line and the header section of r, sent at now.
func head(r Reply, now time.Time) []byte {
	if r.Header["Date"] == nil {
		r.Header.Set("Date", now.UTC().Format(http.TimeFormat))
	}
	text := http.StatusText(r.Status)
	if text == "" {
		text = fmt.Sprintf("status code %d", r.Status)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "HTTP/1.1 %03d %s\r\n", r.Status, text)
	_ = r.Header.Write(&b) // a buffer takes everything
	b.WriteString("\r\n")
	return b.Bytes()
}

// write writes, but not past the world's closing.
func (d *delivery) write(b []byte) error {
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		select {
		case <-d.Closing:
			d.raw.SetWriteDeadline(longAgo)
		case <-done:
		}
	}()
	_, err := d.raw.Write(b)
	close(done)
	<-over
	return err
}

// why a silence ended.
type why int

const (
	timeUp why = iota
	clientGone
	worldClosing
)

// silence says nothing on a connection taken from net/http, until the client goes, the world closes or limit
// is over (0: no limit). What the client sends meanwhile is thrown away: reading is how its going shows.
func (d *delivery) silence(limit time.Duration) why {
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		buf := make([]byte, 512)
		for {
			if _, err := d.raw.r.Read(buf); err != nil {
				return
			}
		}
	}()
	var timeout <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		timeout = timer.C
	}
	end := timeUp
	select {
	case <-gone:
		return clientGone
	case <-d.Closing:
		end = worldClosing
	case <-timeout:
	}
	d.raw.SetReadDeadline(longAgo)
	<-gone
	d.raw.SetReadDeadline(time.Time{})
	return end
}

// patience waits while the connection is net/http's, whose context for the request ends when the client
// goes.
// A limit of 0 is none.
func (d *delivery) patience(limit time.Duration) why {
	var timeout <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case <-timeout:
		return timeUp
	case <-d.R.Context().Done():
		return clientGone
	case <-d.Closing:
		return worldClosing
	}
}

// drop ends an exchange that nobody waits for any more, so that net/http does not answer it with a 200 of
// its own when the handler returns.
func (d *delivery) drop() {
	if d.Stream == nil && d.hijack() == nil {
		d.raw.Close()
	}
}

// finish ends a connection taken from net/http in the way that end says, and reports the delivery.
func (d *delivery) finish(end End) error {
	switch end {
	case EndRST:
		if err := d.raw.reset(); err != nil {
			return err
		}
		d.delivered()
	case EndHang:
		d.delivered()
		d.silence(0)
	case EndFIN:
		half, ok := d.raw.Conn.(interface{ CloseWrite() error })
		if !ok {
			err := d.raw.Close()
			d.delivered()
			return err
		}
		if err := half.CloseWrite(); err != nil {
			return err
		}
		d.delivered()
		d.silence(linger)
	default:
		return fmt.Errorf("a connection taken from net/http cannot end %q", end)
	}
	d.raw.Close() // the client may have closed first: there is nothing to tell
	return nil
}

// reset aborts the connection with RST: linger 0, then close. On TLS it is done to the connection below,
// since closing TLS would send an alert first.
func (c *rawConn) reset() error { return ResetConn(c.Conn) }

// ResetConn aborts conn with RST, as reset does.
func ResetConn(conn net.Conn) error {
	for {
		inner, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		conn = inner.NetConn()
	}
	l, ok := conn.(interface{ SetLinger(int) error })
	if !ok {
		return errors.New("the connection cannot be reset: it has no SetLinger")
	}
	if err := l.SetLinger(0); err != nil {
		return err
	}
	return conn.Close()
}
