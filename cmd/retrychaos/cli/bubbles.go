package cli

import (
	"flag"
	"runtime"
	"testing"
)

// bubbles returns a *testing.T outside go test, for the virtual world: testing/synctest makes its bubbles
// on one. testing.Main is there for programs that stand in for go test; it never comes back here, since
// its one test holds on to the T until the process ends. It must be called once at most.
func bubbles() *testing.T {
	testing.Init()
	// Parsed with no arguments: the command line is ours, and M.Run would otherwise take it for its own.
	_ = flag.CommandLine.Parse(nil)
	got := make(chan *testing.T)
	hold := func(t *testing.T) {
		got <- t
		select {}
	}
	go testing.Main(
		func(string, string) (bool, error) { return true, nil },
		[]testing.InternalTest{{Name: "retrychaos", F: hold}}, nil, nil)
	return <-got
}

// idleHeap is what the collector takes for alive while bubbles run. It is never written to, and so takes no memory.
const idleHeap = 128 << 20

// oneProcessor makes this process as fast as it can be for bubbles that run one after the other, until undo. In
// virtual time hardly any two things happen at the same instant: one goroutine hands on to the next, and with a second
// processor most of these handovers wake it up for nothing. The heap of a scenario is small, and would be collected
// again and again. Together that is a quarter of the library's time.
func oneProcessor() (undo func()) {
	n := runtime.GOMAXPROCS(1)
	idle := make([]byte, idleHeap)
	return func() {
		runtime.GOMAXPROCS(n)
		runtime.KeepAlive(idle)
	}
}
