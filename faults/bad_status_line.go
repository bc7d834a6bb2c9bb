package faults

import (
	"bytes"
	"net/http"
	"time"
)

// statusLines are first lines that are no status line (RFC 9112 §4), by variant.
func statusLines() map[string]string {
	return map[string]string{
		"no_code":   "HTTP/1.1",
		"word_code": "HTTP/1.1 OK 200",
		"long_code": "HTTP/1.1 2000 OK",
		"protocol":  "HTPP/1.1 200 OK",
	}
}

func badStatusLine() Entry {
	return Entry{
		Name:      "bad_status_line",
		Doc:       "a whole answer whose first line is no status line (RFC 9112 §4), then the connection is closed (FIN)",
		Category:  InvalidResponse,
		Phases:    []Phase{AfterCommit, BeforeCommit, CommitLate},
		Protocols: []string{HTTP1},
		Params: []Param{variantParam("what is wrong: no_code: it ends behind the version; word_code: a word for the code; "+
			"long_code: four digits; protocol: another protocol's name", "no_code", "no_code", "word_code", "long_code", "protocol")},
		Sees:    "malformed HTTP response, status code or version (an error without a type of its own)",
		Where:   WhereDo,
		Example: "bad_status_line variant=long_code",
		deliver: func(d *delivery) error {
			r := reply(d.Reply)
			_, fields, _ := bytes.Cut(head(r, time.Now()), []byte("\r\n"))
			text := statusLines()[d.fault.Variant] + "\r\n" + string(fields)
			if d.R.Method != http.MethodHead {
				text += string(r.Body)
			}
			return d.sendBytes(text)
		},
	}
}
