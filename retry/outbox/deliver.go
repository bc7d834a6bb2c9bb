package outbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"go.etcd.io/bbolt"

	"github.com/retrychaos/retrychaos/retry"
)

// A job is an attempt that has begun.
type job struct {
	id       ID
	call     Call
	state    state
	previous time.Duration // the wait before it
	first    bool          // no server can have acted on the call before
}

// What an attempt that nobody saw the end of leaves as its error.
const (
	errProcessEnded = "the process ended during the attempt"
	errCutOff       = "the attempt was cut off by the end of Run"
)

// attempt makes one attempt for a call and sees to what follows from it. Its
// error is one of writing the file.
func (o *Outbox) attempt(ctx context.Context, it *item) error {
	if ctx.Err() != nil {
		o.again(it, it.due)
		return nil
	}
	j, err := o.begin(it.id)
	if err != nil {
		o.again(it, it.due)
		return err
	}
	if j.state.Reason != "" {
		o.logDead(j)
		o.gone(it, false)
		return nil
	}
	r := o.send(ctx, j)
	now := time.Now()
	st := &j.state
	st.Begun = false
	st.Attempts += r.resent
	st.Status, st.Error, st.Answer = r.status, r.text, r.answer
	switch {
	case r.delivered:
		if err := o.store.remove(j.id, bucketWaiting); err != nil {
			o.again(it, st.Due)
			return err
		}
		o.gone(it, true)
		return nil
	case r.cutOff:
		st.Due, st.Wait = now, 0
		err := o.store.save(j.id, *st)
		o.again(it, now)
		return err
	}
	v := judge(j, &r, o.opts, now)
	if v.reason != "" {
		st.Reason, st.Died = v.reason, now
		if err := o.store.bury(j.id, *st); err != nil {
			o.again(it, st.Due)
			return err
		}
		o.logDead(j)
		o.gone(it, false)
		return nil
	}
	st.Wait, st.Due = v.wait, now.Add(v.wait)
	err = o.store.save(j.id, *st)
	o.log(j, r)
	o.again(it, st.Due)
	return err
}

// begin writes down that an attempt begins, before anything is sent: an attempt
// that nobody sees the end of counts, and its back-off is there already. A call
// that may not be tried again becomes a dead letter instead: its state has a
// Reason then.
func (o *Outbox) begin(id ID) (j *job, err error) {
	now := time.Now()
	err = o.store.db.Batch(func(tx *bbolt.Tx) error {
		c, st, damaged, err := get(tx, bucketWaiting, id)
		if err != nil {
			return err
		}
		if st.Begun {
			st.Begun, st.Status, st.Error, st.Answer = false, 0, errProcessEnded, nil
		}
		j = &job{id: id, call: c, previous: st.Wait, first: st.Sighted.IsZero()}
		n := st.Attempts - st.Base
		switch {
		case damaged:
			st.Reason, st.Error = ReasonDamaged, "the call is not what was enqueued: the file is damaged"
		case n >= o.opts.Policy.MaxAttempts:
			st.Reason = ReasonAttempts
		case now.After(st.Since.Add(o.opts.MaxAge)):
			st.Reason = ReasonAge
		case keyExpired(c, st, o.opts, now):
			st.Reason = ReasonKeyExpired
		}
		if st.Reason != "" {
			st.Died = now
			j.state = st
			return move(tx, id, st, bucketWaiting, bucketDead)
		}
		st.Attempts++
		st.Begun = true
		if j.first {
			st.Sighted = now
		}
		st.Wait = o.opts.Policy.Delay(n+1, st.Wait, 0)
		st.Due = now.Add(st.Wait)
		j.state = st
		return put(tx.Bucket(bucketWaiting), id, st)
	})
	return j, err
}

// keyExpired reports whether an attempt at the time would be one that its key no
// longer protects.
func keyExpired(c Call, st state, o Options, at time.Time) bool {
	return c.keyOnly() && !st.Sighted.IsZero() && at.After(st.Sighted.Add(o.KeyLifetime))
}

// A result is how an attempt ended.
type result struct {
	delivered bool
	cutOff    bool // by the end of Run
	status    int
	header    http.Header
	answer    []byte // the beginning of the body of an answer that is no success
	text      string // the error, for people
	decision  retry.Decision
	resent    int // requests that net/http sent besides
}

// answer is a success, read to its end.
type answer struct {
	status int
	header http.Header
	body   []byte
	cut    bool
}

