package faults

import (
	"net/http"
	"time"
)

// The three faults of a client that asks before it sends its body (RFC 9110 §10.1.1). They need a request
// with Expect: 100-continue and a body.

func expectContinueIgnored() Entry {
	return Entry{
		Name: "expect_continue_ignored",
		Doc: "the 100 that the client waits for never comes; a body that comes all the same is answered well, and the " +
			"connection is closed behind the answer (FIN)",
		Category:   None,
		Phases:     []Phase{BeforeCommit},
		Protocols:  []string{HTTP1},
		BeforeBody: true,
		Sees:       "a good answer, once its own wait for the 100 is over (http.Transport.ExpectContinueTimeout) and it sends its body",
		Where:      WhereNowhere,
		Example:    "expect_continue_ignored",
		run: func(d *delivery) error {
			if !d.expectsContinue() {
				return ErrNotApplicable
			}
			body, release, err := d.takeBody()
			if err != nil {
				return err
			}
			d.delivered() // the silence begins
			err = d.receive(body)
			release()
			if err != nil {
				return err
			}
			d.Commit()
			return d.refuse(d.Reply)
		},
	}
}

func expectContinue417() Entry {
	return Entry{
		Name:       "expect_continue_417",
		Doc:        "417 in place of the 100 that the client waits for; the connection is closed behind it (FIN)",
		Category:   Status,
		Phases:     []Phase{BeforeCommit},
		Protocols:  []string{HTTP1},
		BeforeBody: true,
		Sees:       "status 417; it has not sent its body. It should repeat the request without Expect",
		Where:      WhereNowhere,
		Example:    "expect_continue_417",
		run: func(d *delivery) error {
			if !d.expectsContinue() {
				return ErrNotApplicable
			}
			d.unread(0)
			return d.refuse(statusReply(Fault{Status: http.StatusExpectationFailed}, time.Now()))
		},
	}
}

func expectContinueError() Entry {
	return Entry{
		Name:      "expect_continue_error",
		Doc:       "the 100 that the client waits for, and once its body has come a 5xx",
		Category:  Status,
		Phases:    []Phase{BeforeCommit, AfterCommit, CommitLate},
		Protocols: []string{HTTP1},
		Params:    []Param{answerCode("code", "the status, from 500 to 599", http.StatusServiceUnavailable), retryAfterParam()},
		Sees:      "the status",
		Where:     WhereNowhere,
		Example:   "expect_continue_error code=500",
		check: func(f Fault) (about, msg string) {
			if f.Status < 500 {
				return "code", "what comes after the 100 is an error of the server: want 500 to 599"
			}
			return "", ""
		},
		deliver: func(d *delivery) error {
			if !d.expectsContinue() {
				return ErrNotApplicable // net/http sent no 100 when the body was read
			}
			return d.respond(statusReply(d.fault, time.Now()))
		},
	}
}
