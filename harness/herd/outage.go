package herd

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/scenarios"
)

// The outages of the table: a server that does 100 attempts a second and holds 500, whose clients give up after 1 s.
// The trigger comes after a minute and the load goes on for 340 s. Short has the same with a trigger at 10 s and
// half a minute of load after it, for tests.
func Outages(short bool) []Setting {
	at, until := 60*time.Second, 400*time.Second
	if short {
		at, until = 10*time.Second, 47*time.Second
	}
	server := scenarios.Capacity{Workers: 10, Service: 100 * time.Millisecond, Queue: 500}
	return []Setting{
		{
			Name: "stall", Capacity: server, Load: 0.7, For: until, Timeout: time.Second,
			Incidents: []scenarios.Incident{{At: at, For: 5 * time.Second, Do: scenarios.Stall}},
		},
		{
			Name: "refuse", Capacity: server, Load: 0.5, For: until, Timeout: time.Second,
			Incidents: []scenarios.Incident{{At: at, For: 10 * time.Second, Do: scenarios.Refuse}},
		},
	}
}

// OutagePolicies are the policies of the table, by the names that OutageReference has for them. In the reference k is the
// number of the retry, from 1: full jitter is over 2, 4 and 8 s, and only the row without jitter waits for 1, 2 and 4 s.
// Three are not in it: full jitter over 1, 2 and 4 s, as package retry draws by default; that below a second layer which
// retries as well; and that with the default budget.
func OutagePolicies() []Policy {
	const s = time.Second
	full := func(base time.Duration, b retry.Budget) retry.Policy {
		return retry.Policy{MaxAttempts: 4, BaseDelay: base, MaxDelay: time.Hour, Budget: b}
	}
	unlimited := retry.NoBudget()
	additive := full(2*s, unlimited)
	additive.Jitter, additive.JitterWidth = retry.AdditiveJitter, s/2
	list := []Policy{
		{Name: "full", Doc: "full jitter U(0, 2^k)", retry: full(2*s, unlimited)},
		{Name: "additive", Doc: "2^k + U(0, 0.5)", retry: additive},
		{Name: "wide", Doc: "full jitter over 10·2^k s", retry: full(20*s, unlimited)},
		{Name: "success-budget", Doc: "full jitter + budget 10 % funded by successes", retry: full(2*s, retry.Budget{Capacity: 10, Cost: 1, PerSuccess: 0.1})},
		{Name: "request-budget", Doc: "full jitter + budget 10 % funded by requests", retry: full(2*s, retry.RequestBudget())},
		{Name: "grpc-budget", Doc: "full jitter + gRPC throttle (10 tokens, 0.1 a success)", retry: full(2*s, retry.GRPCBudget())},
		{Name: "adaptive-budget", Doc: "full jitter + adaptive throttling of retries (SRE book, K = 2)", retry: full(2*s, retry.AdaptiveBudget())},
		{Name: "full-1s", Doc: "full jitter over 1, 2, 4 s", retry: full(s, unlimited)},
		{Name: "default", Doc: "full jitter over 1, 2, 4 s + the default budget (" + retry.DefaultBudget().String() + ")", retry: full(s, retry.DefaultBudget())},
	}
	for _, p := range Policies() {
		switch p.Name {
		case "none", "immediate", "exponential", "layers":
			list = append(list, p)
		}
	}
	return list
}

// findOutagePolicy returns the policy of a row.
func findOutagePolicy(name string) Policy {
	list := OutagePolicies()
	i := slices.IndexFunc(list, func(p Policy) bool { return p.Name == name })
	return list[i]
}

// An Expected is a figure of the reference: a simulation of the same model, mean of 20 seeds. Rows that it does not have
// are Measured only.
type Expected struct {
	Policy  string
	Setting string
	// Recovers is how many of ReferenceRuns recover.
	Recovers int
	Attempts float64 // per call from the trigger on
	Measured bool    // there is no reference
}

// ReferenceRuns is how many runs the reference is the mean of.
const ReferenceRuns = 20

