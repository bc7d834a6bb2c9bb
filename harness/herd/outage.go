package herd

import (
	"time"

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

// An Expected is a figure of the reference: a simulation of the same model, mean of 20 seeds.
type Expected struct {
	Policy  string
	Setting string
	// Recovers is how many of 20 runs recover.
	Recovers int
	Attempts float64 // per call from the trigger on
}

// OutageReference holds the figures that the outages must agree with: recovery in all runs or in none, and attempts
// a call within 10 %.
func OutageReference() []Expected {
	return []Expected{
		{"none", "stall", 20, 1.00}, {"none", "refuse", 20, 1.00},
		{"immediate", "stall", 0, 3.99}, {"immediate", "refuse", 20, 1.09},
		{"exponential", "stall", 0, 3.96}, {"exponential", "refuse", 0, 3.94},
		{"full", "stall", 0, 3.96}, {"full", "refuse", 7, 2.94},
		{"additive", "stall", 0, 3.92}, {"additive", "refuse", 4, 3.32},
		{"wide", "stall", 0, 3.67}, {"wide", "refuse", 20, 1.04},
		{"success-budget", "stall", 20, 1.00}, {"success-budget", "refuse", 20, 1.01},
		{"request-budget", "stall", 20, 1.01}, {"request-budget", "refuse", 20, 1.01},
		{"grpc-budget", "stall", 20, 1.00}, {"grpc-budget", "refuse", 20, 1.00},
	}
}
