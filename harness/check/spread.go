package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

const (
	// herd is the smallest number of calls that can come back together.
	herd = 20
	// The minimum standard for a width that nobody declared: a tenth of the median wait, at most a quarter
	// of a second, and never less than 10 ms, which spreads nothing.
	maxAssumed = 250 * time.Millisecond
	minAssumed = 10 * time.Millisecond
	// grains is how many grains wide a jitter must be to be seen at all.
	grains = 8
)

// A wave is the k-th retry of the calls of one group. The gaps of a wave are judged by a scan test: the
// null hypothesis is that they are independent and that no instant is more likely than 1/J, where J is the
// jitter width that the client declares for that wave; nothing else is assumed of their distribution, so
// every kind of jitter is judged fairly. See scanThreshold for the bound. The probability of flagging a
// good client is at most alpha for the whole run, over all waves and scales, and noise of the measurement
// (the grain) cannot raise it.
//
// J by declaration, for retry k with delay d = min(cap, base·multiplier^(k−1)): full d; equal d/2; additive
// its width; proportional ratio·d; decorrelated the harmonic mean over the calls of min(cap, 3·last) − base:
// given the last waits, each call's density is at most 1 over its own width, and Hoeffding's theorem (1956)
// bounds the tail of the sum by the binomial of the mean. Without a declaration, and after a Retry-After,
// which the declared policy does not describe (but for additive jitter, which is added to it), J is the
// minimum standard, and the verdict says that it was assumed.
//
// After a Retry-After the sample is how long after the allowed instant a call came: obedient clients meet
// there, whether it was given in seconds or as a date. A retry at once that needs no wait (Gap.Free, below
// 1 ms) is left out: it is no back-off.
//
// A pass needs power: half of the calls in lock-step within J/8 must have been seen, and J be 8 grains wide.
var timingSpread = Check{
	ID:     "timing.spread",
	Holds:  "calls that failed together do not come back together",
	Level:  Should,
	Source: "AWS Architecture Blog, Exponential Backoff and Jitter; the scan statistic of Wallenstein and Neff, Statistics in Medicine 6 (1987)",
	Judge:  judgeSpread,
}

// A spreadWave is one wave, tested.
type spreadWave struct {
	history.Wave
	xs      []sample
	width   time.Duration
	claim   string // where the width comes from
	assumed bool
	scales  []scanned
	blind   int
	grain   time.Duration
}

func judgeSpread(h *history.History) Verdict {
	waves, cut := spreadWaves(h)
	if len(waves) == 0 {
		if len(cut) > 0 {
			return skipped("%s", cut[0])
		}
		return skipped("fewer than %d calls failed together", herd)
	}
	level := alpha / float64(len(waves)*len(scanScales))
	var worst *spreadWave
	var at scanned
	var powerless, late []string
	var evidence, notes []string
	failed, able := 0, 0
	seen := 1.0 // the largest part of a wave that can have hidden in lock-step
	for i := range waves {
		w := &waves[i]
		w.scales, w.blind = scan(w.xs, w.width, h.Grain, level)
		evidence = append(evidence, w.summary())
		rejects := slices.ContainsFunc(w.scales, scanned.rejects)
		part, ok := w.power()
		switch {
		case rejects && w.excused(h.Lateness, level):
			late = append(late, fmt.Sprintf("calls of %s came back together, but this machine was late by %s", w.name(), dur(h.Lateness)))
		case rejects:
			failed++
			for _, s := range w.scales {
				if s.rejects() && (worst == nil || excess(s) > excess(at)) {
					worst, at = w, s
				}
			}
		case ok:
			able++
			seen = min(seen, part)
		default:
			powerless = append(powerless, w.name()+": "+w.why())
		}
		if w.blind > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d of %d window widths skipped: not even all %d calls in one would be evidence", w.name(), w.blind, len(scanScales), len(w.xs)))
		}
		if w.assumed {
			notes = append(notes, fmt.Sprintf("%s: the width of %s was assumed (%s)", w.name(), dur(w.width), w.claim))
		}
	}
	var v Verdict
	shown := &waves[0]
	switch {
	case failed > 0:
		shown = worst
		v = fail("%d of %d calls came back within %s of each other in %s, where %s allows fewer than %d (a good client does that with probability %.0e at most)",
			at.most, len(worst.xs), dur(at.window), worst.name(), worst.claim, at.threshold, alpha)
		for _, s := range worst.xs[at.at : at.at+min(at.most, herd)] {
			v.Calls = append(v.Calls, s.call)
		}
	case len(late) > 0:
		v = unknown("%s", late[0])
		notes = append(notes, late[1:]...)
	case able > 0:
		v = pass("%s of up to %d calls spread as they should; lock-step of %.0f %% or more of a wave is ruled out",
			plural(able, "wave"), largest(waves), 100*seen)
		notes = append(notes, powerless...)
	default:
		v = unknown("no wave could show lock-step: %s", powerless[0])
		notes = append(notes, powerless[1:]...)
	}
	if failed == 0 {
		at = shown.closest()
	}
	v.Waits = shown.waits(at)
	peak, lines := histogram(slices.Clone(shown.xs))
	v.Evidence = append(evidence[:min(len(evidence), maxEvidence)], fmt.Sprintf("%s, peak %.1f times the mean:", shown.name(), peak))
	v.Evidence = append(v.Evidence, lines...)
	v.Notes = capNotes(append(notes, cut...))
	return v
}

