package faults_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/world"
)

// TestStuckUpload: a client that goes on sending to a server that has stopped reading gets stuck, and sees
// neither an answer nor an end.
func TestStuckUpload(t *testing.T) {
	inBoth(t, func(t *testing.T, n *world.Network) {
		r, stop := newRig(t, n, parse(t, "partial_request after=1000 end=hang"))
		defer stop()
		c := r.dial()
		defer c.Close()
		const size = 64 << 20 // more than any kernel's windows hold
		if _, err := io.WriteString(c, "PUT /charges/c1 HTTP/1.1\r\nHost: server\r\nContent-Length: 67108864\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		// Stuck is who has sent what the server takes and then gets rid of nothing in three attempts. On a busy
		// machine one alone may just have come too late.
		portion := make([]byte, 64<<10)
		sent := 0
		for tries := 3; tries > 0 && sent < size; {
			c.SetWriteDeadline(time.Now().Add(quiet))
			n, err := c.Write(portion)
			switch sent += n; {
			case err != nil && !errors.Is(err, os.ErrDeadlineExceeded):
				t.Fatalf("%d bytes went out, then %v; want it to get stuck", sent, err)
			case n > 0:
				tries = 3
			case sent >= 1000:
				tries--
			}
		}
		if sent >= size {
			t.Error("all of it went out; want it to get stuck")
		}
		if got, end := r.exchange(c, "", quiet); len(got) > 0 || end != silence {
			t.Errorf("%q, then %s", got, end)
		}
		r.close() // nothing else ends it: the client's going does not show behind what it has sent
	})
}

// TestEarlyAnswerToALargeUpload: the answer is there while the body is still being sent, and the connection
// takes the next request once all of it has been.
func TestEarlyAnswerToALargeUpload(t *testing.T) {
	inBoth(t, func(t *testing.T, n *world.Network) {
		r, stop := newRig(t, n, parse(t, "early_response code=503"))
		defer stop()
		c := r.dial()
		defer c.Close()
		const size = 8 << 20
		got, end := r.exchange(c, "PUT /charges/c1 HTTP/1.1\r\nHost: server\r\nContent-Length: 8388608\r\n\r\n", patience)
		if a := dissect(t, got); a.line != "HTTP/1.1 503 Service Unavailable" || end != silence {
			t.Fatalf("%q, then %s", got, end)
		}
		if _, err := io.WriteString(c, strings.Repeat("x", size)); err != nil {
			t.Fatal(err)
		}
		next, end := r.exchange(c, rawRequest, patience)
		if a := dissect(t, next); a.line != okay || end != silence {
			t.Errorf("the next request gets %q, then %s", next, end)
		}
	})
}

// TestClientThatBreaksOff: a client that goes while a fault reads its body is no failure to deliver the fault.
func TestClientThatBreaksOff(t *testing.T) {
	for _, text := range []string{"slow_read rate=1MiB", "partial_request", "expect_continue_ignored"} {
		t.Run(text, func(t *testing.T) {
			inBoth(t, func(t *testing.T, n *world.Network) {
				r, stop := newRig(t, n, parse(t, text))
				defer stop()
				c := r.dial()
				head := strings.Replace(askingHead, "Content-Length: 2", "Content-Length: 100", 1)
				if _, err := io.WriteString(c, head+"{"); err != nil {
					t.Fatal(err)
				}
				c.Close()
				r.events()
				if !errors.Is(r.result, faults.ErrBrokenOff) || errors.Is(r.result, faults.ErrNotApplicable) {
					t.Errorf("Apply: %v", r.result)
				}
			})
		})
	}
}

// TestNothingToStrike: faults of the request's side need a body, those of Expect a client that asks. Where
// there is none the answer is a good one, and Apply says so.
func TestNothingToStrike(t *testing.T) {
	const get = "GET /charges/c1 HTTP/1.1\r\nHost: server\r\n\r\n"
	for text, request := range map[string]string{
		"partial_request": get, "early_response": get, "slow_read rate=1KiB": get, "expect_continue_ignored": rawRequest,
		"expect_continue_417": rawRequest, "expect_continue_error": rawRequest, "broken_stream": strings.Replace(get, "GET", "HEAD", 1),
		"gzip_truncated":            strings.Replace(get, "GET", "HEAD", 1),
		"partial_request after=0.3": "POST /charges/c1 HTTP/1.1\r\nHost: server\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
	} {
		t.Run(text, func(t *testing.T) {
			inBoth(t, func(t *testing.T, n *world.Network) {
				r, stop := newRig(t, n, parse(t, text))
				defer stop()
				c := r.dial()
				defer c.Close()
				got, end := r.exchange(c, request, quiet)
				if a := dissect(t, got); a.line != okay || end != silence {
					t.Errorf("%q, then %s", got, end)
				}
				log := r.events()
				if !errors.Is(r.result, faults.ErrNotApplicable) || find(t, log, "commit") < 0 {
					t.Errorf("Apply: %v, %+v", r.result, log)
				}
			})
		})
	}
}

// TestChunkedRequest: bytes of a body whose length is not known can be counted all the same.
func TestChunkedRequest(t *testing.T) {
	inBoth(t, func(t *testing.T, n *world.Network) {
		r, stop := newRig(t, n, parse(t, "partial_request after=3 end=rst"))
		defer stop()
		c := r.dial()
		defer c.Close()
		got, end := r.exchange(c, "POST /charges/c1 HTTP/1.1\r\nHost: server\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n", patience)
		if len(got) > 0 || end != byRST {
			t.Errorf("%q, then %s", got, end)
		}
	})
}

// TestNothingBehindAClosingAnswer: of two requests on the wire at once, the one behind an answer that closes
// the connection is not carried out (RFC 9112 §9.6).
func TestNothingBehindAClosingAnswer(t *testing.T) {
	inBoth(t, func(t *testing.T, n *world.Network) {
		r, stop := newRig(t, n, parse(t, "408 end=fin"))
		defer stop()
		c := r.dial()
		defer c.Close()
		got, end := r.exchange(c, rawRequest+rawRequest, patience)
		if strings.Count(string(got), "HTTP/1.1 ") != 1 || end != byFIN {
			t.Errorf("%q, then %s", got, end)
		}
		c.Close()
		if log := r.events(); find(t, log, "commit") >= 0 || r.served() != 1 {
			t.Errorf("%d requests were handled: %+v", r.served(), log)
		}
	})
}
