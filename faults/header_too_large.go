package faults

import (
	"bufio"
	"bytes"
	"fmt"
	"time"
)

func headerTooLarge() Entry {
	const def = 11 << 20
	return Entry{
		Name:      "header_too_large",
		Doc:       "a head of more bytes than a client should take, then the body, then the connection is closed (FIN)",
		Category:  InvalidResponse,
		Phases:    []Phase{AfterCommit, BeforeCommit, CommitLate},
		Protocols: []string{HTTP1},
		Params: []Param{
			sizeParam("size", KindSize, "bytes of the field lines that are too much; the limit of http.Transport is 10MiB", maxSize, def,
				func(f *Fault) *int { return &f.Size }),
			variantParam("how they come: line: in one field line; lines: in field lines of 1 KiB", "line", "line", "lines"),
		},
		Sees:    "server response headers exceeded the limit (an error without a type of its own), and closes the connection",
		Where:   WhereDo,
		Example: "header_too_large variant=lines",
		deliver: deliverHeaderTooLarge,
	}
}

// padLine is the length of a field line of variant lines; portion is what is written at once.
const (
	padLine = 1 << 10
	portion = 64 << 10
)

func deliverHeaderTooLarge(d *delivery) error {
	r := reply(d.Reply)
	now := time.Now()
	b := head(r, now)
	if err := d.hijack(); err != nil {
		return err
	}
	d.answered(r.Status, r.Header["Retry-After"], now)
	w := bufio.NewWriterSize(wireWriter{d}, portion) // which keeps the first error
	_, _ = w.Write(b[:len(b)-2])                     // without the end of the head
	pad(w, d.fault.Size, d.fault.Variant == "lines")
	_, _ = w.WriteString("\r\n")
	if d.R.Method != "HEAD" {
		_, _ = w.Write(r.Body)
	}
	if err := w.Flush(); err != nil {
		if closed(d.Closing) {
			return err
		}
		d.delivered() // the client has had enough, which is what the fault is about
		return nil
	}
	return d.finish(EndFIN)
}

// wireWriter writes to the connection of a delivery.
type wireWriter struct{ d *delivery }

func (w wireWriter) Write(p []byte) (int, error) {
	if err := w.d.write(p); err != nil {
		return 0, err
	}
	return len(p), nil
}

// pad writes field lines of size bytes together: one, or many.
func pad(w *bufio.Writer, size int, many bool) {
	xs := bytes.Repeat([]byte("x"), padLine)
	for n := 0; size > 0; n++ {
		name := fmt.Sprintf("X-Padding-%d: ", n)
		length := size
		if many {
			length = min(padLine, size)
		}
		_, _ = w.WriteString(name)
		for rest := length - len(name) - 2; rest > 0; rest -= len(xs) {
			_, _ = w.Write(xs[:min(rest, len(xs))])
		}
		_, _ = w.WriteString("\r\n")
		size -= max(length, len(name)+2)
	}
}
