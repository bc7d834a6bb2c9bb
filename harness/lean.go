package harness

import (
	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/scenarios"
)

const (
	// leanFleet is how many clients may keep a connection while they wait. An idle connection costs about 45 KiB:
	// three goroutines, and four buffers of which net/http has two and a size for one. In a larger fleet a client's
	// connection is closed when its response has been read, and the next attempt opens another.
	leanFleet = 5000
	// leanBuffer is the size of a connection's buffers on the client's side in such a fleet.
	leanBuffer = 1 << 10
)

// lean reports whether the clients of s are too many to keep idle connections.
func lean(s scenarios.Scenario) bool {
	return s.Connection != faults.Reused && instances(s) > leanFleet
}

// instances is how many client instances the scenario needs.
func instances(s scenarios.Scenario) int {
	n := 0
	for _, g := range s.Calls {
		if g.Fleet {
			n += g.Count
		} else {
			n = max(n, 1)
		}
	}
	return n
}
