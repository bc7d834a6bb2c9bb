package faults

import (
	"bytes"
	"fmt"
	"strings"
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
	b = b[:len(b)-2] // without the end of the head
	b = append(b, padding(d.fault.Size, d.fault.Variant == "lines")...)
	b = append(b, "\r\n"...)
	if d.R.Method != "HEAD" {
		b = append(b, r.Body...)
	}
	if err := d.hijack(); err != nil {
		return err
	}
	d.answered(r.Status, r.Header["Retry-After"], now)
	for len(b) > 0 {
		n := min(len(b), portion)
		if err := d.write(b[:n]); err != nil {
			if closed(d.Closing) {
				return err
			}
			d.delivered() // the client has had enough, which is what the fault is about
			return nil
		}
		b = b[n:]
	}
	return d.finish(EndFIN)
}

// padding is field lines of size bytes together.
func padding(size int, many bool) []byte {
	line := func(n, length int) string {
		name := fmt.Sprintf("X-Padding-%d: ", n)
		return name + strings.Repeat("x", max(0, length-len(name)-2)) + "\r\n"
	}
	if !many {
		return []byte(line(0, size))
	}
	var b bytes.Buffer
	for n := 0; b.Len() < size; n++ {
		b.WriteString(line(n, min(padLine, size-b.Len())))
	}
	return b.Bytes()
}
