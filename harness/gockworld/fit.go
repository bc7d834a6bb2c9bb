package gockworld

import (
	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/scenarios"
)

// A NeedsWireError says why a scenario cannot be run where there is no wire of the client's own.
type NeedsWireError struct {
	Scenario string
	What     string // what needs the wire, in the scenario's own words
}

func (e *NeedsWireError) Error() string {
	return "gockworld: " + e.Scenario + " needs a wire, and gock has none: " + e.What + "; run it in the virtual or loopback world"
}

// Fit returns a *NeedsWireError for a scenario that this world refuses: one over HTTP/2, with a fault that is done
// to a connection, with connections in a certain state, or with a fleet, whose clients each have connections of their
// own. It returns nil for one that can be run.
func Fit(s scenarios.Scenario) error {
	refuse := func(what string) error { return &NeedsWireError{Scenario: s.Name, What: what} }
	if s.Server.Protocol == faults.HTTP2 {
		return refuse("protocol: " + faults.HTTP2)
	}
	if s.Connection != faults.AnyConn {
		return refuse("connection: " + string(s.Connection))
	}
	sequences := [][]faults.Fault{s.Faults}
	for _, g := range s.Calls {
		if g.Fleet {
			return refuse("the calls of " + g.Name + " are a fleet")
		}
		sequences = append(sequences, g.Faults)
	}
	for _, st := range s.Storms {
		sequences = append(sequences, []faults.Fault{st.Fault})
	}
	if s.Draw != nil {
		sequences = append(sequences, s.Draw.Faults)
	}
	for _, sequence := range sequences {
		for _, f := range sequence {
			if f.NeedsWire() {
				return refuse("the fault " + f.String())
			}
		}
	}
	return nil
}
