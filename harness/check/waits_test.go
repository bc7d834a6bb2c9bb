package check

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// TestWaits: no call is lost from the histogram, it is as wide as the jitter that is claimed, and the window that it
// marks is in it.
func TestWaits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := spreadWave{width: time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "width"))}
		for _, x := range rapid.SliceOfN(rapid.Int64Range(-int64(time.Second), int64(time.Hour)), 1, 200).Draw(t, "xs") {
			w.xs = append(w.xs, sample{x: time.Duration(x)})
		}
		w.scales, w.blind = scan(w.xs, w.width, 0, 1e-6)
		s := w.closest()
		f := w.waits(s)
		sum := 0
		for _, n := range f.Counts {
			sum += n
		}
		if sum != len(w.xs) || f.Calls != sum {
			t.Fatalf("%d of %d calls are counted, and %d said", sum, len(w.xs), f.Calls)
		}
		first, last := w.xs[0].x, w.xs[len(w.xs)-1].x
		end := f.From + time.Duration(len(f.Counts))*f.Step
		if f.From > first || end <= last || end < first+w.width {
			t.Fatalf("bins from %s to %s for waits from %s to %s and a width of %s", f.From, end, first, last, w.width)
		}
		if at := int((last - f.From) / f.Step); f.Counts[at] == 0 {
			t.Fatalf("the last call is not in bin %d: %v", at, f.Counts)
		}
		if (f.Limit > 0) != (len(w.scales) > 0) || f.Limit > 0 && (f.At < first || f.At > last || f.Most < 1 || f.Window <= 0 && w.width > 512) {
			t.Fatalf("window %+v", f)
		}
	})
}

// The verdict's numbers are those of its reason.
func TestSpreadTellsItsWaits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, p := range []struct {
		name  string
		wait  func() time.Duration
		want  Status
		width time.Duration
	}{
		{"lock-step", func() time.Duration { return time.Second }, Fail, time.Second},
		{"spread", func() time.Duration { return time.Duration(rng.Int64N(int64(time.Second))) }, Pass, time.Second},
	} {
		w := spreadWave{width: p.width}
		for range 1000 {
			w.xs = append(w.xs, sample{x: p.wait()})
		}
		w.scales, _ = scan(w.xs, w.width, time.Millisecond, 1e-6/4)
		f := w.waits(w.closest())
		if breach := f.Most >= f.Limit; breach != (p.want == Fail) {
			t.Errorf("%s: %d within %s, limit %d", p.name, f.Most, f.Window, f.Limit)
		}
		if full := slices.Max(f.Counts); p.want == Fail && full != 1000 || p.want == Pass && full > 80 {
			t.Errorf("%s: %d in the fullest bin", p.name, full)
		}
	}
}
