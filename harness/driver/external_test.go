package driver_test

import (
	"os"
	"testing"

	"github.com/retrychaos/retrychaos/harness/driver"
	"github.com/retrychaos/retrychaos/harness/driver/drivertest"
)

func TestMain(m *testing.M) {
	drivertest.Main()
	os.Exit(m.Run())
}

// TestFaults: every way to break the protocol is a fault with a clear line.
func TestFaults(t *testing.T) { driver.Faults(t, drivertest.Modes) }