// excess orders rejections: how far above the threshold.
func excess(s scanned) float64 { return float64(s.most) / float64(s.threshold) }

func largest(waves []spreadWave) int {
	n := 0
	for _, w := range waves {
		n = max(n, len(w.xs))
	}
	return n
}

func (w *spreadWave) name() string {
	s := fmt.Sprintf("retry %d of group %q", w.K, w.Group)
	if w.Asked {
		s += " after Retry-After"
	}
	return s
}

func (w *spreadWave) summary() string {
	s := fmt.Sprintf("%s: n = %d, J = %s (%s)", w.name(), len(w.xs), dur(w.width), w.claim)
	for _, x := range w.scales {
		s += fmt.Sprintf("; %d within %s (limit %d)", x.most, dur(x.window), x.threshold)
	}
	return s
}

// power returns the smallest part of the wave whose lock-step would have been seen, and whether that is
// enough for a pass.
func (w *spreadWave) power() (float64, bool) {
	part, ok := 1.0, false
	for _, s := range w.scales {
		if s.part > 1.0/8 {
			continue
		}
		p := float64(s.threshold) / float64(len(w.xs))
		part = min(part, p)
		ok = ok || p <= 0.5
	}
	return part, ok && w.width >= grains*w.grain
}

func (w *spreadWave) why() string {
	if w.width < grains*w.grain {
		return fmt.Sprintf("a jitter of %s cannot be told from noise of %s", dur(w.width), dur(w.grain))
	}
	return fmt.Sprintf("%d calls are too few", len(w.xs))
}

// excused reports whether a wave that the test rejects is no evidence because the machine was late: what it
// held back, it let go together. Twice what the harness's own timers were late, as in slack.
func (w *spreadWave) excused(lateness time.Duration, level float64) bool {
	if lateness <= 0 {
		return false
	}
	scales, _ := scan(w.xs, w.width, w.grain+2*lateness, level)
	return !slices.ContainsFunc(scales, scanned.rejects)
}

