package check

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

// simulationsEnv is how many herds of each good policy TestSpreadSimulation makes, and a hundredth of it how many of
// each broken one TestSpreadPower does; 100000 takes hours. Unset, a few show that the tests still work.
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

// noisy is a herd with the noise of a network and, for a tenth of all attempts, a server that stalls for up to 20 ms.
func noisy(rng *rand.Rand, p policy, n, k int) *history.History {
	q := p
	q.wait = func(r *rand.Rand, k int, last time.Duration) time.Duration {
		x := p.wait(r, k, last)
		if r.IntN(10) == 0 {
			x += uniform(r, 0, 20*ms)
		}
		return x
	}
	h := herdBy(rng, q, n, k, ms)
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

// TestSpreadSimulation counts the false alarms of good policies in herds of many sizes: at α = 0.01, where they can
// be counted, no more than α allows, and none at the real level.
func TestSpreadSimulation(t *testing.T) {
	const level = 0.01
	runs := simulations(t, 40)
	for _, p := range goodPolicies {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(21, 22))
			alarms := 0
			for i := range runs {
				waves, _ := spreadWaves(noisy(rng, p, []int{20, 50, 100, 200}[i%4], 5))
				if rejected(waves, alpha) {
					t.Fatalf("herd %d: a false alarm at α = %v", i, alpha)
				}
				if rejected(waves, level) {
					alarms++
				}
			}
			t.Logf("%d false alarms in %d herds at α = %v", alarms, runs, level)
			if float64(alarms) > max(2, level*float64(runs)) {
				t.Errorf("%d of %d herds rejected at α = %v", alarms, runs, level)
			}
		})
	}
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

// TestSpreadPower counts how often broken jitter is caught, at the real level.
func TestSpreadPower(t *testing.T) {
	runs := max(20, simulations(t, 2000)/100)
	for _, b := range breakages() {
		for n, least := range b.power {
			t.Run(fmt.Sprintf("%s, %d", b.name, n), func(t *testing.T) {
				rng := rand.New(rand.NewPCG(23, 24))
				caught := 0
				for range runs {
					if waves, _ := spreadWaves(herdBy(rng, b.policy, n, 5, ms/10)); rejected(waves, alpha) {
						caught++
					}
				}
				t.Logf("caught %d of %d", caught, runs)
				if power := float64(caught) / float64(runs); power < least {
					t.Errorf("caught %d of %d herds of %d: %.3f, want %.3f", caught, runs, n, power, least)
				}
			})
		}
	}
}

// TestSpreadPowerAfterRetryAfter has herds obey a Retry-After in ways that bring them back together.
func TestSpreadPowerAfterRetryAfter(t *testing.T) {
	runs := max(10, simulations(t, 1000)/100)
	for name, wait := range map[string]func(*rand.Rand, time.Duration) time.Duration{
		"to the second":    func(_ *rand.Rand, asked time.Duration) time.Duration { return asked },
		"plus U(0, 0.1)":   func(r *rand.Rand, asked time.Duration) time.Duration { return asked + uniform(r, 0, s/10) },
		"greater of both":  func(r *rand.Rand, asked time.Duration) time.Duration { return max(asked, uniform(r, 0, 2*s)) },
		"greater of long":  func(r *rand.Rand, asked time.Duration) time.Duration { return max(asked, uniform(r, 0, 4*s)) },
		"rounded to a sec": func(r *rand.Rand, asked time.Duration) time.Duration { return (asked + uniform(r, 0, s)).Truncate(s) },
	} {
		rng := rand.New(rand.NewPCG(25, 26))
		for range runs {
			h := afterRetryAfter(200, false, func(_ int, asked time.Duration) time.Duration { return wait(rng, asked) })
			h.Declared = history.Declared{Jitter: history.JitterAdditive, JitterWidth: s / 2}
			if waves, _ := spreadWaves(h); !rejected(waves, alpha) {
				t.Errorf("%s: not caught", name)
				break
			}
		}
	}
}