// OutageReference holds the figures that the outages must agree with; see OutageRow.Miss.
func OutageReference() []Expected {
	row := func(policy, setting string, recovers int, attempts float64) Expected {
		return Expected{Policy: policy, Setting: setting, Recovers: recovers, Attempts: attempts}
	}
	list := []Expected{
		row("none", "stall", 20, 1.00), row("none", "refuse", 20, 1.00),
		row("immediate", "stall", 0, 3.99), row("immediate", "refuse", 20, 1.09),
		row("exponential", "stall", 0, 3.96), row("exponential", "refuse", 0, 3.94),
		row("full", "stall", 0, 3.96), row("full", "refuse", 7, 2.94),
		row("additive", "stall", 0, 3.92), row("additive", "refuse", 4, 3.32),
		row("wide", "stall", 0, 3.67), row("wide", "refuse", 20, 1.04),
		row("success-budget", "stall", 20, 1.00), row("success-budget", "refuse", 20, 1.01),
		row("request-budget", "stall", 20, 1.01), row("request-budget", "refuse", 20, 1.01),
		row("grpc-budget", "stall", 20, 1.00), row("grpc-budget", "refuse", 20, 1.00),
		row("adaptive-budget", "stall", 20, 1.11), row("adaptive-budget", "refuse", 20, 1.07),
	}
	for _, policy := range []string{"full-1s", "layers", "default"} {
		for _, setting := range []string{"stall", "refuse"} {
			list = append(list, Expected{Policy: policy, Setting: setting, Measured: true})
		}
	}
	return list
}

// Mixed reports whether the reference recovers in some runs and not in others.
func (e Expected) Mixed() bool { return e.Recovers > 0 && e.Recovers < ReferenceRuns }

// AttemptsMargin is how far attempts a call may be from the reference.
const AttemptsMargin = 0.10

// Miss says how the row disagrees with its reference; "" where it does not.
//
// Where all runs of the reference recover, or none, all of these must or none. Where some do, chance decides a run, and
// the mean hangs on how often it went which way: the numbers of runs that recover are held against each other by
// Fisher's exact test, at 1 %, and the mean is that of the two kinds of runs, weighted as the reference has them.
func (r OutageRow) Miss() string {
	w := r.Want
	name := w.Policy + ", " + w.Setting
	switch {
	case w.Measured:
		return ""
	case !w.Mixed() && (r.Recovered != r.Runs*w.Recovers/ReferenceRuns):
		return fmt.Sprintf("%s: recovers %s, want %d of %d", name, r.Verdict(), w.Recovers, ReferenceRuns)
	case w.Mixed() && fisher(r.Recovered, r.Runs, w.Recovers, ReferenceRuns) < 0.01:
		return fmt.Sprintf("%s: recovers in %d of %d, want %d of %d but for chance", name, r.Recovered, r.Runs, w.Recovers, ReferenceRuns)
	}
	got, ok := r.weighted()
	if ok && off(got, w.Attempts) > AttemptsMargin {
		return fmt.Sprintf("%s: %.2f attempts a call, want %.2f ± %.0f %%", name, got, w.Attempts, 100*AttemptsMargin)
	}
	return ""
}

// weighted returns attempts a call as they would be if as large a part of the runs had recovered as in the reference;
// false where no run shows one of the two kinds.
func (r OutageRow) weighted() (float64, bool) {
	if !r.Want.Mixed() {
		return r.After, true
	}
	part := float64(r.Want.Recovers) / ReferenceRuns
	return part*r.AfterRecovered + (1-part)*r.AfterCollapsed, r.Recovered > 0 && r.Recovered < r.Runs
}

// fisher returns the two-sided p-value of Fisher's exact test for a of n against b of m.
func fisher(a, n, b, m int) float64 {
	logChoose := func(n, k int) float64 {
		x, _ := math.Lgamma(float64(n + 1))
		y, _ := math.Lgamma(float64(k + 1))
		z, _ := math.Lgamma(float64(n - k + 1))
		return x - y - z
	}
	prob := func(i int) float64 {
		return math.Exp(logChoose(n, i) + logChoose(m, a+b-i) - logChoose(n+m, a+b))
	}
	seen, sum := prob(a), 0.0
	for i := max(0, a+b-m); i <= min(n, a+b); i++ {
		if p := prob(i); p <= seen*(1+1e-9) {
			sum += p
		}
	}
	return sum
}
