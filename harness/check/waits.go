package check

import (
	"cmp"
	"slices"
	"time"
)

// WaitsSchema names the form of Waits. Fields may be added under the same name.
const WaitsSchema = "retrychaos.waits/v1"

// Waits is how the calls of one wave came back, as numbers: what a histogram is drawn from. It decides nothing.
// Durations are nanoseconds in JSON.
type Waits struct {
	Schema string `json:"schema"`
	Wave   string `json:"wave"`
	Calls  int    `json:"calls"`
	// Counts are the calls by their waits, or, after a Retry-After, by how long after the instant that it allowed they
	// came, in bins of Step from From on: 0, unless all came much later. The bins reach beyond the last call, and over
	// Width from the first at least.
	From   time.Duration `json:"from_ns"`
	Step   time.Duration `json:"step_ns"`
	Counts []int         `json:"counts"`
	// Width is the jitter that the client claims, or the least that was assumed of it: a good client has no more than
	// Calls × Step ÷ Width in a bin on average.
	Width time.Duration `json:"width_ns"`
	Claim string        `json:"claim"`
	// Most calls came within Window of each other, from At on. With Limit of them a good client is ruled out. Limit is
	// 0 where the calls are too few for any.
	Window time.Duration `json:"window_ns,omitempty"`
	At     time.Duration `json:"at_ns,omitempty"`
	Most   int           `json:"most,omitempty"`
	Limit  int           `json:"limit,omitempty"`
}

const waitBins = 60

// waits counts the wave, whose samples are sorted, into bins, and tells of one scale of its test.
func (w *spreadWave) waits(s scanned) *Waits {
	if len(w.xs) == 0 {
		return nil
	}
	from, to := w.xs[0].x, w.xs[len(w.xs)-1].x
	to = max(to, from+w.width)
	if from >= 0 && from <= 2*(to-from) {
		from = 0
	}
	span := to - from
	out := &Waits{Schema: WaitsSchema, Wave: w.name(), Calls: len(w.xs), From: from, Step: max(1, span/waitBins+1),
		Counts: make([]int, waitBins), Width: w.width, Claim: w.claim}
	for _, x := range w.xs {
		out.Counts[min(waitBins-1, int((x.x-from)/out.Step))]++
	}
	if s.threshold > 0 {
		out.Window, out.Most, out.Limit, out.At = s.window, s.most, s.threshold, w.xs[s.at].x
	}
	return out
}

// closest is the scale at which the wave came nearest to its limit; the zero value where there was none.
func (w *spreadWave) closest() scanned {
	if len(w.scales) == 0 {
		return scanned{}
	}
	return slices.MaxFunc(w.scales, func(a, b scanned) int { return cmp.Compare(excess(a), excess(b)) })
}
