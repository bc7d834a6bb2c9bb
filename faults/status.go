package faults

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"
)

const statusName = "status"

func status() Entry {
	return Entry{
		Name:      statusName,
		Doc:       "a whole answer whose status says no, with any Retry-After and further headers",
		Category:  Status,
		Phases:    []Phase{BeforeCommit, AfterCommit, CommitLate},
		Protocols: []string{http11},
		Params: []Param{
			codeParam(), retryAfterParam(), headerParam(),
			bodyParam("a small JSON error object"),
		},
		Sees:    "the status, its headers and its body; no error",
		Where:   WhereNowhere,
		Example: `429 retry-after=2s header="X-Quota: 0" body="slow down"`,
		check: func(f Fault) (about, msg string) {
			switch {
			case f.Status >= 400 && f.Status < 500 && f.Phase != BeforeCommit:
				return "phase", fmt.Sprintf("%d at %s: a server that commits must not say that it refused", f.Status, f.Phase)
			case f.HasBody && f.Body != "" && !bodyAllowed(f.Status):
				return "body", fmt.Sprintf("an answer with status %d has no body (RFC 9110 §6.4.1)", f.Status)
			}
			return "", ""
		},
		byHTTP:  answeredByHTTP,
		deliver: func(d *delivery) error { return d.respond(statusReply(d.fault, time.Now())) },
	}
}

// statusReply is the answer that f asks for, sent at now.
func statusReply(f Fault, now time.Time) Reply {
	r := Reply{Status: f.Status, Header: f.Header.Clone(), Body: []byte(f.Body)}
	if r.Header == nil {
		r.Header = http.Header{}
	}
	for _, a := range f.RetryAfter {
		r.Header["Retry-After"] = append(r.Header["Retry-After"], a.Line(now))
	}
	if !f.HasBody {
		text := http.StatusText(f.Status)
		if text == "" {
			text = fmt.Sprintf("status code %d", f.Status)
		}
		r.Body, _ = json.Marshal(map[string]string{"error": text}) // a map of strings always has a JSON form
	} else if r.Header["Content-Type"] == nil && !strings.HasPrefix(f.Body, "{") && !strings.HasPrefix(f.Body, "[") {
		r.Header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	return r
}
