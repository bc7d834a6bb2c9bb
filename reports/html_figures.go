package reports

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
)

// amplificationID is the check whose result is drawn from the course of the load.
const amplificationID = "load.amplification"

// htmlWaits is a histogram of how a herd came back, against what a good client shows at most on average.
type htmlWaits struct {
	Wave, Claim     string
	Bars            string // path in a box of len(Counts) × 100
	Bins            int
	IdealY, IdealY2 string // height of the ideal line in the box, and of its label in the picture
	Ideal           string
	Most            int
	Ticks           []htmlTick
	WindowX         string // "" for none
	WindowWidth     string
	Window          string // in words
	WindowSide      string
	Breach          bool
	Text            string
}

const plotHeight = 100.0

// drawWaits draws a histogram; nil where there is nothing to draw.
func drawWaits(w *check.Waits) *htmlWaits {
	if w.Schema != check.WaitsSchema || len(w.Counts) == 0 || w.Step <= 0 || w.Width <= 0 || w.Calls <= 0 {
		return nil
	}
	ideal := float64(w.Calls) * float64(w.Step) / float64(w.Width)
	most := slices.Max(w.Counts)
	top := max(float64(most), ideal) * 1.08
	height := func(n float64) float64 { return plotHeight * n / top }
	f := &htmlWaits{Wave: plain(w.Wave), Claim: plain(w.Claim), Bins: len(w.Counts), Most: most,
		IdealY: fmt.Sprintf("%.1f", plotHeight-height(ideal)), Ideal: fmt.Sprintf("%.1f", ideal), Breach: w.Limit > 0 && w.Most >= w.Limit}
	f.IdealY2 = fmt.Sprintf("%.1f%%", plotHeight-height(ideal))
	var b strings.Builder
	for i, n := range w.Counts {
		if n > 0 {
			fmt.Fprintf(&b, "M%d.1 100v-%.1fh.8V100z", i, max(1, height(float64(n))))
		}
	}
	f.Bars = b.String()
	a := axis{w.From, w.From + time.Duration(len(w.Counts))*w.Step}
	f.Ticks = plotTicks(a)
	f.Text = fmt.Sprintf("%s came back between %s and %s; the fullest of %d bins of %s holds %d, and a good client has at most %.1f in a bin on average.",
		count(w.Calls, "call"), span(w.From), span(w.From+w.Step*time.Duration(lastFull(w.Counts)+1)), len(w.Counts), span(w.Step), most, ideal)
	if w.Limit > 0 {
		full := float64(a.to - a.from)
		from, wide := w.At-w.From, w.Window
		if wide < w.Step { // too narrow to be seen: its bin is marked
			from, wide = from/w.Step*w.Step, w.Step
		}
		f.WindowX = fmt.Sprintf("%.2f%%", 100*float64(from)/full)
		f.WindowWidth = fmt.Sprintf("%.2f%%", 100*float64(wide)/full)
		f.Window = fmt.Sprintf("%d within %s", w.Most, span(w.Window)) // short, to fit on a phone: the text says how many may be
		f.WindowSide = "start"
		if w.At-w.From > (a.to-a.from)/2 {
			f.WindowSide = "end"
		}
		f.Text += fmt.Sprintf(" %d of them came within %s of each other, where fewer than %d are allowed.", w.Most, span(w.Window), w.Limit)
	}
	return f
}

func lastFull(counts []int) int {
	for i := len(counts) - 1; i > 0; i-- {
		if counts[i] > 0 {
			return i
		}
	}
	return 0
}

// plotTicks are round instants over the whole width; the axis of a plot begins where its first bin does.
func plotTicks(a axis) []htmlTick {
	var out []htmlTick
	by := step(a.to - a.from)
	first := (a.from + by - 1) / by * by
	for t := first; t <= a.to; t += by {
		out = append(out, htmlTick{X: fmt.Sprintf("%.1f%%", 100*float64(t-a.from)/float64(a.to-a.from)), Label: span(t), Side: edge(a, t)})
	}
	return out
}

func edge(a axis, t time.Duration) string {
	switch part := float64(t-a.from) / float64(a.to-a.from); {
	case part < 0.04:
		return "start"
	case part > 0.96:
		return "end"
	}
	return "middle"
}

// htmlLoad is the course of a run against a server with a capacity.
type htmlLoad struct {
	Bins                       int
	Attempts, Calls, Succeeded string // paths in a box of Bins × 100
	CapacityY, CapacityY2      string
	Capacity, Top              string
	Triggers                   []htmlBand
	Ticks                      []htmlTick
	Each                       string // what one bin is
	Text                       string
}

type htmlBand struct{ X, Width, Label, Side string }

const maxBins = 120

// drawLoad draws arrivals, offered calls and goodput over time; nil where the server had no capacity.
func drawLoad(h *history.History) *htmlLoad {
	l, ok := h.Load()
	if !ok || len(l.Seconds) == 0 {
		return nil
	}
	each := (len(l.Seconds) + maxBins - 1) / maxBins
	var attempts, calls, succeeded []float64
	for i := 0; i < len(l.Seconds); i += each {
		part := l.Seconds[i:min(i+each, len(l.Seconds))]
		var a, c, s int
		for _, x := range part {
			a, c, s = a+x.Attempts, c+x.Calls, s+x.Succeeded
		}
		n := float64(len(part))
		attempts, calls, succeeded = append(attempts, float64(a)/n), append(calls, float64(c)/n), append(succeeded, float64(s)/n)
	}
	rate := h.Capacity.Rate()
	top := max(rate, slices.Max(attempts), slices.Max(calls), slices.Max(succeeded)) * 1.08
	y := func(n float64) float64 { return plotHeight - plotHeight*n/top }
	path := func(ns []float64) string {
		var b strings.Builder
		for i, n := range ns {
			fmt.Fprintf(&b, "%s%d %.1fh1", map[bool]string{true: "M", false: "L"}[i == 0], i, y(n))
		}
		return b.String()
	}
	f := &htmlLoad{Bins: len(attempts), Attempts: path(attempts), Calls: path(calls), Succeeded: path(succeeded),
		CapacityY: fmt.Sprintf("%.1f", y(rate)), CapacityY2: fmt.Sprintf("%.1f%%", y(rate)), Capacity: fmt.Sprintf("capacity %.0f a second", rate),
		Top: fmt.Sprintf("%.0f a second", top)}
	a := axis{0, time.Duration(len(attempts)*each) * time.Second}
	f.Ticks = plotTicks(a)
	if each > 1 {
		f.Each = fmt.Sprintf("Each step is the mean of %d s.", each)
	}
	for _, t := range h.Triggers {
		where := "start"
		if t.From > (a.to-a.from)/2 {
			where = "end"
		}
		f.Triggers = append(f.Triggers, htmlBand{percent(100 * float64(t.From) / float64(a.to)),
			percent(100 * float64(min(t.To, a.to)-min(t.From, a.to)) / float64(a.to)), plain(t.What), where})
	}
	f.Text = fmt.Sprintf("%d attempts for %d calls over %s. The server can do %.0f a second; at worst %.0f a second arrived. It %s.",
		l.Attempts, l.Calls, span(a.to), rate, l.PeakRate, recoveryText(l))
	return f
}

func recoveryText(l history.Load) string {
	switch l.Recovery {
	case history.Recovered:
		return "recovered " + span(l.Took) + " after the trigger"
	case history.Collapsed:
		return "stayed down for " + span(l.Took) + " after the trigger"
	}
	return "was not seen for long enough to tell whether it recovers"
}
