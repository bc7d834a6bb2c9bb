package serve

import (
	"bytes"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/internal/nearest"
)

// An outcome is what a test tells of one call: what its client told it.
type outcome struct {
	Call      string    `json:"call"`
	OK        *bool     `json:"ok"`
	Status    *int      `json:"status"` // status that the caller can reach; 0 or null: none
	Error     string    `json:"error"`
	Traits    *[]string `json:"traits"` // what the caller can find out of the error; null: not told
	Attempts  int       `json:"attempts"`
	Took      *millis   `json:"took_ms"`
	Deadline  *millis   `json:"deadline_ms"`  // that the client had for the call; null: none
	Cancelled *millis   `json:"cancelled_ms"` // when the application cancelled, from the call's start; null: it did not
}

// A report is an outcome with the time at which it came.
type report struct {
	outcome
	at time.Duration // since the run was made
}

// traits that a caller can find out of an error.
var traits = []string{history.TraitCanceled, history.TraitDeadline, history.TraitTimeout, history.TraitReset, history.TraitRefused,
	history.TraitEOF, history.TraitUnexpectedEOF, history.TraitDecoding, history.TraitNotSent, history.TraitDNS, history.TraitTLS,
	history.TraitCertificate}

// maxError bounds what is kept of an error's text.
const maxError = 4 << 10

// report takes the outcomes in the body of a request, all or none.
func (r *run) report(w http.ResponseWriter, req *http.Request) ([]string, error) {
	body, _, err := readBody(w, req, maxOutcomeBody, "json")
	if err != nil {
		return nil, err
	}
	at := r.stage.Since()
	list, p := decodeOutcomes(body)
	if p != nil {
		return nil, p
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fresh := map[string]report{}
	for i := range list {
		o := &list[i]
		if p := r.check(o); p != nil {
			return nil, p
		}
		old, told := r.told[o.Call]
		if again, ok := fresh[o.Call]; ok {
			old, told = again, true
		}
		if told && !reflect.DeepEqual(old.outcome, *o) {
			return nil, conflict.because("call %s: its outcome was reported already, and this is another", o.Call)
		}
		if !told {
			fresh[o.Call] = report{*o, at}
		}
	}
	for id, one := range fresh {
		r.told[id] = one
	}
	return r.missing(), nil
}

// decodeOutcomes reads one outcome or a list of them.
func decodeOutcomes(body []byte) ([]outcome, *problem) {
	var list []outcome
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		p := strict(body, &list)
		if p == nil && len(list) == 0 {
			p = invalidRequest.because("the list of outcomes is empty")
		}
		return list, p
	}
	members, p := object(body)
	if p != nil {
		return nil, p
	}
	list = make([]outcome, 1)
	return list, decode(body, members, &list[0])
}

// check validates an outcome.
func (r *run) check(o *outcome) *problem {
	bad := func(format string, args ...any) *problem {
		return invalidRequest.because("outcome of %q: %s", clip(o.Call), fmt.Sprintf(format, args...))
	}
	if _, ok := r.calls[o.Call]; !ok {
		var ids []string
		for id := range r.calls {
			ids = append(ids, id)
		}
		slices.Sort(ids)
		if o.Call == "" {
			return invalidRequest.because("there is no call: it is the id of one of the run's calls, like %q", ids[0])
		}
		return bad("the run has no such call%s", nearest.Hint(o.Call, ids))
	}
	if o.OK == nil {
		return bad("there is no ok: true where the client said that the call succeeded, else false")
	}
	if s := o.Status; s != nil && *s != 0 && (*s < 100 || *s > 599) {
		return bad("status is %d: it is a status of HTTP, or null where the caller sees none", *s)
	}
	if o.Traits != nil {
		for _, t := range *o.Traits {
			if !slices.Contains(traits, t) {
				return bad("there is no trait %q%s; there are %s", clip(t), nearest.Hint(t, traits), strings.Join(traits, ", "))
			}
		}
	}
	if o.Attempts < 0 || o.Attempts > 1e6 {
		return bad("attempts is %d", o.Attempts)
	}
	for _, f := range []struct {
		name  string
		value *millis
	}{{"took_ms", o.Took}, {"deadline_ms", o.Deadline}, {"cancelled_ms", o.Cancelled}} {
		switch {
		case f.value == nil:
		case *f.value < 0 || *f.value > maxMillis:
			return bad("%s is %v: it lies between 0 and %d", f.name, *f.value, maxMillis)
		case o.Took == nil:
			return bad("%s says nothing without took_ms, how long the call took", f.name)
		case f.name == "deadline_ms" && *f.value == 0:
			return bad("deadline_ms is 0: leave it out where there was no deadline")
		}
	}
	if len(o.Error) > maxError {
		o.Error = strings.ToValidUTF8(o.Error[:maxError], "") + "…"
	}
	return nil
}

