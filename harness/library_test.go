package harness_test

import (
	"slices"
	"testing"

	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

// Scenarios stand below the checks and the history, and know their words as lists of their own.
func TestScenariosKnowTheWords(t *testing.T) {
	var ids []string
	for _, c := range check.All() {
		ids = append(ids, c.ID)
	}
	known := scenarios.RuleIDs()
	slices.Sort(ids)
	slices.Sort(known)
	if !slices.Equal(ids, known) {
		t.Errorf("checks %v\nscenarios know %v", ids, known)
	}
	traits := []string{
		history.TraitCanceled, history.TraitDeadline, history.TraitTimeout, history.TraitReset, history.TraitRefused,
		history.TraitEOF, history.TraitUnexpectedEOF, history.TraitDecoding, history.TraitNotSent,
		history.TraitDNS, history.TraitTLS, history.TraitCertificate,
	}
	words := scenarios.Traits()
	slices.Sort(traits)
	slices.Sort(words)
	if !slices.Equal(traits, words) {
		t.Errorf("traits %v\nscenarios know %v", traits, words)
	}
}
