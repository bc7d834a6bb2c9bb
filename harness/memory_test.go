package harness

import (
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/scenarios"
)

func TestTooLargeIsRefused(t *testing.T) {
	s := scenarios.Scenario{Calls: []scenarios.Group{{Count: 100_000, Fleet: true}}}
	need := needs(s)
	if need < 2<<30 || need > 4<<30 {
		t.Errorf("a hundred thousand clients need %d MiB: TestScale measures between 2 and 4 GiB", need>>20)
	}
	if why := tooLarge(s, need-1); !strings.Contains(why, "MiB of memory") {
		t.Errorf("%q", why)
	}
	for _, enough := range []int64{need, 0} {
		if why := tooLarge(s, enough); why != "" {
			t.Errorf("with %d: %s", enough, why)
		}
	}
	shared := scenarios.Scenario{Calls: []scenarios.Group{{Count: 100_000}}}
	if lean(shared) || needs(shared) > need {
		t.Errorf("calls of one client need %d MiB", needs(shared)>>20)
	}
}

func TestAvailableMemory(t *testing.T) {
	if n := available(); n != 0 && n < 1<<20 {
		t.Errorf("%d bytes are left, and yet this runs", n)
	}
}

// Large fleets at the same time leave the process as they found it.
func TestPacedPutsBack(t *testing.T) {
	fleet := scenarios.Scenario{Calls: []scenarios.Group{{Count: 100_000, Fleet: true}}}
	settings := func() [3]int64 {
		percent := debug.SetGCPercent(100)
		debug.SetGCPercent(percent)
		return [3]int64{int64(runtime.GOMAXPROCS(0)), int64(percent), debug.SetMemoryLimit(-1)}
	}
	before := settings()
	var fleets sync.WaitGroup
	for range 4 {
		fleets.Go(func() {
			undo := paced(fleet, world.Virtual)
			if runtime.GOMAXPROCS(0) != 1 {
				t.Error("a large fleet has more than one processor")
			}
			runtime.Gosched()
			undo()
		})
	}
	fleets.Wait()
	if after := settings(); after != before {
		t.Errorf("processors, percent, limit: %v, and before %v", after, before)
	}
}

// So does one that cannot be run: the next one has its turn.
func TestPacedPutsBackAfterAPanic(t *testing.T) {
	fleet := scenarios.Scenario{Calls: []scenarios.Group{{Count: leanFleet + 1, Fleet: true}}}
	before := runtime.GOMAXPROCS(0)
	synctest.Test(t, func(t *testing.T) {
		defer func() {
			if recover() == nil {
				t.Error("a bubble in a bubble does not panic")
			}
		}()
		Runner{World: world.Virtual, RealCap: time.Second}.drive(t, newDrive(Client{}, fleet, 1))
	})
	if now := runtime.GOMAXPROCS(0); now != before {
		t.Errorf("%d processors, and before %d", now, before)
	}
	if !turn.TryLock() {
		t.Fatal("the turn is not over")
	}
	turn.Unlock()
}
