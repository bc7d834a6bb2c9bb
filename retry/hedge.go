package retry

import (
	"errors"
	"net/http"
	"time"
)

// errOutrun is the end of an attempt whose hedge, or whose first attempt, was
// faster.
var errOutrun = errors.New("the other of two hedged attempts was faster")

// hedges reports whether the next attempt is one that may get a hedge: the
// first, of a call that only reads.
func (c *call) hedges() bool {
	return c.policy.HedgeDelay > 0 && c.failures == nil && c.bodies.none && readingMethod(c.req.Method)
}

// readingMethod reports whether a method is defined as safe (RFC 9110 §9.2.1,
// RFC 10008, and of WebDAV RFC 4918, RFC 5323 and RFC 3253). PUT and DELETE may
// happen twice, too, but a late one would undo what another client did since.
func readingMethod(method string) bool {
	switch method {
	case "", "GET", "HEAD", "OPTIONS", "TRACE", "QUERY", "PROPFIND", "SEARCH", "REPORT":
		return true
	}
	return false
}

// A finished is what an attempt has come to.
type finished struct {
	try  *try
	resp *http.Response
	err  error
}

// sendHedged makes an attempt, and a second one when the first has no response
// after HedgeDelay. It returns the first good one; the other is recorded,
// cancelled, and its response closed. If none is good it returns the later.
func (c *call) sendHedged(out outgoing, hc *http.Client, base http.RoundTripper) (*try, *http.Response, error) {
	results := make(chan finished, 2)
	start := func() *try {
		t := c.try(base)
		r := c.request(t, out, hc)
		go func() {
			resp, err := t.do(r, hc)
			results <- finished{t, resp, err}
		}()
		return t
	}
	first := start()
	timer := time.NewTimer(c.policy.HedgeDelay)
	defer timer.Stop()
	select {
	case r := <-results:
		return r.try, r.resp, r.err
	case <-timer.C:
	}
	if !c.affordsHedge() {
		r := <-results
		return r.try, r.resp, r.err
	}
	first.before++ // the hedge is no attempt of a layer below
	second := start()
	r := <-results
	if !c.good(r) {
		c.note(r)
		if r.err == nil {
			discard(r.resp.Body, r.try.end)
		}
		r.try.end()
		r = <-results
		return r.try, r.resp, r.err
	}
	loser := second
	if r.try == second {
		loser = first
	}
	c.note(finished{try: loser, err: errOutrun})
	loser.end()
	go func() {
		if late := <-results; late.err == nil {
			late.resp.Body.Close()
		}
	}()
	return r.try, r.resp, r.err
}

// affordsHedge takes a hedge from what retries may take, if there is enough.
func (c *call) affordsHedge() bool {
	if c.ctx.Err() != nil || c.policy.MaxAttempts < 2 || c.tally.left() <= 0 {
		return false
	}
	paid, refusal := c.bucket.take(Decision{}, c.random)
	if refusal != nil || !c.tally.take(1) {
		return false
	}
	c.record().paid = paid
	return true
}

// good reports whether there is nothing to gain from the other attempt.
func (c *call) good(r finished) bool {
	if r.err != nil {
		return false
	}
	d := classifyStatus(r.resp.StatusCode, r.resp.Header)
	return d.Outcome == Final
}

// note records an attempt that decides nothing.
func (c *call) note(r finished) {
	f := c.record()
	a := Attempt{Number: len(f.attempts) + 1, Start: r.try.start, Elapsed: time.Since(r.try.start), Err: r.err, Retrying: true}
	var h http.Header
	if r.err == nil {
		a.Status, h = r.resp.StatusCode, r.resp.Header
	}
	var fromTransport bool
	a.Wire, fromTransport = c.observe(r.try)
	c.spent++
	if r.err == errOutrun {
		a.Decision = Decision{Category: CategoryCanceled, Outcome: Final, Reason: errOutrun.Error()}
	} else {
		a.Decision = c.decide(a, h, fromTransport || a.Status != 0)
		f.last = r.err
		if r.err == nil {
			f.last = &StatusError{StatusCode: a.Status, Header: h}
		}
	}
	f.attempts = append(f.attempts, a)
	if c.hook != nil {
		c.hook(c.ctx, a)
	}
}
