package faults

import (
	"io"
	"net/http"
	"time"
)

func earlyResponse() Entry {
	return Entry{
		Name: "early_response",
		Doc: "a whole answer goes out while the request's body is unread; then the rest is read and the connection kept " +
			"(normal), or the connection is closed (FIN)",
		Category:   Status,
		Phases:     []Phase{BeforeCommit},
		Protocols:  []string{HTTP1},
		BeforeBody: true,
		Params: []Param{
			answerCode("code", "the status, from 300 to 599", http.StatusRequestEntityTooLarge),
			retryAfterParam(),
			endParam(func(Fault) End { return EndNormal }, string(EndNormal), EndNormal, EndFIN),
		},
		Sees: "the status while it is still sending; with fin and a large body it may be the error of its write instead " +
			"(EPIPE, ECONNRESET)",
		Where:   WhereNowhere,
		Example: "early_response code=503 end=fin",
		run:     runEarlyResponse,
	}
}

func runEarlyResponse(d *delivery) error {
	if d.R.ContentLength == 0 {
		return ErrNotApplicable // there is no body to be early for
	}
	r := statusReply(d.fault, time.Now())
	d.unread(0)
	if d.fault.End == EndFIN || d.expectsContinue() {
		// Who has not been asked for its body by a 100 does not send it, so that nobody could tell where
		// the next request begins.
		return d.refuse(r)
	}
	if err := http.NewResponseController(d.W).EnableFullDuplex(); err != nil {
		return err // net/http would read the body before it answers
	}
	if err := d.answer(r); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, d.R.Body) // a client that stops sending has its answer all the same
	return nil
}

// refuse answers on a connection of which the request's body is unread, and closes it.
func (d *delivery) refuse(r Reply) error {
	r = reply(r)
	r.Header.Set("Connection", "close")
	if err := d.sendRaw(r, len(r.Body)); err != nil {
		return err
	}
	return d.finish(EndFIN)
}
