package faults

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/net/http2"
)

// A Stream is an HTTP/2 stream (RFC 9113) as a fault sees it, with the connection that it is on. Its methods
// write frames at once and check nothing that the standard asks of a server.
type Stream interface {
	// ID is the stream's identifier.
	ID() uint32
	// Acknowledge acknowledges the client's SETTINGS, where it is still to be done.
	Acknowledge()
	// WithholdAck never acknowledges them; false where it is done already.
	WithholdAck() bool
	// AwaitStall waits until the window that the stream's body has is used up; false where it never is.
	AwaitStall() bool
	// WriteHead sends HEADERS, WriteData sends DATA within the client's windows; end sets END_STREAM.
	WriteHead(status int, h http.Header, end bool) error
	WriteData(b []byte, end bool) error
	// Reset sends RST_STREAM with an error code of RFC 9113 §7.
	Reset(code uint32) error
	// GoAway sends GOAWAY as RFC 9113 §6.8 allows it: a number above that of an earlier one is lowered to it,
	// and where a last below this stream would deny others that are at work or done, the error is
	// ErrNotApplicable. RaiseGoAway sends two, the second higher, whatever is told.
	GoAway(last, code uint32) error
	RaiseGoAway(last, higher, code uint32) error
	// RoundTrip returns when everything sent so far has arrived: a PING and its acknowledgement.
	RoundTrip() error
	// CloseConn closes the connection by EndFIN or EndRST.
	CloseConn(end End) error
	// ConnEnds reports whether the connection takes no further request.
	ConnEnds() bool
}

// h2Codes are the error codes that faults send, by their names in RFC 9113 §7.
func h2Code(name string) uint32 {
	for code := http2.ErrCodeNo; code <= http2.ErrCodeHTTP11Required; code++ {
		if code.String() == name {
			return uint32(code)
		}
	}
	panic("faults: no HTTP/2 error code " + name) // the words of a parameter are fixed
}

// hopFields have no place in HTTP/2 (RFC 9113 §8.2.2).
var hopFields = []string{"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding", "Upgrade"}

// Fits reports why f cannot be done over a protocol; "" where it can.
func (f Fault) Fits(protocol string) string {
	if f.IsOK() {
		return ""
	}
	e, ok := Lookup(f.Name)
	switch {
	case !ok:
		return ""
	case !slices.Contains(e.Protocols, protocol):
		return fmt.Sprintf("%s is done over %s, and this server speaks %s", f.Name, e.Protocols[0], protocol)
	case protocol != HTTP2:
		return ""
	}
	for _, name := range hopFields {
		if f.Header[name] != nil {
			return fmt.Sprintf("the field %s does not exist in HTTP/2 (RFC 9113 §8.2.2)", name)
		}
	}
	return ""
}

// answerStream is answer over HTTP/2.
func (d *delivery) answerStream(r Reply) error {
	r = reply(r)
	now, err := d.headStream(r, false)
	if err != nil {
		return err
	}
	if d.hasBody(r) {
		if err := d.Stream.WriteData(r.Body, true); err != nil {
			return err
		}
	}
	d.answered(r.Status, r.Header["Retry-After"], now)
	d.delivered()
	return nil
}

// hasBody reports whether r's body goes on the wire.
func (d *delivery) hasBody(r Reply) bool { return len(r.Body) > 0 && d.R.Method != http.MethodHead }

// headStream sends the head of r. It ends the stream where r has no body, unless open.
func (d *delivery) headStream(r Reply, open bool) (now time.Time, err error) {
	now = time.Now()
	if r.Header["Date"] == nil {
		r.Header.Set("Date", now.UTC().Format(http.TimeFormat))
	}
	return now, d.Stream.WriteHead(r.Status, r.Header, !open && !d.hasBody(r))
}

// startStream sends the head of the good answer, and half of its body where at is AtBody, and nothing for
// AtStart. The stream stays open.
func (d *delivery) startStream(at string) error {
	if at == AtStart {
		return nil
	}
	r, n, err := d.part()
	if err != nil {
		return err
	}
	now, err := d.headStream(r, true)
	if err != nil {
		return err
	}
	d.answered(r.Status, r.Header["Retry-After"], now)
	if at == AtBody {
		return d.Stream.WriteData(r.Body[:n], false)
	}
	return nil
}

var errNoStream = errors.New("the attempt came over HTTP/1.1")

// needStream fails an HTTP/2 fault on an attempt that is none.
func (d *delivery) needStream() error {
	if d.Stream == nil {
		return errNoStream
	}
	return nil
}

// Where in the response a fault of HTTP/2 strikes: the values of at=.
const (
	AtStart   = "start"   // before a frame of it
	AtHeaders = "headers" // behind its HEADERS
	AtBody    = "body"    // behind its HEADERS and a half of its body
	AtAnswer  = "answer"  // behind its end
)

func atParam(def string, values ...string) Param {
	return wordParam("at", "when: before the response (start), behind its HEADERS, in the middle of its body, or behind the whole answer",
		def, func(f *Fault) *string { return &f.At }, values...)
}

func codeWordParam(def string, values ...string) Param {
	return wordParam("code", "the error code (RFC 9113 §7)", def, func(f *Fault) *string { return &f.Code }, values...)
}

// wordParam is a parameter with one of several words, kept in the field that at points to.
func wordParam(name, doc, def string, at func(f *Fault) *string, values ...string) Param {
	return Param{Name: name, Kind: KindWord, axis: true, Values: values, Default: def, Doc: doc,
		set: func(f *Fault, v value) (err error) {
			*at(f), err = word(name, v, values...)
			return err
		},
		get: func(f Fault) []string {
			if *at(&f) == def {
				return nil
			}
			return one(*at(&f))
		},
		fill: func(f *Fault) {
			if p := at(f); *p == "" {
				*p = def
			}
		},
	}
}
