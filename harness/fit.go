package harness

import (
	"fmt"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/scenarios"
)

const (
	// maxArgument is what a system takes for one argument of a command, with room to spare: 128 KiB on Linux.
	maxArgument = 64 << 10
	// maxProcesses bounds the calls of a scenario for a client that is a process a call.
	maxProcesses = 50
	// maxRemote bounds them for a client behind a driver, which may have a thread for each.
	maxRemote = 200
)

// unfit says why a scenario cannot be run by a client in a world; "" if it can.
func unfit(c Client, s scenarios.Scenario, w world.Kind) string {
	if c.Missing != "" {
		return c.Missing
	}
	if !s.RunsIn(scenarios.World(w)) {
		return fmt.Sprintf("does not run in the %s world: %s", w, s.Why)
	}
	if !c.Outside() {
		return ""
	}
	if w != world.Loopback {
		return "a process cannot enter the virtual world"
	}
	if s.Server.Protocol == faults.HTTP2 {
		return "HTTP/2 without TLS is by prior knowledge, which a process would have to be told of in its own words"
	}
	if s.Meets(faults.LevelConnection) {
		return "the dials of a process cannot be broken from outside"
	}
	if s.Connection == faults.Reused {
		return "the connections of a process cannot be warmed from outside"
	}
	if s.Server.TLS && !c.trusts {
		return untrusting(c)
	}
	if s.Server.Token != scenarios.TokenNone {
		return "a process has no place for a token that changes"
	}
	n := 0
	for _, g := range s.Calls {
		n += g.Count
		switch {
		case g.Header.Get("Expect") != "":
			return "a process has to be told of the field Expect in its own words"
		case g.Stream:
			return "a body that can be read once cannot be handed to a process"
		case c.driver == nil && len(g.Payload()) > maxArgument:
			return fmt.Sprintf("a body of more than %s does not fit into a command line", faults.FormatSize(maxArgument))
		case c.driver != nil && !c.cancels && g.CancelAfter > 0:
			return fmt.Sprintf("%s has no way to cancel a call", c.Name)
		}
	}
	most := maxRemote
	if c.Declared.Process {
		most = maxProcesses
	}
	if n > most {
		return fmt.Sprintf("%d calls at once are more than this asks of a process (%d)", n, most)
	}
	return ""
}

func untrusting(c Client) string {
	if c.driver != nil {
		return fmt.Sprintf("the driver of %s does not take a certificate authority", c.Name)
	}
	return "the command has no {cacert} to trust the server by"
}
