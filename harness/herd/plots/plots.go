// Package plots draws what package herd has measured, as SVG.
package plots

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/go-analyze/charts"

	"github.com/retrychaos/retrychaos/harness/herd"
)

const width, height = 900, 420

// labelCount is how many labels of the x axis fit beside each other.
const labelCount = 10

// Arrivals draws the attempts that arrive a second, one line a run. The runs are of one setting.
func Arrivals(runs []herd.Run) ([]byte, error) {
	return course(runs, "attempts a second: "+runs[0].Setting.Name, func(r herd.Run, i int) float64 {
		return float64(r.Load.Seconds[i].Attempts)
	})
}

// Goodput draws the calls that come to a good end a second, one line a run, over the calls that start.
func Goodput(runs []herd.Run) ([]byte, error) {
	return course(runs, "calls that succeed a second: "+runs[0].Setting.Name, func(r herd.Run, i int) float64 {
		return float64(r.Load.Seconds[i].Succeeded)
	})
}

// points is how many points a line has at most: more cannot be told apart.
const points = 300

func course(runs []herd.Run, title string, value func(r herd.Run, second int) float64) ([]byte, error) {
	seconds := 0
	for _, r := range runs {
		seconds = max(seconds, len(r.Load.Seconds))
	}
	step := (seconds + points - 1) / points
	var names, labels []string
	var lines [][]float64
	for _, r := range runs {
		names = append(names, r.Client)
		line := make([]float64, (seconds+step-1)/step)
		for i := range r.Load.Seconds {
			line[i/step] += value(r, i) / float64(step)
		}
		lines = append(lines, line)
	}
	for i := range lines[0] {
		labels = append(labels, strconv.Itoa(i*step)+" s")
	}
	return svg(charts.LineRender(lines, options(title, labels, names)...))
}

// Waves draws the histogram of the waits before each retry, one series a wave, on one axis.
func Waves(r herd.Run) ([]byte, error) {
	const bins, waves = 24, 4
	var last time.Duration
	var names []string
	list := r.Waves[:min(waves, len(r.Waves))]
	for _, w := range list {
		names = append(names, fmt.Sprintf("retry %d", w.K))
		last = max(last, slices.Max(w.Gaps))
	}
	if last == 0 {
		return nil, nil // nobody waited: there is nothing to draw
	}
	// Bins have a width that can be read.
	width := last/bins + 1
	for _, unit := range []time.Duration{time.Millisecond, 10 * time.Millisecond, 100 * time.Millisecond, time.Second} {
		if width > 5*unit {
			width = (width + unit - 1) / unit * unit
		}
	}
	values := make([][]float64, len(list))
	for i, w := range list {
		values[i] = make([]float64, bins)
		for _, g := range w.Gaps {
			values[i][min(bins-1, int(g/width))]++
		}
	}
	var labels []string
	for i := range bins {
		labels = append(labels, (width * time.Duration(i)).Round(time.Millisecond).String())
	}
	return svg(charts.BarRender(values, options("waits before each retry: "+r.Client+", "+r.Setting.Name, labels, names)...))
}

// CallsAgainstN draws attempts a call against the size of the herd, one line a client. The rows of all clients
// have the same sizes in the same order.
func CallsAgainstN(rows []herd.Row, sizes []int) ([]byte, error) {
	var names, labels []string
	var lines [][]float64
	for _, row := range rows {
		i := slices.Index(names, row.Client)
		if i < 0 {
			i = len(names)
			names, lines = append(names, row.Client), append(lines, nil)
		}
		lines[i] = append(lines[i], row.After)
	}
	for _, n := range sizes {
		labels = append(labels, strconv.Itoa(n))
	}
	return svg(charts.LineRender(lines, options("attempts a call against the number of clients", labels, names)...))
}

func options(title string, labels, names []string) []charts.OptionFunc {
	return []charts.OptionFunc{
		charts.SVGOutputOptionFunc(),
		charts.DimensionsOptionFunc(width, height),
		charts.TitleTextOptionFunc(title),
		charts.XAxisLabelsOptionFunc(labels),
		charts.LegendOptionFunc(charts.LegendOption{SeriesNames: names, Offset: charts.OffsetStr{Left: "right", Top: "30"}}),
		charts.PaddingOptionFunc(charts.NewBoxEqual(20)),
		func(o *charts.ChartOption) {
			o.Symbol = charts.Symbol{Shape: charts.SymbolNone} // hundreds of dots hide the line
			o.BarMargin = charts.Ptr(0.0)
			o.XAxis.LabelCount = labelCount
		},
	}
}

func svg(p *charts.Painter, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return p.Bytes()
}
