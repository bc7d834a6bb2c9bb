package check

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

// simulationsEnv is how many herds of each good policy TestSpreadSimulation makes, and a hundredth of it how many of
// each broken one; 100000 takes minutes. Unset, a few show that the tests still work.
const simulationsEnv = "RETRYCHAOS_SIMULATIONS"

func simulations(t *testing.T, def int) int {
	t.Helper()
	text := os.Getenv(simulationsEnv)
	if text == "" {
		return def
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("%s=%q: want a number of herds", simulationsEnv, text)
	}
	return n
}

// herds makes herds of one policy again and again in the same histories, one for each size: nothing but the instants
// of their attempts changes.
type herds map[int]*history.History

func (m herds) of(rng *rand.Rand, p policy, n, k int, noise time.Duration) *history.History {
	h := m[n]
	if h == nil {
		h = herdBy(rng, p, n, k, noise)
		m[n] = h
		return h
	}
	for _, c := range h.Calls {
		at, last := time.Duration(0), p.d.BaseDelay
		for k, a := range c.Attempts {
			if k > 0 {
				last = p.wait(rng, k, last)
				at += last + uniform(rng, 0, noise)
			}
			a.At, a.Ended = at, at
		}
	}
	return h
}

// noisy is a herd with the noise of a network and, for a tenth of all attempts, a server that stalls for up to 20 ms.
func (m herds) noisy(rng *rand.Rand, p policy, n, k int) *history.History {
	q := p
	q.wait = func(r *rand.Rand, k int, last time.Duration) time.Duration {
		x := p.wait(r, k, last)
		if r.IntN(10) == 0 {
			x += uniform(r, 0, 20*ms)
		}
		return x
	}
	h := m.of(rng, q, n, k, ms)
	h.Grain = 25 * ms
	return h
}

// rejected reports whether the scan test flags any of the waves at a level for the whole run.
func rejected(waves []spreadWave, level float64) bool {
	for _, w := range waves {
		scales, _ := scan(w.xs, w.width, w.grain, level/float64(len(waves)*len(scanScales)))
		if slices.ContainsFunc(scales, scanned.rejects) {
			return true
		}
	}
	return false
}

// spreadPageEnv is a file for what TestSpreadSimulation counts, as a page: docs/spread.md.
const spreadPageEnv = "RETRYCHAOS_SPREAD_PAGE"

// countable is a level at which false alarms can be counted.
const countable = 0.01

// A tally is a row of the page.
type tally struct {
	name  string
	n     int // the herd's size; 0: of all sizes
	runs  int
	count int // false alarms, or herds that were caught
}

