package cli

import (
	"flag"
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
