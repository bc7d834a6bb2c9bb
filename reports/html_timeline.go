package reports

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

// A drawing of a call: attempts as lanes over an axis of time. Places along the axis are percents, so that the
// picture fits every width and its text keeps its size.
type htmlTimeline struct {
	Call, Check string
	Side        string // of two, which
	Height      int
	Bottom      int // of the lanes
	Ticks       []htmlTick
	Lanes       []htmlLane
	Marks       []htmlMark
	Rows        [][2]string // the text alternative
}

type htmlTick struct {
	X     string
	Label string
	Side  string // text-anchor
}

type htmlLane struct {
	Y, Y2, Y3, Bar int // base lines of its text, and the middle of its bar
	Head, Text     string
	Wait           string // before it, in words; "" for none
	From, To       string // of the attempt
	OK             bool
	Hidden, Reused bool
	Side           string     // of its bar, for a hidden one's mark
	Gaps, Asked    []htmlSpan // waits taken, and waits that Retry-After asked for
	Early          bool       // the wait before it was shorter than asked
	Effects        []string
	LeftOut        int // attempts that stand in no lane of their own, instead of all else
}

// An htmlSpan is a stretch of the axis.
type htmlSpan struct{ From, To string }

type htmlMark struct {
	X, Label, Side, Class string
	Y                     int
}

const (
	laneHeight = 50 // without its wait and its effects
	waitLine   = 15
	effectLine = 15
	laneTop    = 20 // below the labels of the axis
	markHeight = 14
	axisFrom   = 1.5 // percent
	axisSpan   = 97.0
)

// An axis places instants.
type axis struct{ from, to time.Duration }

func (a axis) at(t time.Duration) string {
	x := axisFrom
	if a.to > a.from {
		x += axisSpan * float64(min(max(t, a.from), a.to)-a.from) / float64(a.to-a.from)
	}
	return percent(x)
}

func percent(x float64) string { return strconv.FormatFloat(x, 'f', 1, 64) + "%" }

// ticks are round instants, four or five of them.
func (a axis) ticks() []htmlTick {
	var out []htmlTick
	for t := time.Duration(0); t <= a.to-a.from; t += step(a.to - a.from) {
		out = append(out, htmlTick{X: a.at(a.from + t), Label: span(t), Side: side(a, a.from+t)})
		if a.to <= a.from {
			break
		}
	}
	return out
}

// step is the round duration that divides a span into four or five.
func step(d time.Duration) time.Duration {
	least := d / 5
	for _, unit := range []time.Duration{time.Nanosecond, time.Microsecond, time.Millisecond, time.Second, time.Minute, time.Hour, 24 * time.Hour} {
		for _, n := range []time.Duration{1, 2, 5, 10, 15, 20, 30, 50, 100, 200, 500} {
			if x := n * unit; x > least && x > 0 {
				return x
			}
		}
	}
	return max(1, d/4)
}

// side keeps text within the picture: it hangs to the right in the left half, and to the left in the right one.
func side(a axis, t time.Duration) string {
	switch x := t - a.from; {
	case x <= 0:
		return "start"
	case x > (a.to-a.from)*4/5:
		return "end"
	}
	return "middle"
}

// drawTimeline draws the life of a call, as far as a picture can; its text alternative tells it all.
func drawTimeline(h *history.History, c *history.Call, check string) *htmlTimeline {
	return drawTimelineOver(h, c, check, 0)
}

// reach is the axis that holds all of a call.
func reach(h *history.History, c *history.Call) axis {
	a := axis{c.Started, max(c.Ended, c.Started)}
	for _, x := range c.Attempts {
		a.to = max(a.to, x.At)
	}
	for _, e := range h.Effects {
		if e.Call == c.ID {
			a.to = max(a.to, e.At)
		}
	}
	return a
}

// drawTimelineOver draws over an axis of a given length at least, so that two drawings have one scale.
func drawTimelineOver(h *history.History, c *history.Call, check string, over time.Duration) *htmlTimeline {
	t := &htmlTimeline{Call: plain(c.ID), Check: plain(check)}
	for _, row := range timeline(h, c) {
		t.Rows = append(t.Rows, [2]string{strings.TrimSpace(row[0]), plain(row[1])})
	}
	a := reach(h, c)
	a.to = max(a.to, a.from+over)
	effects := map[int][]history.Effect{}
	for _, e := range h.Effects {
		if e.Call == c.ID {
			effects[e.Attempt] = append(effects[e.Attempt], e)
		}
	}
	gaps := map[*history.Attempt]history.Gap{}
	for _, g := range c.Gaps() {
		gaps[g.Next] = g
	}
	y := laneTop
	marks := drawMarks(a, h, c)
	y += markHeight * len(marks)
	for i, at := range c.Attempts {
		if n := len(c.Attempts); n > timelineHead+timelineTail+1 {
			if i == timelineHead {
				t.Lanes = append(t.Lanes, htmlLane{Y: y + 16, LeftOut: n - timelineHead - timelineTail})
				y += laneHeight / 2
			}
			if i >= timelineHead && i < n-timelineTail {
				continue
			}
		}
		g, waited := gaps[at]
		l := drawLane(a, y, c, at, g, waited, effects[at.N])
		t.Lanes = append(t.Lanes, l)
		y = l.Bar + laneHeight - 40
		if len(l.Effects) > 0 {
			y += effectLine
		}
	}
	t.Bottom, t.Height = y, y+4
	t.Ticks, t.Marks = a.ticks(), marks
	return t
}