// spreadWaves prepares the waves that are large enough, and tells of those that prove nothing.
func spreadWaves(h *history.History) (out []spreadWave, cut []string) {
	for _, wave := range h.Waves() {
		w := spreadWave{Wave: wave, grain: h.Grain}
		var kept []history.Gap
		var lens []time.Duration
		for _, g := range wave.Gaps {
			// A 401 is answered with another token and a redirect with another request: neither is a retry.
			if g.Overlap || g.Free && g.Len < hotWait || g.Prev.Status == 401 || g.Prev.Redirect() {
				continue
			}
			x := g.Len
			if wave.Asked {
				x = g.Next.At - g.Prev.NotBefore
			}
			kept = append(kept, g)
			lens = append(lens, g.Len)
			w.xs = append(w.xs, sample{x, g.Call.ID})
		}
		if len(kept) < herd {
			continue
		}
		if n := cutShort(h, wave); n > 0 {
			cut = append(cut, fmt.Sprintf("%s: cancellation or a deadline kept %s from coming back, so that those which came say nothing of the rest", w.name(), plural(n, "call")))
			continue
		}
		w.width, w.claim, w.assumed = spreadWidth(h, wave, kept, lens)
		out = append(out, w)
	}
	return out, cut
}

// cutShort counts the calls that would have been of the wave and whose retry cancellation or deadline
// prevented, or may have: a wait drawn too long is not begun by a client that looks at its deadline. The waits
// that are left are the short ones, crowded into less than the jitter, and no test of them is fair.
func cutShort(h *history.History, wave history.Wave) int {
	longest := h.Declared.LongestDelay(wave.K)
	for _, g := range wave.Gaps {
		if h.Declared.BaseDelay == 0 || wave.Asked {
			longest = max(longest, 2*g.Len)
		}
	}
	n := 0
	for _, c := range h.Calls {
		if c.Group != wave.Group || c.Outcome.OK || len(c.Gaps()) != wave.K-1 {
			continue
		}
		left := c.Deadline - c.LastActivity()
		if c.Cancelled() || c.Deadline > 0 && left < longest {
			n++
		}
	}
	return n
}

// spreadWidth returns the jitter width that the client claims for the wave, in words, and whether it had to
// be assumed.
func spreadWidth(h *history.History, wave history.Wave, kept []history.Gap, lens []time.Duration) (time.Duration, string, bool) {
	d := h.Declared
	delay := d.Delay(wave.K)
	width, claim := time.Duration(0), ""
	switch {
	case d.Jitter == history.JitterAdditive:
		width, claim = d.JitterWidth, "additive jitter of "+dur(d.JitterWidth)
	case wave.Asked:
	case d.Jitter == history.JitterFull:
		width, claim = delay, "full jitter over "+dur(delay)
	case d.Jitter == history.JitterEqual:
		width, claim = delay/2, "equal jitter over half of "+dur(delay)
	case d.Jitter == history.JitterProportional:
		width = time.Duration(d.JitterRatio * float64(delay))
		claim = fmt.Sprintf("jitter of %.0f %% of %s", 100*d.JitterRatio, dur(delay))
	case d.Jitter == history.JitterDecorrelated && d.BaseDelay > 0:
		width = decorrelatedWidth(h, kept)
		claim = "decorrelated jitter, on average over " + dur(width)
	}
	if width > 0 {
		return width, claim, false
	}
	slices.Sort(lens)
	width = max(minAssumed, min(lens[len(lens)/2]/10, maxAssumed))
	claim = "a spread over " + dur(width)
	switch {
	case wave.Asked:
		claim += ", the least to add to a Retry-After"
	case d.Jitter == history.JitterNone:
		claim += ", the least, though no jitter is declared"
	default:
		claim += ", the least where none is declared"
	}
	return width, claim, true
}

// decorrelatedWidth is the harmonic mean of the widths from which the calls drew, given their last waits.
// A last wait that was not of the policy's own (a Retry-After) starts it over from the base.
func decorrelatedWidth(h *history.History, kept []history.Gap) time.Duration {
	base := h.Declared.BaseDelay
	sum := 0.0
	for _, g := range kept {
		last := base
		for _, p := range g.Call.Gaps() {
			if p.Next == g.Prev && len(p.Prev.RetryAfter) == 0 {
				last = max(base, p.Len-h.Grain)
			}
		}
		top := 3 * last
		if m := h.Declared.MaxDelay; m > 0 {
			top = min(top, max(m, base+time.Millisecond))
		}
		sum += 1 / float64(top-base)
	}
	return time.Duration(float64(len(kept)) / sum)
}
