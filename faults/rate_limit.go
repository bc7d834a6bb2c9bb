package faults

import (
	"net/http"
	"time"
)

func rateLimit() Entry {
	return Entry{
		Name: "rate_limit",
		Doc: "a quota of requests per window, which the calls of a route share: a good answer within it, 429 with a true " +
			"Retry-After beyond it",
		Category:  Status,
		Phases:    []Phase{BeforeCommit},
		Protocols: []string{HTTP1},
		Params: []Param{
			required(sampled(numberParam("quota", "requests per window that are answered well", 1, 1_000_000, 0,
				func(f *Fault) *int { return &f.Quota }), "1")),
			windowParam(),
		},
		Sees:    "a good answer, or status 429 with a Retry-After of the whole seconds until the next window",
		Where:   WhereNowhere,
		Example: "rate_limit quota=10 window=1s times=forever",
		run: func(d *delivery) error {
			within, wait := d.Quota()
			if within {
				d.Commit()
				return d.answer(d.Reply)
			}
			seconds := (wait + time.Second - 1) / time.Second * time.Second
			return d.answer(statusReply(Fault{Status: http.StatusTooManyRequests, RetryAfter: []RetryAfter{{Delay: seconds}}}, time.Now()))
		},
	}
}

func sampled(p Param, sample string) Param {
	p.sample = sample
	return p
}
