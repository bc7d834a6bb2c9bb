package history

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Line is one entry of a call's timeline.
type Line struct {
	At      time.Duration `json:"at_ns"`             // since the start of the call
	Kind    string        `json:"kind"`              // see the Line constants
	Attempt int           `json:"attempt,omitempty"` // for LineAttempt and LineEffect
	Text    string        `json:"text"`
}

// Kinds of lines.
const (
	LineCall     = "call"
	LineAttempt  = "attempt"
	LineEffect   = "effect" // one that did not happen within its attempt
	LineCancel   = "cancel"
	LineDeadline = "deadline"
	LineOutcome  = "outcome"
)

// String writes the line with its instant, aligned for a column of lines.
func (l Line) String() string { return fmt.Sprintf("%12s  %s", Dur(l.At), l.Text) }

// Dur writes a duration for people: three digits are enough above a microsecond.
func Dur(d time.Duration) string {
	abs := d.Abs()
	switch {
	case abs >= 10*time.Second:
		d = d.Round(10 * time.Millisecond)
	case abs >= time.Second:
		d = d.Round(time.Millisecond)
	case abs >= time.Millisecond:
		d = d.Round(10 * time.Microsecond)
	}
	return d.String()
}

// Timeline tells the life of one call in the order of time: each attempt with its connection, fault, commit,
// status and the wait before it, what Retry-After asked and whether it was obeyed, late effects, the marks
// of cancellation and deadline, and the outcome. Its instants count from the start of the call.
func (h *History) Timeline(c *Call) []Line {
	if c == nil {
		return nil
	}
	out := []Line{{At: c.Started, Kind: LineCall, Text: c.intro()}}
	gaps := make(map[*Attempt]Gap)
	for _, g := range c.Gaps() {
		gaps[g.Next] = g
	}
	for _, a := range c.Attempts {
		text := a.describe()
		if g, ok := gaps[a]; ok {
			text += h.wait(g)
		}
		out = append(out, Line{At: a.At, Kind: LineAttempt, Attempt: a.N, Text: text})
	}
	for _, e := range h.Effects {
		if e.Call != c.ID {
			continue
		}
		if a := c.Attempt(e.Attempt); a == nil || e.Late || e.At > a.Ended+h.Grain {
			out = append(out, Line{At: e.At, Kind: LineEffect, Attempt: e.Attempt,
				Text: fmt.Sprintf("effect %d of attempt %d happens, after the client has gone", e.N, e.Attempt)})
		}
	}
	if c.Cancelled() {
		out = append(out, Line{At: c.CancelAt, Kind: LineCancel, Text: "the application cancels"})
	}
	if c.Deadline > 0 && (c.Ended >= c.Deadline-h.Grain || !c.Returned) {
		out = append(out, Line{At: c.Deadline, Kind: LineDeadline, Text: "the deadline"})
	}
	out = append(out, Line{At: c.Ended, Kind: LineOutcome, Text: c.verdict()})
	// Lines of one instant keep the order in which they were added: attempt before mark before outcome.
	slices.SortStableFunc(out, func(a, b Line) int { return cmp.Compare(a.At, b.At) })
	for i := range out {
		out[i].At -= c.Started
	}
	return out
}

// skew is what starts that are meant to be one may be apart.
const skew = 2 * time.Millisecond

func (c *Call) intro() string {
	s := fmt.Sprintf("call %s: %s %s", c.ID, c.Method, c.Path)
	switch {
	case c.Keyed && c.KeyHonoured:
		s += ", with a key that the server is known to honour"
	case c.Keyed:
		s += ", with a key that is not known to be honoured"
	case !c.Idempotent():
		s += ", without a key"
	}
	if c.MayRepeat {
		s += ", which may happen twice"
	}
	if c.Stream {
		s += ", with a body that can be read once"
	}
	if c.Started >= skew {
		s += ", " + Dur(c.Started) + " into the run"
	}
	if c.Deadline > 0 {
		s += ", deadline after " + Dur(c.Deadline-c.Started)
	}
	if len(c.Planned) > 0 {
		s += ", planned " + strings.Join(c.Planned, ", ")
		if c.Endless {
			s += " (for ever)"
		}
	}
	return s
}

func (a *Attempt) describe() string {
	s := fmt.Sprintf("attempt %d: ", a.N)
	switch {
	case a.Conn == 0 && a.Connection:
		s += "no connection"
	case a.Reused:
		s += fmt.Sprintf("connection %d reused", a.Conn)
	default:
		s += fmt.Sprintf("connection %d fresh", a.Conn)
	}
	if a.Hidden {
		s += ", resent by net/http"
	}
	fault := a.Fault
	if fault == "" {
		fault = "ok"
	}
	s += ", " + fault
	if a.Category != "" && a.Category != "none" && !a.Delivered {
		s += " (not delivered)"
	}
	switch {
	case a.Unmet:
		s += " (not met: the call was given another connection)"
	case a.Unsent:
		s += ", nothing sent"
	}
	if a.Effect > 0 {
		s += fmt.Sprintf(", commits effect %d", a.Effect)
	}
	switch {
	case a.Status > 0:
		s += fmt.Sprintf(", status %d", a.Status)
	default:
		s += ", no status"
	}
	if a.Replayed {
		s += " replayed from the store"
	}
	if a.Stored {
		s += ", stored with its key"
	}
	if a.InFlight {
		s += " (an earlier one with this key is at work)"
	}
	if len(a.RetryAfter) > 0 {
		s += ", Retry-After: " + strings.Join(a.RetryAfter, " | ")
	}
	if a.BodyBroken {
		s += fmt.Sprintf(", request body cut at %d bytes", a.BodyLen)
	}
	if d := a.Ended - a.At; d > 0 {
		s += ", took " + Dur(d)
	}
	return s
}

// wait tells of the wait before an attempt and of what had been asked.
func (h *History) wait(g Gap) string {
	s := "; " + Dur(g.Len) + " after the failure"
	if g.Overlap {
		return "; while the last one was at work"
	}
	if len(g.Prev.RetryAfter) == 0 {
		return s
	}
	switch {
	case !g.Prev.Asked():
		s += ", Retry-After had no value to obey"
	case g.Unseen:
		s += ", Retry-After came after the client had given the attempt up"
	case g.Next.At >= g.Prev.NotBefore-h.Grain:
		s += ", Retry-After obeyed"
	default:
		s += ", " + Dur(g.Prev.NotBefore-g.Next.At) + " before Retry-After allows"
	}
	return s
}

func (c *Call) verdict() string {
	o := c.Outcome
	var s string
	switch {
	case o.Panic != "":
		s = "the client panics: " + o.Panic
	case !c.Returned:
		s = "given up by the harness: the call never returns"
	case o.OK:
		s = "the call succeeds"
	default:
		s = "the call fails"
	}
	if c.Capped {
		s += ", at the harness's cap on attempts"
	}
	if o.Status > 0 {
		s += fmt.Sprintf(", status %d", o.Status)
	}
	if o.Error != "" {
		s += ": " + o.Error
	}
	if len(o.Traits) > 0 {
		s += " (" + strings.Join(o.Traits, ", ") + ")"
	}
	return s
}
