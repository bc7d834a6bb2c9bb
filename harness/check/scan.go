package check

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// scanScales are the widths of the windows, as parts of the jitter width. The last one is near the clock's
// resolution: it finds few clients in lock-step.
var scanScales = [...]float64{1.0 / 2, 1.0 / 8, 1.0 / 32, 1.0 / 512}

// scanThreshold returns the smallest c at which the scan test rejects: n·P(Bin(n−1, p) ≥ c−1) ≤ level. It
// reports false where not even n calls in one window would be evidence enough.
//
// The bound holds for every distribution whose density is at most 1/J, p = w/J: some call is the first of
// the c in its window, and each of the n−1 others falls within w after it with probability p at most.
func scanThreshold(n int, p, level float64) (int, bool) {
	if n < 2 || p >= 1 {
		return 0, false
	}
	bound := func(c int) float64 { return float64(n) * upperTail(n-1, c-1, p) }
	if bound(n) > level {
		return 0, false
	}
	lo, hi := 1, n // bound(lo) > level ≥ bound(hi)
	for hi-lo > 1 {
		if mid := (lo + hi) / 2; bound(mid) <= level {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi, true
}

// scanMax returns the largest number of the sorted xs in any closed window of width w, and where the
// window begins.
func scanMax(xs []sample, w time.Duration) (count, at int) {
	lo := 0
	for hi := range xs {
		for xs[hi].x-xs[lo].x > w {
			lo++
		}
		if n := hi - lo + 1; n > count {
			count, at = n, lo
		}
	}
	return count, at
}

// A sample is one call's gap in a wave.
type sample struct {
	x    time.Duration
	call string
}

// A scanned scale is what the test found in windows of one width.
type scanned struct {
	part      float64
	window    time.Duration
	threshold int
	most, at  int
}

func (s scanned) rejects() bool { return s.most >= s.threshold }

// scan runs the test over xs, which it sorts, for jitter of width j measured with grain g. Scales at which n
// calls cannot be evidence are counted in blind.
func scan(xs []sample, j, g time.Duration, level float64) (scales []scanned, blind int) {
	slices.SortFunc(xs, func(a, b sample) int { return cmp.Compare(a.x, b.x) })
	for _, part := range scanScales {
		w := time.Duration(part * float64(j))
		c, ok := scanThreshold(len(xs), float64(w+g)/float64(j), level)
		if !ok {
			blind++
			continue
		}
		most, at := scanMax(xs, w)
		scales = append(scales, scanned{part, w, c, most, at})
	}
	return scales, blind
}

// histogram draws the sorted xs in ten bins, for people: it decides nothing. The peak is over the mean of
// the bins.
func histogram(xs []sample) (peak float64, lines []string) {
	const bins = 10
	if len(xs) == 0 {
		return 0, nil
	}
	from, to := xs[0].x, xs[len(xs)-1].x
	var counts [bins]int
	for _, s := range xs {
		i := 0
		if to > from {
			i = min(bins-1, int(float64(s.x-from)/float64(to-from)*bins))
		}
		counts[i]++
	}
	most := slices.Max(counts[:])
	step := (to - from) / bins
	for i, n := range counts {
		lines = append(lines, fmt.Sprintf("%10s … %-10s %5d %s", dur(from+time.Duration(i)*step), dur(from+time.Duration(i+1)*step), n,
			strings.Repeat("#", (n*30+most-1)/most)))
		if to == from {
			break
		}
	}
	return float64(most) * bins / float64(len(xs)), lines
}