// drawMarks are the lines across all lanes: cancellation, deadline, and the end of the call.
func drawMarks(a axis, h *history.History, c *history.Call) []htmlMark {
	type mark struct {
		at           time.Duration
		label, class string
	}
	var list []mark
	if c.Cancelled() {
		list = append(list, mark{c.CancelAt, "the application cancels", "cancel"})
	}
	if c.Deadline > 0 && (c.Ended >= c.Deadline-h.Grain || !c.Returned) {
		list = append(list, mark{c.Deadline, "deadline", "deadline"})
	}
	end := "the call fails"
	switch {
	case c.Outcome.Panic != "":
		end = "the client panics"
	case !c.Returned:
		end = "given up by the harness"
	case c.Outcome.OK:
		end = "the call succeeds"
	}
	list = append(list, mark{c.Ended, end + ", " + span(c.Ended-c.Started), "end"})
	slices.SortStableFunc(list, func(x, y mark) int { return int(x.at - y.at) })
	var out []htmlMark
	for i, m := range list {
		where := "end"
		if m.at-a.from < (a.to-a.from)/2 {
			where = "start"
		}
		out = append(out, htmlMark{X: a.at(m.at), Label: m.label, Side: where, Class: m.class, Y: laneTop + 10 + markHeight*i})
	}
	return out
}

func drawLane(a axis, y int, c *history.Call, at *history.Attempt, g history.Gap, waited bool, effects []history.Effect) htmlLane {
	l := htmlLane{Y: y + 13, Y2: y + 28, Y3: y + 28 + waitLine, Bar: y + 40, From: a.at(at.At), To: a.at(max(at.At, at.Ended)),
		OK: (at.Category == "" || at.Category == "none") && at.Status > 0 && at.Status < 400, Hidden: at.Hidden, Reused: at.Reused}
	head := []string{fmt.Sprintf("Attempt %d", at.N)}
	switch {
	case at.Conn == 0 && at.Connection:
		head = append(head, "no connection")
	case at.Reused:
		head = append(head, fmt.Sprintf("connection %d reused", at.Conn))
	default:
		head = append(head, fmt.Sprintf("connection %d fresh", at.Conn))
	}
	if at.Hidden {
		head = append(head, "resent by net/http")
	}
	if waited {
		l.Wait = l.wait(a, g)
	}
	if t := l.tail(a, c, at); t != "" {
		l.Wait = strings.TrimPrefix(l.Wait+"; "+t, "; ")
	}
	if l.Wait != "" {
		l.Bar += waitLine
	}
	if at.Hidden {
		l.Side = "start"
		if at.At-a.from > (a.to-a.from)*3/4 {
			l.Side = "end"
		}
	}
	l.Head = strings.Join(head, " · ")
	fault := at.Fault
	if fault == "" {
		fault = "ok"
	}
	text := []string{clip(plain(fault), 60)}
	if at.Category != "" && at.Category != "none" && !at.Delivered {
		text[0] += " (not delivered)"
	}
	if at.Status > 0 {
		text = append(text, fmt.Sprintf("status %d", at.Status))
	} else {
		text = append(text, "no status")
	}
	for _, e := range effects {
		l.Effects = append(l.Effects, a.at(e.At))
		what := fmt.Sprintf("effect %d", e.N)
		if e.Late {
			what += ", after the client had gone"
		}
		text = append(text, what)
	}
	l.Text = strings.Join(text, " · ")
	return l
}

// wait tells of the wait before an attempt, and draws it and what was asked for.
func (l *htmlLane) wait(a axis, g history.Gap) string {
	if g.Overlap {
		return "sent while the last one was at work"
	}
	l.Gaps = append(l.Gaps, htmlSpan{a.at(g.From), a.at(g.Next.At)})
	if !g.Prev.Asked() {
		return "waited " + span(g.Len)
	}
	l.Early = g.Next.At < g.Prev.NotBefore
	text := "waited " + l.asked(a, g.Prev, g.Len)
	if l.Early {
		text += ": too early"
	}
	return text
}

// asked draws what the answer to an attempt asked for, and compares it with what was taken.
func (l *htmlLane) asked(a axis, at *history.Attempt, taken time.Duration) string {
	l.Asked = append(l.Asked, htmlSpan{a.at(max(at.At, at.Ended)), a.at(at.NotBefore)})
	return span(taken) + " of " + span(at.AskedFor()) + " asked"
}

// tail tells of the time that the call went on after its last attempt, where that is long enough to be seen.
func (l *htmlLane) tail(a axis, c *history.Call, at *history.Attempt) string {
	from := max(at.At, at.Ended)
	left := c.Ended - from
	if at != c.Attempts[len(c.Attempts)-1] || left <= (a.to-a.from)/50 {
		return ""
	}
	l.Gaps = append(l.Gaps, htmlSpan{a.at(from), a.at(c.Ended)})
	if !at.Asked() {
		return "then nothing for " + span(left)
	}
	return "then nothing for " + l.asked(a, at, left)
}