// complete is the history with what was told of the client's side, and the calls of which nothing was told.
//
// A call starts with its first attempt: what the client did before that is not seen. The instants that the test
// tells are lengths, and are counted from there. A call of which nothing was told has an outcome that claims
// nothing, so that no check takes its silence for a fact; see judge.
func (r *run) complete() (h *history.History, missing []string) {
	h = r.settled()
	if text := r.listener.bound(); text != "" {
		h.Findings = append(h.Findings, history.Finding{Kind: history.FindingHarness, Text: "the run's port: " + text})
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range h.Calls {
		told, ok := r.told[c.ID]
		if len(c.Attempts) > 0 {
			c.Started = c.Attempts[0].At
		}
		if !ok {
			c.Returned, c.Ended = true, c.LastActivity()
			continue
		}
		told.fill(c)
	}
	if !r.exact {
		for _, c := range h.Calls {
			c.BodyHash, c.BodyLen = givenBody(c)
		}
	}
	return h, r.missing()
}

const (
	// settleTime is how long the server may take to note what has just happened on the wire. A client can tell of an
	// answer before its server has come to write down that it was sent.
	settleTime = time.Second
	settleStep = 2 * time.Millisecond
)

// settled is the history up to now, in which the attempts of all calls that were told of are over, if they are soon.
func (r *run) settled() *history.History {
	until := time.Now().Add(settleTime)
	for {
		h := r.stage.History()
		if !r.open(h) || time.Now().After(until) {
			return h
		}
		time.Sleep(settleStep)
	}
}

// open reports whether an attempt of a call that was told of is not over.
func (r *run) open(h *history.History) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range h.Calls {
		if _, told := r.told[c.ID]; told && slices.ContainsFunc(c.Attempts, func(a *history.Attempt) bool { return a.Ended == a.At }) {
			return true
		}
	}
	return false
}

// fill writes the outcome into the record of its call.
func (o report) fill(c *history.Call) {
	c.Returned = true
	c.Outcome = history.Outcome{OK: *o.OK, Error: o.Error, Attempts: o.Attempts}
	if o.Status != nil {
		c.Outcome.Status = *o.Status
	}
	if o.Traits != nil {
		c.Outcome.Traits = *o.Traits
	}
	if o.Took == nil {
		c.Ended = max(c.Started, min(c.LastActivity(), o.at))
		return
	}
	took := o.Took.duration()
	if len(c.Attempts) == 0 {
		c.Started = max(0, o.at-took)
	}
	c.Ended = c.Started + took
	if o.Deadline != nil {
		c.Deadline = c.Started + o.Deadline.duration()
	}
	if o.Cancelled != nil {
		c.CancelAt = c.Started + max(o.Cancelled.duration(), 1) // 0 stands for none
	}
}

// givenBody is what the application is taken to have given: what the first attempt that arrived whole has carried.
func givenBody(c *history.Call) (hash string, n int) {
	for _, a := range c.Attempts {
		if !a.BodyBroken && !a.BodyUnread && !a.Redirected(c) {
			return a.BodyHash, a.BodyLen
		}
	}
	return c.BodyHash, c.BodyLen
}