// TestSpreadSimulation counts the false alarms of good policies, and how often broken jitter is caught.
func TestSpreadSimulation(t *testing.T) {
	runs, caughtOf := simulations(t, 40), max(20, simulations(t, 2000)/100)
	good, broken := make([]tally, len(goodPolicies)), []tally(nil)
	t.Run("good", func(t *testing.T) {
		for i, p := range goodPolicies {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				good[i] = falseAlarms(t, p, runs)
			})
		}
	})
	t.Run("broken", func(t *testing.T) {
		for _, b := range breakages() {
			for _, n := range slices.Sorted(maps.Keys(b.power)) {
				broken = append(broken, caught(t, b, n, caughtOf))
			}
		}
		broken = append(broken, caughtAfterRetryAfter(t, max(10, simulations(t, 1000)/100))...)
	})
	if path := os.Getenv(spreadPageEnv); path != "" && !t.Failed() && len(broken) > 0 && good[0].runs > 0 {
		if err := os.WriteFile(path, spreadPage(good, broken), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// falseAlarms counts how many herds of a good policy are rejected at the countable level, in herds of many sizes. At the
// real level none must be.
func falseAlarms(t *testing.T, p policy, runs int) tally {
	rng := rand.New(rand.NewPCG(21, 22))
	again := herds{}
	alarms := 0
	for i := range runs {
		waves, _ := spreadWaves(again.noisy(rng, p, []int{20, 50, 100, 200}[i%4], 5))
		// What the lower level rejects, the higher one does.
		if !rejected(waves, countable) {
			continue
		}
		alarms++
		if rejected(waves, alpha) {
			t.Fatalf("herd %d: a false alarm at α = %v", i, alpha)
		}
	}
	t.Logf("%d false alarms in %d herds at α = %v", alarms, runs, countable)
	if float64(alarms) > max(2, countable*float64(runs)) {
		t.Errorf("%d of %d herds rejected at α = %v", alarms, runs, countable)
	}
	return tally{p.name, 0, runs, alarms}
}

// breakage is a broken jitter and how often it must be caught in herds of a size, at least.
type breakage struct {
	policy
	power map[int]float64 // by the size of the herd
}

func breakages() []breakage {
	full := history.Declared{Jitter: history.JitterFull, BaseDelay: s}
	always := map[int]float64{50: 1, 200: 1}
	draw := func(f func(r *rand.Rand, k int) time.Duration) func(*rand.Rand, int, time.Duration) time.Duration {
		return func(r *rand.Rand, k int, _ time.Duration) time.Duration { return f(r, k) }
	}
	// part has so many in a hundred instances in lock-step, and groups of them where there are several seeds.
	part := func(percent, groups int) func(*rand.Rand, int, time.Duration) time.Duration {
		i := 0
		return draw(func(r *rand.Rand, k int) time.Duration {
			i++
			// Instances come in turn: which of a hundred one is depends on its place alone, as its seed would.
			if place := i % 100; place*7%100 < percent {
				return time.Duration(float64(doubled(k)) * (0.3 + 0.06*float64(place%groups)))
			}
			return uniform(r, 0, doubled(k))
		})
	}
	return []breakage{
		{policy{"none", full, draw(func(_ *rand.Rand, k int) time.Duration { return doubled(k) })}, always},
		{policy{"one shared seed", full, draw(func(_ *rand.Rand, k int) time.Duration { return doubled(k) * 37 / 100 })}, always},
		{policy{"1 %", full, draw(func(r *rand.Rand, k int) time.Duration { return uniform(r, doubled(k)*99/100, doubled(k)) })}, always},
		{policy{"5 %", full, draw(func(r *rand.Rand, k int) time.Duration { return uniform(r, doubled(k)*95/100, doubled(k)) })}, always},
		{policy{"whole seconds", history.Declared{Jitter: history.JitterFull, BaseDelay: 4 * s}, draw(func(r *rand.Rand, k int) time.Duration {
			return uniform(r, s, 4*s<<(k-1)).Truncate(s)
		})}, always},
		{policy{"jitter before the cap", history.Declared{Jitter: history.JitterFull, BaseDelay: s, MaxDelay: s},
			draw(func(r *rand.Rand, k int) time.Duration { return min(s, uniform(r, 0, doubled(k+1))) })}, always},
		{policy{"decorrelated, everyone at a low cap", history.Declared{Jitter: history.JitterDecorrelated, BaseDelay: s, MaxDelay: 2 * s},
			func(r *rand.Rand, _ int, last time.Duration) time.Duration { return min(2*s, uniform(r, s, 3*last)) }}, always},
		{policy{"30 % in lock-step", full, part(30, 1)}, always},
		{policy{"10 % in lock-step", full, part(10, 1)}, map[int]float64{100: 1, 200: 1}},
		{policy{"ten shared seeds", full, part(100, 10)}, map[int]float64{50: 0.7, 100: 1, 200: 1}},
	}
}

// caught counts how often broken jitter is caught, at the real level.
func caught(t *testing.T, b breakage, n, runs int) tally {
	rng := rand.New(rand.NewPCG(23, 24))
	again := herds{}
	out := tally{name: b.name, n: n, runs: runs}
	for range runs {
		if waves, _ := spreadWaves(again.of(rng, b.policy, n, 5, ms/10)); rejected(waves, alpha) {
			out.count++
		}
	}
	if power, least := float64(out.count)/float64(runs), b.power[n]; power < least {
		t.Errorf("%s: caught %d of %d herds of %d: %.3f, want %.3f", b.name, out.count, runs, n, power, least)
	}
	return out
}

// caughtAfterRetryAfter has herds of 200 obey a Retry-After in ways that bring them back together.
func caughtAfterRetryAfter(t *testing.T, runs int) []tally {
	var out []tally
	for _, x := range []struct {
		name string
		wait func(*rand.Rand, time.Duration) time.Duration
	}{
		{"Retry-After, obeyed to the second", func(_ *rand.Rand, asked time.Duration) time.Duration { return asked }},
		{"Retry-After + U(0, 0.1 s)", func(r *rand.Rand, asked time.Duration) time.Duration { return asked + uniform(r, 0, s/10) }},
		{"the greater of Retry-After and U(0, 2 s)", func(r *rand.Rand, asked time.Duration) time.Duration { return max(asked, uniform(r, 0, 2*s)) }},
		{"the greater of Retry-After and U(0, 4 s)", func(r *rand.Rand, asked time.Duration) time.Duration { return max(asked, uniform(r, 0, 4*s)) }},
		{"Retry-After + U(0, 1 s), in whole seconds", func(r *rand.Rand, asked time.Duration) time.Duration { return (asked + uniform(r, 0, s)).Truncate(s) }},
	} {
		rng := rand.New(rand.NewPCG(25, 26))
		row := tally{name: x.name, n: 200, runs: runs}
		for range runs {
			h := afterRetryAfter(200, false, func(_ int, asked time.Duration) time.Duration { return x.wait(rng, asked) })
			h.Declared = history.Declared{Jitter: history.JitterAdditive, JitterWidth: s / 2}
			if waves, _ := spreadWaves(h); rejected(waves, alpha) {
				row.count++
			}
		}
		if row.count < runs {
			t.Errorf("%s: caught %d of %d", x.name, row.count, runs)
		}
		out = append(out, row)
	}
	return out
}

// spreadPage writes what was counted.
func spreadPage(good, broken []tally) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `# How sure the spread verdict is

`+"`timing.spread`"+` is a scan test: it counts the calls of a wave that come back within a window, and rejects what a client whose
jitter is as wide as it declares shows with probability %.0e at most, for a whole run. Counted by simulation:

    RETRYCHAOS_SIMULATIONS=%d RETRYCHAOS_SPREAD_PAGE=$PWD/docs/spread.md go test ./harness/check -run TestSpreadSimulation -timeout 0

## Good jitter

Herds of 20, 50, 100 and 200 calls in turn, five waves each; with up to 1 ms of noise, and for a tenth of all attempts a server that
stalls for up to 20 ms. At α = %.0e no herd of all these was rejected. At α = %v, where false alarms can be counted:

| policy | herds | false alarms | allowed |
|---|---|---|---|
`, alpha, good[0].runs, alpha, countable)
	for _, r := range good {
		fmt.Fprintf(&b, "| %s | %d | %d | %.0f |\n", r.name, r.runs, r.count, countable*float64(r.runs))
	}
	fmt.Fprintf(&b, `
## Broken jitter

At α = %.0e. Declared as full jitter, where nothing else is said; after a Retry-After as additive jitter of half a second.

| jitter | calls in the herd | herds | caught |
|---|---|---|---|
`, alpha)
	for _, r := range broken {
		fmt.Fprintf(&b, "| %s | %d | %d | %d |\n", r.name, r.n, r.runs, r.count)
	}
	return b.Bytes()
}
