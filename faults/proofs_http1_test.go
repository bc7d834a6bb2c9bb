package faults_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/faults"
)

// What a client sends piece by piece.
const (
	rawHead     = "POST /charges/c1 HTTP/1.1\r\nHost: server\r\nContent-Length: 2\r\n\r\n"
	askingHead  = "POST /charges/c1 HTTP/1.1\r\nHost: server\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
	continueNow = "HTTP/1.1 100 Continue\r\n\r\n"
	earlyHints  = "HTTP/1.1 103 Early Hints\r\n\r\n"
)

const reading = 50 * time.Millisecond // what the two bytes of rawRequest take at 40 bytes a second

// http1Proofs are those of the faults on an accepted connection of HTTP/1.1.
func http1Proofs() []proof {
	first, good := []faults.Phase{before}, []faults.Phase{after}
	closing := []string{"Connection: close"}
	said := func(text string) string { return `{"error":"` + text + `"}` }
	var ps []proof
	add := func(p proof) { ps = append(ps, p) }

	// The request's side.
	add(proof{text: "slow_read rate=40", phases: first, line: okay, length: whole, body: goodBody, end: keep, pause: reading})
	for end, sign := range map[string]string{"hang": silence, "fin": byFIN, "rst": byRST} {
		add(proof{text: "partial_request end=" + end, phases: first, send: []string{rawHead + "{"}, end: sign})
	}
	tooLarge := said("Request Entity Too Large")
	add(proof{text: "early_response end=normal", phases: first, send: []string{rawHead, "{}"}, line: "HTTP/1.1 413 Request Entity Too Large",
		length: len(tooLarge), body: tooLarge, end: keep})
	add(proof{text: "early_response code=503 end=fin", phases: first, send: []string{rawHead}, line: "HTTP/1.1 503 Service Unavailable",
		length: 31, body: said("Service Unavailable"), end: byFIN, fields: closing})
	add(proof{text: "expect_continue_ignored", phases: first, send: []string{askingHead, "{}"}, line: okay, length: whole, body: goodBody,
		end: byFIN, fields: closing, pause: quiet})
	add(proof{text: "expect_continue_417", phases: first, send: []string{askingHead}, line: "HTTP/1.1 417 Expectation Failed",
		length: 30, body: said("Expectation Failed"), end: byFIN, fields: closing})
	add(proof{text: "expect_continue_error code=500", phases: every, send: []string{askingHead, "{}"}, prefix: continueNow,
		line: "HTTP/1.1 500 Internal Server Error", length: 33, body: said("Internal Server Error"), end: keep, closes: true})

	// The answer's head.
	for variant, raw := range map[string]string{"banner": "SSH-2.0-OpenSSH_9.9\r\n", "html": "<html><body>404 page not found</body></html>\r\n",
		"binary": "\x15\x03\x03\x00\x02\x02\x46"} {
		add(proof{text: "garbage_response variant=" + variant, phases: every, raw: raw, end: byFIN})
	}
	for variant, line := range map[string]string{"no_code": "HTTP/1.1", "word_code": "HTTP/1.1 OK 200", "long_code": "HTTP/1.1 2000 OK",
		"protocol": "HTPP/1.1 200 OK"} {
		add(proof{text: "bad_status_line variant=" + variant, phases: every, line: line, length: whole, body: goodBody, end: byFIN, untold: true})
	}
	// The fields are sorted: Content-Length, Content-Type, Date.
	partOfHead := okay + "\r\n" + fmt.Sprintf("Content-Length: %d\r\nContent-Type: appli", whole)
	for end, sign := range map[string]string{"hang": silence, "fin": byFIN, "rst": byRST} {
		after := len(partOfHead) - len(okay) - 2
		add(proof{text: fmt.Sprintf("truncated_head after=%d end=%s", after, end), phases: every, raw: partOfHead, end: sign})
	}
	pad := func(n, length int) string {
		name := fmt.Sprintf("X-Padding-%d: ", n)
		return name + strings.Repeat("x", length-len(name)-2)
	}
	add(proof{text: "header_too_large size=2KiB variant=line", phases: every, line: okay, length: whole, body: goodBody, end: byFIN,
		fields: []string{pad(0, 2048)}})
	add(proof{text: "header_too_large size=2KiB variant=lines", phases: every, line: okay, length: whole, body: goodBody, end: byFIN,
		fields: []string{pad(0, 1024), pad(1, 1024)}})
	add(proof{text: "two_content_lengths", phases: every, line: okay, length: whole, body: goodBody, end: byFIN,
		fields: []string{fmt.Sprintf("Content-Length: %d", whole/2)}})
	add(proof{text: "interim count=2 end=normal", phases: good, prefix: earlyHints + earlyHints, line: okay, length: whole, body: goodBody, end: keep})
	add(proof{text: "interim then=503 end=normal", phases: []faults.Phase{before, late}, prefix: earlyHints, line: "HTTP/1.1 503 Service Unavailable",
		length: 31, body: said("Service Unavailable"), end: keep, closes: true})
	for end, sign := range map[string]string{"hang": silence, "fin": byFIN, "rst": byRST} {
		add(proof{text: "interim code=102 end=" + end, phases: every, raw: "HTTP/1.1 102 Processing\r\n\r\n", end: sign})
	}

	// The answer's body.
	inChunks := []string{"Transfer-Encoding: chunked"}
	stream := func(text, body, sign string) {
		add(proof{text: text, phases: every, line: okay, unfixed: true, fields: inChunks, body: body, end: sign})
	}
	stream("broken_stream after=12 end=fin", "8\r\n"+goodBody[:8]+"\r\n8\r\n"+goodBody[8:12], byFIN)
	stream("broken_stream after=10 chunk=10 end=rst", "a\r\n"+goodBody[:10]+"\r\n", byRST)
	stream("broken_stream after=3 end=hang", "8\r\n"+goodBody[:3], silence)
	all := fmt.Sprintf("14\r\n%s\r\n%x\r\n%s\r\n", goodBody[:20], whole-20, goodBody[20:])
	stream("missing_final_chunk chunk=20 end=fin", all, byFIN)
	stream("missing_final_chunk chunk=20 end=rst", all, byRST)
	stream("missing_final_chunk chunk=20 end=hang", all, silence)
	one, rest := "8\r\n"+goodBody[:8]+"\r\n", goodBody[8:]
	stream("malformed_chunk variant=size", one+"zz\r\n"+rest+"\r\n", byFIN)
	stream("malformed_chunk variant=length", one+fmt.Sprintf("%x\r\n", len(rest)-1)+rest+"\r\n", byFIN)
	stream("malformed_chunk variant=huge", one+"fffffffffffffffff\r\n"+rest+"\r\n", byFIN)
	add(proof{text: "content_length_short by=3", phases: every, line: okay, length: whole - 3, body: goodBody, end: byFIN})
	for end, sign := range map[string]string{"hang": silence, "fin": byFIN, "rst": byRST} {
		add(proof{text: "content_length_long end=" + end, phases: every, line: okay, length: whole + 10, body: goodBody, end: sign})
	}
	add(proof{text: "dribble delay=1ms", phases: good, line: okay, length: whole, body: goodBody, end: keep})
	padded := goodBody + strings.Repeat(" ", 100-whole)
	add(proof{text: "bandwidth rate=1KiB size=100", phases: good, line: okay, length: len(padded), body: padded, end: keep})
	add(proof{text: "slow_close end=hang", phases: every, line: okay, unfixed: true, fields: closing, body: goodBody, end: silence})
	add(proof{text: "slow_close delay=60ms end=fin", phases: good, line: okay, unfixed: true, fields: closing, body: goodBody, end: byFIN, pause: wireDelay})
	ps = append(ps, gzipProofs()...)

	// The status.
	add(proof{text: "rate_limit quota=1 window=3s", phases: first, line: "HTTP/1.1 429 Too Many Requests", fields: []string{"Retry-After: 2"},
		length: 29, body: said("Too Many Requests"), end: keep})
	add(proof{text: "redirect code=307 to=same", phases: first, line: "HTTP/1.1 307 Temporary Redirect",
		fields: []string{"Location: /charges/c1"}, length: 30, body: said("Temporary Redirect"), end: keep})
	add(proof{text: "redirect code=308 to=other", phases: first, line: "HTTP/1.1 308 Permanent Redirect",
		fields: []string{"Location: /charges/c1/moved"}, length: 30, body: said("Permanent Redirect"), end: keep})
	return ps
}

// gzipProofs has each phase by itself: what is compressed holds the number of the effect.
func gzipProofs() []proof {
	var ps []proof
	for _, phase := range every {
		number := "0"
		if phase == after {
			number = "1"
		}
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write([]byte(strings.ReplaceAll(goodBody, "#", number)))
		w.Close()
		for text, damage := range map[string]func([]byte) []byte{
			"gzip_truncated":                  func(b []byte) []byte { return b[:len(b)/2] },
			"gzip_corrupted variant=checksum": func(b []byte) []byte { b[len(b)-8] ^= 0xff; return b },
			"gzip_corrupted variant=header":   func(b []byte) []byte { b[0] ^= 0xff; return b },
		} {
			body := string(damage(bytes.Clone(b.Bytes())))
			ps = append(ps, proof{text: text, phases: []faults.Phase{phase}, line: okay, fields: []string{"Content-Encoding: gzip"},
				length: len(body), body: body, end: keep, closes: true})
		}
	}
	return slices.Clip(ps)
}
