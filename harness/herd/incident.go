package herd

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/internal/nearest"
	"github.com/retrychaos/retrychaos/scenarios"
)

// ParseIncident reads an incident as flags have it: what it does and its parameters, as in
// "stall at=60s for=5s" or "restart at=60s for=2s factor=3 count=100". Whether they make sense says
// scenarios.Validate.
func ParseIncident(text string) (scenarios.Incident, error) {
	words := strings.Fields(text)
	if len(words) == 0 {
		return scenarios.Incident{}, fmt.Errorf("an incident is written like \"stall at=60s for=5s\"")
	}
	i := scenarios.Incident{Do: scenarios.Trigger(words[0])}
	known := []string{"at", "for", "factor", "count"}
	for _, w := range words[1:] {
		name, value, ok := strings.Cut(w, "=")
		var err error
		switch {
		case !ok:
			return i, fmt.Errorf("incident %q: %q is no parameter; write it like at=60s", text, w)
		case name == "at":
			i.At, err = time.ParseDuration(value)
		case name == "for":
			i.For, err = time.ParseDuration(value)
		case name == "factor":
			i.Factor, err = strconv.ParseFloat(value, 64)
		case name == "count":
			i.Count, err = strconv.Atoi(value)
		default:
			return i, fmt.Errorf("incident %q: unknown parameter %q%s", text, name, nearest.Hint(name, known))
		}
		if err != nil {
			return i, fmt.Errorf("incident %q: %s=%q is no value: %w", text, name, value, err)
		}
	}
	return i, nil
}
