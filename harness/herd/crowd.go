package herd

import (
	"math"
	"time"

	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/scenarios"
)

// Crowd is a thousand clients that fail together, at a server that does 100 attempts a second, and go on until they
// get through. After 40 attempts each, one that has not is given up.
func Crowd(queue int) Setting {
	return Setting{
		Name: "crowd", Clients: 1000, Timeout: time.Second, Attempts: 40,
		Capacity:  scenarios.Capacity{Workers: 10, Service: 100 * time.Millisecond, Queue: queue},
		Incidents: []scenarios.Incident{{For: 10 * time.Millisecond, Do: scenarios.Refuse}},
	}
}

// CrowdPolicies are waits for a crowd.
func CrowdPolicies() []Policy {
	with := func(j retry.Jitter, base, limit time.Duration) retry.Policy {
		return retry.Policy{BaseDelay: base, MaxDelay: limit, Jitter: j, MaxAttempts: math.MaxInt32, Budget: retry.NoBudget()}
	}
	const s = time.Second
	return []Policy{
		{Name: "constant", Doc: "1 s, no jitter", retry: with(retry.NoJitter, s, s)},
		{Name: "full", Doc: "full jitter from 1 s, cap 64 s", retry: with(retry.FullJitter, s, 64*s)},
		{Name: "decorrelated", Doc: "decorrelated from 1 s, cap 64 s", retry: with(retry.DecorrelatedJitter, s, 64*s)},
		{Name: "width", Doc: "spread over clients ÷ rate: U(0, 10 s)", retry: with(retry.FullJitter, 10*s, 10*s)},
		{Name: "full-8s", Doc: "full jitter from 1 s, cap 8 s", retry: with(retry.FullJitter, s, 8*s)},
		{Name: "full-18s", Doc: "full jitter from 1 s, cap 18 s", retry: with(retry.FullJitter, s, 18*s)},
	}
}