func (o *Outbox) send(ctx context.Context, j *job) (r result) {
	req, err := http.NewRequestWithContext(ctx, j.call.Method, j.call.URL, bytes.NewReader(j.call.Body))
	if err != nil { // it was parsed before it was stored
		return result{text: err.Error(), decision: retry.Decision{Category: retry.CategoryUnknown, Outcome: retry.NotProcessed, Reason: "the request cannot be made"}}
	}
	req.Header = j.call.Header.Clone()
	if o.opts.Prepare != nil {
		if err := o.opts.Prepare(ctx, j.id, req); err != nil {
			return result{text: "Prepare: " + err.Error(), cutOff: ctx.Err() != nil,
				decision: retry.Decision{Category: retry.CategoryUnknown, Outcome: retry.NotProcessed, Reason: "Prepare failed"}}
		}
	}
	limit := int64(o.opts.MaxAnswer)
	if o.opts.Delivered == nil {
		limit = 0
	}
	// The answer is a part of the attempt: one that breaks off is none.
	a, err := retry.Fetch(o.client, req, func(resp *http.Response) (a answer, err error) {
		a.status, a.header = resp.StatusCode, resp.Header
		if a.body, err = io.ReadAll(io.LimitReader(resp.Body, limit)); err != nil {
			return a, err
		}
		rest, err := io.Copy(io.Discard, resp.Body)
		a.cut = rest > 0
		return a, err
	})
	if err == nil {
		if o.opts.Delivered != nil {
			o.opts.Delivered(Delivery{ID: j.id, Call: j.call, Enqueued: j.state.Enqueued, Attempts: j.state.Attempts,
				Status: a.status, Header: a.header, Body: a.body, Cut: a.cut})
		}
		return result{delivered: true}
	}
	r.text = err.Error()
	if failure, ok := errors.AsType[*retry.Error](err); ok {
		if failure.Err != nil {
			r.text = failure.Err.Error()
		}
		if n := len(failure.Attempts); n > 0 {
			last := failure.Attempts[n-1]
			r.status, r.decision, r.resent = last.Status, last.Decision, last.Wire.Resent()
		}
	}
	if status, ok := errors.AsType[*retry.StatusError](err); ok {
		r.status, r.header, r.answer = status.StatusCode, status.Header, status.Body
	}
	if ctx.Err() != nil && r.status == 0 {
		r.cutOff, r.text = true, errCutOff
	}
	return r
}

// A verdict is what becomes of a call after a failed attempt: a wait, or the
// reason why it is a dead letter.
type verdict struct {
	reason Reason
	wait   time.Duration
}

// judge decides. It may refine the result's decision, and notes in the job's
// state whether a server can have acted on the call.
func judge(j *job, r *result, o Options, now time.Time) verdict {
	st := &j.state
	if r.status == http.StatusConflict && j.call.Key != "" && st.Attempts > 1 {
		// The key belongs to an attempt that is still being worked on: one of
		// ours, perhaps of a process that was killed.
		r.decision = retry.Decision{Category: retry.CategoryStatus, Outcome: retry.NotProcessed,
			Reason: "409: an earlier attempt is still in flight"}
	}
	if j.first && r.decision.Outcome == retry.NotProcessed {
		st.Sighted = time.Time{}
	}
	// Only an answer is permanent. What fails on the way, be it a certificate
	// or a name, can be mended while the call waits.
	if r.status != 0 && r.decision.Outcome == retry.Final {
		return verdict{reason: ReasonAnswer}
	}
	if r.decision.Outcome == retry.Final {
		r.decision.Reason += "; it may be mended while the call waits"
	}
	n := st.Attempts - st.Base
	if n >= o.Policy.MaxAttempts {
		return verdict{reason: ReasonAttempts}
	}
	asked, _ := retry.ParseRetryAfter(r.header, now)
	last := st.Since.Add(o.MaxAge)
	if asked > o.Policy.MaxRetryAfter || asked > last.Sub(now) {
		r.text += fmt.Sprintf(" (the server asks for a wait of %v)", asked)
		st.Error = r.text
		return verdict{reason: ReasonRetryAfter}
	}
	wait := o.Policy.Delay(n, j.previous, asked)
	switch next := now.Add(wait); {
	case next.After(last):
		return verdict{reason: ReasonAge}
	case keyExpired(j.call, *st, o, next):
		return verdict{reason: ReasonKeyExpired}
	}
	return verdict{wait: wait}
}

func (o *Outbox) log(j *job, r result) {
	o.opts.Logger.LogAttrs(context.Background(), slog.LevelInfo, "retrying",
		slog.Uint64("call", uint64(j.id)),
		slog.String("method", j.call.Method), slog.String("url", withoutSecrets(j.call.URL)),
		slog.Int("attempt", j.state.Attempts),
		slog.String("reason", r.decision.Reason),
		slog.String("category", string(r.decision.Category)),
		slog.String("outcome", string(r.decision.Outcome)),
		slog.Duration("delay", j.state.Wait))
}

func (o *Outbox) logDead(j *job) {
	o.opts.Logger.LogAttrs(context.Background(), slog.LevelWarn, "giving up",
		slog.Uint64("call", uint64(j.id)),
		slog.String("method", j.call.Method), slog.String("url", withoutSecrets(j.call.URL)),
		slog.Int("attempts", j.state.Attempts),
		slog.String("reason", string(j.state.Reason)),
		slog.Int("status", j.state.Status))
}
