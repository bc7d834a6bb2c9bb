package faults

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// ErrNotApplicable is in the error of Apply when the answer has nothing that the fault could damage, such as
// a body to cut short in the answer to HEAD. The good answer was given instead, and nothing was delivered.
var ErrNotApplicable = errors.New("the answer has nothing for this fault to damage")

// ErrBrokenOff is in the error of Apply when the client broke off its request while the fault was reading it.
var ErrBrokenOff = errors.New("the client broke off its request")

// Apply does f to the attempt x. It holds all there is to say about phases:
//
//   - before_commit: the wire effect, and no commit;
//   - after_commit: the commit, then the wire effect;
//   - commit_late: the wire effect, then, where it blocks, the client's going away, then a wait of late=,
//     then the commit. The world's closing shortens the waits but never saves anybody from the commit.
//
// Apply returns when the handler may return. An error means that the fault could not be delivered, or not
// wholly; the commit has happened all the same where the phase has one.
func Apply(x *Exchange, f Fault) error {
	if f.IsOK() {
		return Answer(x)
	}
	e := find(f.Name)
	if e == nil {
		return fmt.Errorf("faults: unknown fault %q", f.Name)
	}
	if e.Level == LevelConnection {
		return fmt.Errorf("faults: %s strikes before there is a request: it takes a Dialer", f.Name)
	}
	d := &delivery{Exchange: x, fault: f}
	d.fault.fill()
	return d.apply(e)
}

func (d *delivery) apply(e *Entry) error {
	x, f := d.Exchange, &d.fault
	if !slices.Contains(e.Phases, f.Phase) {
		return fmt.Errorf("faults: %s cannot strike at %s", f.Name, f.Phase)
	}
	defer d.release()
	if x.Stream != nil && !e.keepAck {
		x.Stream.Acknowledge()
	}
	if f.BeforeBody() && f.Phase == AfterCommit {
		x.Forgo()
	}
	err := d.strike(e)
	if errors.Is(err, ErrNotApplicable) {
		if x.Stream != nil {
			x.Stream.Acknowledge()
		}
		if f.BeforeBody() {
			if lost := x.Receive(x.R.Body); lost != nil {
				return fmt.Errorf("faults: %s: %w: %w", f, ErrBrokenOff, lost)
			}
		}
		x.Commit()
		d.told = true
		return errors.Join(d.answer(x.Reply), fmt.Errorf("faults: %s: %w", f, err))
	}
	if err != nil {
		return fmt.Errorf("faults: %s: %w", f, err)
	}
	return nil
}

// Answer is Apply without a fault: the commit, and then the good answer.
func Answer(x *Exchange) error {
	d := delivery{Exchange: x}
	if x.Stream != nil {
		x.Stream.Acknowledge()
	}
	x.Commit()
	return d.answer(x.Reply)
}

func (d *delivery) strike(e *Entry) error {
	if e.run != nil {
		return e.run(d)
	}
	switch d.fault.Phase {
	case AfterCommit:
		d.Commit()
	case CommitLate:
		err := e.deliver(d)
		if errors.Is(err, ErrNotApplicable) {
			return err
		}
		d.Over()
		d.sleep(d.fault.Late)
		d.Commit()
		return err
	}
	return e.deliver(d)
}

// A delivery is one fault on its way to one attempt.
type delivery struct {
	*Exchange
	fault Fault    // the zero Fault is a good answer
	raw   *rawConn // the connection, once it was taken from net/http
	told  bool     // Delivered was called
}

// delivered reports the wire effect, once.
func (d *delivery) delivered() {
	if !d.told {
		d.told = true
		d.Delivered()
	}
}

// answered reports a status line with its Retry-After lines, which count from now.
func (d *delivery) answered(status int, lines []string, now time.Time) {
	if len(lines) == 0 {
		d.Answered(status, nil, time.Time{})
		return
	}
	d.Answered(status, slices.Clone(lines), notBefore(lines, now))
}

// release lets go of a connection taken from net/http, which no longer closes it.
func (d *delivery) release() {
	if d.raw != nil {
		d.raw.Close()
	}
}

// sleep waits without looking at the client, but not past the world's closing.
func (d *delivery) sleep(t time.Duration) {
	timer := time.NewTimer(t)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-d.Closing:
	}
}

// reply returns the reply with what it needs to be sent: a status, and the fields that describe the body.
func reply(r Reply) Reply { return described(r, make(http.Header, len(r.Header)+2)) }

// described is reply with its header written to h.
func described(r Reply, h http.Header) Reply {
	if r.Status == 0 {
		r.Status = http.StatusOK
	}
	for k, v := range r.Header {
		h[k] = slices.Clip(v) // whoever adds a line gets a copy
	}
	r.Header = h
	if !bodyAllowed(r.Status) {
		r.Body = nil
		return r
	}
	if h["Content-Type"] == nil && len(r.Body) > 0 {
		h["Content-Type"] = jsonType
	}
	h["Content-Length"] = []string{strconv.Itoa(len(r.Body))}
	return r
}

// jsonType is one array for all answers: who adds a line to it gets a copy, and nobody writes into it.
var jsonType = slices.Clip([]string{"application/json"})

// bodyAllowed reports whether an answer with that status has a body (RFC 9110 §6.4.1).
func bodyAllowed(status int) bool {
	return status >= 200 && status != http.StatusNoContent && status != http.StatusNotModified
}

// answer sends a whole answer, by net/http or on the stream, and keeps the connection.
func (d *delivery) answer(r Reply) error {
	if d.Stream != nil {
		return d.answerStream(r)
	}
	asked := r.Header["Retry-After"]
	var now time.Time
	if len(asked) > 0 {
		now = time.Now()
	}
	r = described(r, d.W.Header())
	if err := d.start(r, len(r.Body)); err != nil {
		return err
	}
	d.answered(r.Status, asked, now)
	d.delivered()
	return nil
}

// begin sends the head and the first n bytes of the body by net/http, and reports the answer. What was sent is
// on the wire when it returns.
func (d *delivery) begin(r Reply, n int) error {
	maps.Copy(d.W.Header(), r.Header)
	now := time.Now()
	if err := d.start(r, n); err != nil {
		return err
	}
	d.answered(r.Status, r.Header["Retry-After"], now)
	return nil
}

// start sends the head and n bytes where the header is net/http's own already.
func (d *delivery) start(r Reply, n int) error {
	d.W.WriteHeader(r.Status)
	if n > 0 && d.R.Method != http.MethodHead {
		if _, err := d.W.Write(r.Body[:n]); err != nil {
			return err
		}
	}
	return http.NewResponseController(d.W).Flush()
}

// respond sends a whole answer that is a fault by what it says. Where it ends with FIN it says so. A late commit comes after the answer: there
// the connection is closed behind it, because a next request on it would wait until this one is over and so
// could never overtake the commit. Streams of HTTP/2 do not wait for each other.
func (d *delivery) respond(r Reply) error {
	if d.Stream != nil && d.fault.End == EndFIN {
		if err := d.answer(r); err != nil {
			return err
		}
		return d.Stream.CloseConn(EndFIN)
	}
	if d.Stream != nil || d.fault.Phase != CommitLate && d.fault.End != EndFIN {
		return d.answer(r)
	}
	r = reply(r)
	r.Header.Set("Connection", "close")
	if err := d.sendRaw(r, len(r.Body)); err != nil {
		return err
	}
	return d.finish(EndFIN)
}
