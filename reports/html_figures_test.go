package reports

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
)

// A timeline has a place for everything that happened in a call.
func TestDrawTimeline(t *testing.T) {
	h := &history.History{Grain: ms, Effects: []history.Effect{{N: 1, At: 2 * time.Second, Call: "c", Attempt: 1, Late: true}}}
	c := &history.Call{ID: "c", Method: "POST", Path: "/", Started: time.Second, Ended: 11 * time.Second, Returned: true,
		Deadline: 11 * time.Second, CancelAt: 6 * time.Second, Outcome: history.Outcome{Error: "late"},
		Attempts: []*history.Attempt{
			{N: 1, At: time.Second, Ended: 2 * time.Second, Conn: 1, Fault: "503", Category: "status", Status: 503, Delivered: true},
			{N: 2, At: 3 * time.Second, Ended: 3 * time.Second, Conn: 1, Reused: true, Fault: "connection_reset", Category: "transport", Delivered: true},
			{N: 3, At: 3 * time.Second, Ended: 4 * time.Second, Conn: 2, Hidden: true, Fault: "429 retry-after=60s", Category: "status", Status: 429,
				Delivered: true, RetryAfter: []string{"60"}, NotBefore: 64 * time.Second},
		}}
	d := drawTimeline(h, c, "timing.deadline")
	at := func(seconds float64) string { return percent(axisFrom + axisSpan*(seconds-1)/10) }
	want := []htmlLane{
		{From: at(1), To: at(2), Effects: []string{at(2)}},
		{From: at(3), To: at(3), Reused: true, Gaps: []htmlSpan{{at(2), at(3)}}},
		{From: at(3), To: at(4), Hidden: true, Gaps: []htmlSpan{{at(4), at(11)}}, Asked: []htmlSpan{{at(4), at(11)}}},
	}
	for i, l := range d.Lanes {
		w := want[i]
		if l.From != w.From || l.To != w.To || l.Hidden != w.Hidden || l.Reused != w.Reused || !slices.Equal(l.Effects, w.Effects) ||
			!slices.Equal(l.Gaps, w.Gaps) || !slices.Equal(l.Asked, w.Asked) {
			t.Errorf("lane %d is %+v, want %+v", i+1, l, w)
		}
		if l.Bar <= l.Y2 || l.Bar >= d.Bottom || i > 0 && l.Y <= d.Lanes[i-1].Bar {
			t.Errorf("lane %d lies at %d to %d, of %d", i+1, l.Y, l.Bar, d.Bottom)
		}
	}
	if got := d.Lanes[2].Wait; got != "then nothing for 7s of 1m0s asked" {
		t.Errorf("the last wait is %q", got)
	}
	var marks []string
	for _, m := range d.Marks {
		marks = append(marks, m.Class+" "+m.X)
	}
	if want := []string{"cancel " + at(6), "deadline " + at(11), "end " + at(11)}; !slices.Equal(marks, want) {
		t.Errorf("marks %q, want %q", marks, want)
	}
	if len(d.Rows) != len(h.Timeline(c)) {
		t.Errorf("%d lines of text for %d", len(d.Rows), len(h.Timeline(c)))
	}
	for range 100 {
		c.Attempts = append(c.Attempts, &history.Attempt{N: len(c.Attempts) + 1, At: 4 * time.Second, Ended: 4 * time.Second})
	}
	if d = drawTimeline(h, c, ""); len(d.Lanes) != timelineHead+1+timelineTail || d.Lanes[timelineHead].LeftOut != 103-timelineHead-timelineTail {
		t.Errorf("%d lanes for 103 attempts", len(d.Lanes))
	}
}

func TestAxisTicks(t *testing.T) {
	for _, d := range []time.Duration{0, 1, 7, 999 * time.Nanosecond, 3 * ms, time.Second, 61 * time.Second, time.Hour, 24 * time.Hour, 400 * 24 * time.Hour} {
		ticks := axis{5, 5 + d}.ticks()
		if len(ticks) == 0 || len(ticks) > 7 || d > 10 && len(ticks) < 2 {
			t.Errorf("%d ticks over %s", len(ticks), d)
		}
		for i, x := range ticks[1:] {
			if x.X == ticks[i].X {
				t.Errorf("two ticks at %s over %s", x.X, d)
			}
		}
	}
}

func TestDrawWaits(t *testing.T) {
	w := check.Waits{Schema: check.WaitsSchema, Calls: 100, Step: 100 * ms, Width: time.Second, Counts: []int{0, 100, 0, 0, 0, 0, 0, 0, 0, 0},
		Window: 10 * ms, At: 150 * ms, Most: 100, Limit: 20}
	d := drawWaits(&w)
	if d.Ideal != "10.0" || d.Most != 100 || !d.Breach || d.WindowX != "10.00%" || d.WindowWidth != "10.00%" || strings.Count(d.Bars, "M") != 1 || !strings.HasPrefix(d.Bars, "M1.1 ") {
		t.Errorf("%+v", d)
	}
	for _, want := range []string{"100 calls came back between 0s and 200ms", "within 10ms", "fewer than 20 are allowed"} {
		if !strings.Contains(d.Text, want) {
			t.Errorf("the text lacks %q: %s", want, d.Text)
		}
	}
	w.Window = 200 * ms
	if d := drawWaits(&w); d.WindowX != "15.00%" || d.WindowWidth != "20.00%" {
		t.Errorf("%+v", d)
	}
	w.Most, w.Limit = 0, 0
	if d := drawWaits(&w); d.Breach || d.WindowX != "" {
		t.Errorf("%+v", d)
	}
	w.Schema = "retrychaos.waits/v9"
	if drawWaits(&w) != nil {
		t.Error("a form that is not known is drawn")
	}
}

func TestDrawLoad(t *testing.T) {
	h := &history.History{Capacity: &history.Capacity{Workers: 1, Service: 100 * ms, Queue: 5}, Triggers: []history.Trigger{{From: 100 * time.Second, To: 200 * time.Second, What: "stall"}}}
	if drawLoad(h) != nil {
		t.Error("a run without calls is drawn")
	}
	for i := range 400 {
		c := &history.Call{ID: fmt.Sprint(i), Started: time.Duration(i) * time.Second, Ended: time.Duration(i) * time.Second}
		c.Outcome.OK = i < 100
		for range 1 + i/100 {
			c.Attempts = append(c.Attempts, &history.Attempt{At: c.Started})
		}
		h.Calls = append(h.Calls, c)
	}
	d := drawLoad(h)
	if d.Bins != 100 || d.Each == "" || len(d.Triggers) != 1 || d.Triggers[0].X != "25.0%" || d.Triggers[0].Width != "25.0%" || d.Capacity != "capacity 10 a second" {
		t.Errorf("%+v", d)
	}
	if strings.Count(d.Attempts, "h1") != 100 || !strings.Contains(d.Text, "1000 attempts for 400 calls") {
		t.Errorf("%s\n%s", d.Attempts, d.Text)
	}
	h.Capacity = nil
	if drawLoad(h) != nil {
		t.Error("a run without a capacity is drawn")
	}
}
