package cli

import (
	"fmt"
	"slices"

	"github.com/retrychaos/retrychaos/scenarios"
)

// resolveKnown reads the known failures and gives them to the clients. The file may speak of clients and
// scenarios that this run leaves out, but not of what there is not.
func (f *runFlags) resolveKnown() error {
	names := scenarios.Names{}
	for _, k := range f.known {
		names.Clients = append(names.Clients, k.Name)
	}
	for _, c := range f.tested {
		names.Clients = append(names.Clients, c.Name)
	}
	library, err := scenarios.Library()
	if err != nil {
		return err
	}
	names.Scenarios = slices.Concat(library, f.scenarios)
	list, err := scenarios.LoadKnownFailuresFile(f.knownFile, names)
	if err != nil {
		return fmt.Errorf("--known-failing: %w", err)
	}
	for i := range f.tested {
		f.tested[i].Known = append(f.tested[i].Known, list...)
	}
	return nil
}
