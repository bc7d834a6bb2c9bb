package reports

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

// A Trend is a number of one client over many scenarios, compared.
type Trend struct {
	Client ClientPair
	World  string
	What   string // "wait before retry 1", "attempts in scenarios against time"
	// Scenarios is how many were compared.
	Scenarios int
	Old, New  string  // the middle and, for waits, the range
	P         float64 // by Wilcoxon's signed-rank test; 0 where a constant wait became a drawn one, or the reverse
	// Significant says that it is no chance.
	Significant bool
}

// String is a row in the manner of benchstat, where ~ is for what chance explains.
func (t Trend) String() string {
	mark := "~"
	if t.Significant {
		mark = "changed"
	}
	return fmt.Sprintf("%s: %s → %s  %s (p=%.2g, n=%d)", t.What, t.Old, t.New, mark, t.P, t.Scenarios)
}

// trendAlpha is the false-positive rate of a trend.
const trendAlpha = 1e-6

// leastTrend is how many scenarios make a trend: with fewer the test cannot reach its rate.
const leastTrend = 30

// trends compares what single scenarios leave to chance.
func (n *noise) trends(p ClientPair, world string) []Trend {
	var out []Trend
	for k, s := range n.samples {
		t := Trend{Client: p, World: world, What: fmt.Sprintf("wait before retry %d", k+1)}
		if s.independent(n.declared, k+1) && t.waits(s) {
			out = append(out, t)
		}
	}
	if len(n.against) >= leastTrend {
		t := Trend{Client: p, World: world, What: "attempts in scenarios against time", Scenarios: len(n.against)}
		t.P = signedRank(n.against, 0)
		t.Significant = t.P <= trendAlpha
		side := func(get func(paired) float64) string {
			var sum float64
			for _, x := range n.against {
				sum += get(x)
			}
			return fmt.Sprintf("%.2f a call", sum/float64(len(n.against)))
		}
		t.Old, t.New = side(func(x paired) float64 { return x.old }), side(func(x paired) float64 { return x.new })
		out = append(out, t)
	}
	return out
}

// waits compares the k-th waits of the scenarios; false where there are too few.
func (t *Trend) waits(s *waitSamples) bool {
	if len(s.list) < leastTrend {
		return false
	}
	t.Scenarios = len(s.list)
	tie := float64(s.resolution)
	t.P = signedRank(s.list, tie)
	a := summarise(s.list, func(x paired) float64 { return x.old })
	b := summarise(s.list, func(x paired) float64 { return x.new })
	t.Old, t.New = a.text(s.resolution), b.text(s.resolution)
	// The middle may stay where jitter comes or goes.
	narrow, wide := min(a.width(), b.width()), max(a.width(), b.width())
	if narrow <= s.resolution && wide > 3*s.resolution {
		t.P = 0
	}
	t.Significant = t.P <= trendAlpha
	return true
}

// waitSamples is the k-th wait of each scenario, the middle one where it has several calls.
type waitSamples struct {
	list       []paired
	resolution time.Duration
}

// independent reports whether the draws of the scenarios may be taken for independent. Those of a client with
// jitter are not where a quarter of them coincide: they have come from one seed.
func (s *waitSamples) independent(declared [2]history.Declared, k int) bool {
	if s == nil {
		return false
	}
	for side, d := range declared {
		if r, ok := declaredRange(d, k); !ok || r <= s.resolution {
			continue
		}
		var v []float64
		for _, x := range s.list {
			v = append(v, [2]float64{x.old, x.new}[side])
		}
		slices.Sort(v)
		from := 0
		for i := range v {
			for v[i]-v[from] > float64(s.resolution) {
				from++
			}
			if 4*(i-from+1) > len(v) {
				return false
			}
		}
	}
	return true
}

// middling is the middle of a sample, and where its inner eight tenths lie.
type middling struct{ low, middle, high time.Duration }

func summarise(list []paired, get func(paired) float64) middling {
	var v []float64
	for _, x := range list {
		v = append(v, get(x))
	}
	slices.Sort(v)
	at := func(q float64) time.Duration { return time.Duration(v[int(q*float64(len(v)-1)+0.5)]) }
	return middling{at(0.1), at(0.5), at(0.9)}
}

func (s middling) width() time.Duration { return s.high - s.low }

func (s middling) text(res time.Duration) string {
	if s.width() <= res {
		return gapText(s.middle, res)
	}
	return fmt.Sprintf("%s (%s to %s)", gapText(s.middle, res), gapText(s.low, res), gapText(s.high, res))
}

// sample takes the k-th own waits of one scenario.
func (n *noise) sample(x pair) {
	var waits [2][][]time.Duration
	for side, r := range x.sides() {
		if r.History == nil || r.History.Validate() != nil {
			return
		}
		for _, c := range r.History.Calls {
			for _, g := range c.Gaps() {
				if !ownWait(g) {
					continue
				}
				for len(waits[side]) < g.K {
					waits[side] = append(waits[side], nil)
				}
				waits[side][g.K-1] = append(waits[side][g.K-1], g.Len)
			}
		}
	}
	for k := range min(len(waits[0]), len(waits[1]), maxTrendWaits) {
		if len(waits[0][k]) == 0 || len(waits[1][k]) == 0 {
			continue
		}
		if n.samples[k] == nil {
			n.samples[k] = new(waitSamples)
		}
		s := n.samples[k]
		s.list = append(s.list, paired{float64(middle(waits[0][k])), float64(middle(waits[1][k]))})
		s.resolution = max(s.resolution, resolution(x.old.History, x.new.History))
	}
}

// maxTrendWaits is how many waits of a call are looked at.
const maxTrendWaits = 4

func middle(list []time.Duration) time.Duration {
	slices.SortFunc(list, cmp.Compare)
	return list[len(list)/2]
}
