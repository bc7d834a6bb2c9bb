// Package herd measures what many clients do to one server: how policies fare in an outage, what spreads a herd, and
// whether the figures agree with published ones. It runs real clients, the bundled one above all, over the virtual
// network of package harness/world.
package herd

import (
	"fmt"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/internal/nearest"
	"github.com/retrychaos/retrychaos/retry"
)

// A Policy is a way to retry that can be put into a herd.
type Policy struct {
	Name  string // a word, for flags and tables
	Doc   string // how it waits, in a few words
	retry retry.Policy
	twice bool // below a second layer that retries as well
}

// immediately is the shortest wait that package retry has.
const immediately = time.Nanosecond

// Policies returns the presets, all of package retry. With four attempts, as the tables here are about what the
// waits do, and not how many there are.
func Policies() []Policy {
	const attempts = 4
	all := []Policy{
		{Name: "none", Doc: "no retries", retry: retry.Policy{MaxAttempts: 1}},
		{Name: "immediate", Doc: "at once", retry: retry.Policy{BaseDelay: immediately, MaxDelay: immediately, Jitter: retry.NoJitter}},
		{Name: "exponential", Doc: "1, 2, 4 s, no jitter", retry: retry.Policy{Jitter: retry.NoJitter}},
		{Name: "full", Doc: "full jitter U(0, 2^k)", retry: retry.Policy{}},
		{Name: "additive", Doc: "2^k + U(0, 0.5)", retry: retry.AdditivePreset()},
		{Name: "wide", Doc: "full jitter over 10·2^k s", retry: retry.Policy{BaseDelay: 10 * time.Second, MaxDelay: time.Hour}},
		{Name: "equal", Doc: "equal jitter", retry: retry.Policy{Jitter: retry.EqualJitter}},
		{Name: "decorrelated", Doc: "decorrelated jitter", retry: retry.Policy{Jitter: retry.DecorrelatedJitter}},
		{Name: "success-budget", Doc: "full jitter + budget 10 % funded by successes", retry: retry.Policy{Budget: retry.Budget{Capacity: 10, Cost: 1, PerSuccess: 0.1}}},
		{Name: "request-budget", Doc: "full jitter + budget 10 % funded by requests", retry: retry.Policy{Budget: retry.RequestBudget()}},
		{Name: "grpc-budget", Doc: "full jitter + gRPC throttle", retry: retry.Policy{Budget: retry.GRPCBudget()}},
		{Name: "adaptive-budget", Doc: "full jitter + adaptive throttling of retries", retry: retry.Policy{Budget: retry.AdaptiveBudget()}},
		{Name: "layers", Doc: "two layers of full jitter, each with as many attempts", retry: retry.Policy{}},
		{Name: "default", Doc: "the default: full jitter, " + retry.DefaultBudget().String(), retry: retry.Policy{Budget: retry.DefaultBudget()}},
	}
	for i := range all {
		p := &all[i].retry
		all[i].twice = all[i].Name == "layers"
		if p.MaxAttempts == 0 {
			p.MaxAttempts = attempts
		}
		if p.Budget == (retry.Budget{}) {
			p.Budget = retry.NoBudget()
		}
	}
	return all
}

// FindPolicies returns the presets with those names, or an error with the nearest name.
func FindPolicies(names ...string) ([]Policy, error) {
	var out []Policy
	var known []string
	for _, p := range Policies() {
		known = append(known, p.Name)
	}
next:
	for _, name := range names {
		for _, p := range Policies() {
			if p.Name == name {
				out = append(out, p)
				continue next
			}
		}
		return nil, fmt.Errorf("unknown policy %q; there is %s%s", name, strings.Join(known, ", "), nearest.Hint(name, known))
	}
	return out, nil
}

// Client is the bundled client with the policy, giving up an attempt after timeout. With attempts above 0 it makes so
// many at most instead of the preset's.
func (p Policy) Client(timeout time.Duration, attempts int) harness.Client {
	c := p.retry
	c.AttemptTimeout = timeout
	if attempts > 0 && c.MaxAttempts > 1 {
		c.MaxAttempts = attempts
	}
	if p.twice {
		return layered(p.Name, c)
	}
	return harness.Bundled(p.Name, c)
}
