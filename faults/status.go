package faults

import (
	"fmt"
	"net/http"
	"strconv"
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
		Protocols: []string{HTTP1, HTTP2},
		Params: []Param{
			codeParam(), retryAfterParam(), headerParam(),
			bodyParam("a small JSON error object"), storedParam(),
			closingParam(),
		},
		Sees:    "the status, its headers and its body; no error; with end=fin also Connection: close, and then the connection is closed",
		Where:   WhereNowhere,
		Example: `429 retry-after=2s header="X-Quota: 0" body="slow down"`,
		check: func(f Fault) (about, msg string) {
			switch {
			case f.Status >= 400 && f.Status < 500 && f.Phase != BeforeCommit:
				return "phase", fmt.Sprintf("%d at %s: a server that commits must not say that it refused", f.Status, f.Phase)
			case f.Stored && f.Phase == CommitLate:
				return "stored", "stored=true at commit_late: what is still at work has no outcome to store"
			case f.HasBody && f.Body != "" && !bodyAllowed(f.Status):
				return "body", fmt.Sprintf("an answer with status %d has no body (RFC 9110 §6.4.1)", f.Status)
			}
			return "", ""
		},
		byHTTP: answeredByHTTP,
		deliver: func(d *delivery) error {
			r := statusReply(d.fault, time.Now())
			if d.fault.Stored && !d.Store(r) {
				return d.respond(d.Reply)
			}
			return d.respond(r)
		},
	}
}

// closingParam is status's end=. The normal end is no End at all, so that a status made by hand needs none.
func closingParam() Param {
	p := endParam(func(Fault) End { return "" }, string(EndNormal), EndNormal, EndFIN)
	set := p.set
	p.set = func(f *Fault, v value) error {
		err := set(f, v)
		if f.End == EndNormal {
			f.End = ""
		}
		return err
	}
	return p
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
		r.Body = append(strconv.AppendQuote([]byte(`{"error":`), text), '}') // plain words, which JSON writes as Go does
	} else if r.Header["Content-Type"] == nil && !strings.HasPrefix(f.Body, "{") && !strings.HasPrefix(f.Body, "[") {
		r.Header.Set("Content-Type", "text/plain; charset=utf-8")
	}
	return r
}

// storedParam tells the application's own answer from one that a proxy gives in its place. Only the first is
// the outcome of the request, which a server that honours keys replays to a repeat.
func storedParam() Param {
	return Param{Name: "stored", Kind: KindWord, Values: []string{"true"}, Default: "a proxy's answer, of which the store knows nothing",
		Doc: "the application itself answers so: a server that honours keys stores the answer and replays it to every repeat",
		set: func(f *Fault, v value) error {
			_, err := word("value of stored", v, "true")
			f.Stored = err == nil
			return err
		},
		get: func(f Fault) []string {
			if !f.Stored {
				return nil
			}
			return []string{"true"}
		},
	}
}
