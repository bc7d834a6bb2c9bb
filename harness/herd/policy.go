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
}

// immediately is the shortest wait that package retry has.
const immediately = time.Nanosecond

// Policies returns the presets, all of package retry. With four attempts, as the tables here are about what the
// waits do, and not how many there are.
func Policies() []Policy {
	const attempts = 4
	all := []Policy{
		{"none", "no retries", retry.Policy{MaxAttempts: 1}},
		{"immediate", "at once", retry.Policy{BaseDelay: immediately, MaxDelay: immediately, Jitter: retry.NoJitter}},
		{"exponential", "1, 2, 4 s, no jitter", retry.Policy{Jitter: retry.NoJitter}},
		{"full", "full jitter U(0, 2^k)", retry.Policy{}},
		{"additive", "2^k + U(0, 0.5)", retry.AdditivePreset()},
		{"wide", "full jitter over 10·2^k s", retry.Policy{BaseDelay: 10 * time.Second, MaxDelay: time.Hour}},
		{"equal", "equal jitter", retry.Policy{Jitter: retry.EqualJitter}},
		{"decorrelated", "decorrelated jitter", retry.Policy{Jitter: retry.DecorrelatedJitter}},
		{"success-budget", "full jitter + budget 10 % funded by successes", retry.Policy{Budget: retry.Budget{Capacity: 10, Cost: 1, PerSuccess: 0.1}}},
		{"request-budget", "full jitter + budget 10 % funded by requests", retry.Policy{Budget: retry.RequestBudget()}},
		{"grpc-budget", "full jitter + gRPC throttle", retry.Policy{Budget: retry.GRPCBudget()}},
		{"adaptive-budget", "full jitter + adaptive throttling of retries", retry.Policy{Budget: retry.AdaptiveBudget()}},
		{"default", "the default: full jitter, " + retry.DefaultBudget().String(), retry.Policy{Budget: retry.DefaultBudget()}},
	}
	for i := range all {
		p := &all[i].retry
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
	return harness.Bundled(p.Name, c)
}
