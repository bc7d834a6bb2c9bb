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
		{"constant", "1 s, no jitter", with(retry.NoJitter, s, s)},
		{"full", "full jitter from 1 s, cap 64 s", with(retry.FullJitter, s, 64*s)},
		{"decorrelated", "decorrelated from 1 s, cap 64 s", with(retry.DecorrelatedJitter, s, 64*s)},
		{"width", "spread over clients ÷ rate: U(0, 10 s)", with(retry.FullJitter, 10*s, 10*s)},
		{"full-8s", "full jitter from 1 s, cap 8 s", with(retry.FullJitter, s, 8*s)},
		{"full-18s", "full jitter from 1 s, cap 18 s", with(retry.FullJitter, s, 18*s)},
	}
}
