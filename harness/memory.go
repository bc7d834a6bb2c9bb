package harness

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/scenarios"
)

// What a run was measured to need at its peak, garbage included: by client instance, with and without an idle
// connection, and by call with its usual handful of attempts in the history. TestScale measures it.
const (
	perInstance     = 90 << 10
	perLeanInstance = 26 << 10
	perCall         = 8 << 10
)

// needs estimates the memory that a scenario takes, in bytes.
func needs(s scenarios.Scenario) int64 {
	calls := 0
	for _, g := range s.Calls {
		calls += g.Count
	}
	each := int64(perInstance)
	if lean(s) {
		each = perLeanInstance
	}
	return int64(instances(s))*each + int64(calls)*perCall
}

// tooLarge says why a scenario will not fit into memory; "" if it will, or that cannot be told.
func tooLarge(s scenarios.Scenario, available int64) string {
	if need := needs(s); available > 0 && need > available {
		return fmt.Sprintf("it needs about %d MiB of memory, and %d MiB are there: fewer clients, or a larger machine", need>>20, available>>20)
	}
	return ""
}

// available is how much memory this process can still get, in bytes: what the machine has, or the cgroup's limit leaves,
// whichever is less. 0 where neither can be found out.
func available() int64 {
	least := int64(math.MaxInt64)
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		for line := range strings.Lines(string(text)) {
			if f := strings.Fields(line); len(f) >= 2 && f[0] == "MemAvailable:" {
				if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
					least = min(least, n<<10)
				}
			}
		}
	}
	if limit, ok := number("/sys/fs/cgroup/memory.max"); ok {
		used, _ := number("/sys/fs/cgroup/memory.current")
		least = min(least, max(1, limit-used))
	}
	if least == math.MaxInt64 {
		return 0
	}
	return least
}

func number(path string) (int64, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n, err == nil
}

// leastRest is what a fleet of any size may take before the first collection, where there is four times as much: garbage
// that is not collected costs nothing.
const leastRest = 1 << 30

// pacedPercent is how much a large fleet's heap may grow between collections, once it is there: less than usual, as
// there are gigabytes of it.
const pacedPercent = 80

// turn is held by the lean fleet that runs. What paced changes is the whole process's, and what it found has to be put
// back; two such fleets at once would take each other's memory besides.
var turn sync.Mutex

// paced gives this process one processor, and lets its garbage collector rest while a lean fleet is made in virtual
// time, until the heap has grown by two thirds of what the run is expected to need, and by leastRest at the least: it
// would else go through all the stacks and buffers of the fleet again and again. From the first collection on it works
// by growth, as usual: at a limit that what is alive comes near to, it would do nothing else. The function that paced
// returns undoes it; until then another lean fleet waits.
func paced(s scenarios.Scenario, w world.Kind) func() {
	if w != world.Virtual || !lean(s) {
		return func() {}
	}
	turn.Lock()
	var now runtime.MemStats
	runtime.ReadMemStats(&now)
	limit := debug.SetMemoryLimit(int64(now.Sys-now.HeapReleased) + max(needs(s)*2/3, min(leastRest, available()/4)))
	percent := debug.SetGCPercent(-1)
	// In virtual time one goroutine hands on to the next; a second processor is woken at each of these handovers, mostly
	// for nothing. BenchmarkVirtualHerd has the cost.
	processors := runtime.GOMAXPROCS(1)
	var mu sync.Mutex
	over := false
	runtime.AddCleanup(new(*int), func(struct{}) {
		mu.Lock()
		defer mu.Unlock()
		if !over {
			debug.SetGCPercent(pacedPercent)
			debug.SetMemoryLimit(limit)
		}
	}, struct{}{})
	return func() {
		mu.Lock()
		defer turn.Unlock()
		defer mu.Unlock()
		over = true
		runtime.GOMAXPROCS(processors)
		debug.SetGCPercent(percent)
		debug.SetMemoryLimit(limit)
	}
}
