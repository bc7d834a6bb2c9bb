package faults

import (
	"net/http"
	"strings"
	"time"
)

// OtherPath is what a call's other path has at its end; see the redirect fault.
const OtherPath = "/moved"

func redirect() Entry {
	to := choiceParam("to", "where to", func(f *Fault) *string { return &f.To }, "same", "other")
	to.axis = true
	return Entry{
		Name: "redirect",
		Doc: "a redirect (RFC 9110 §15.4) to the path asked for, or to the call's other path, which is its own with " +
			OtherPath + " at its end, and from there back",
		Category:  Status,
		Phases:    []Phase{BeforeCommit},
		Protocols: []string{HTTP1},
		Params: []Param{
			answerCode("code", "the status: 301, 302, 303, 307 or 308", http.StatusTemporaryRedirect, 301, 302, 303, 307, 308),
			to,
			retryAfterParam(),
		},
		Sees: "what the redirect leads to: http.Client follows ten of them (307 and 308 with the same method and body), and " +
			"then says that it stopped",
		Where:   WhereNowhere,
		Example: "redirect code=308 to=other",
		deliver: func(d *delivery) error {
			r := statusReply(d.fault, time.Now())
			path := d.R.URL.EscapedPath()
			if d.fault.To == "other" {
				if base, ok := strings.CutSuffix(path, OtherPath); ok {
					path = base
				} else {
					path += OtherPath
				}
			}
			r.Header.Set("Location", path)
			return d.respond(r)
		},
	}
}
