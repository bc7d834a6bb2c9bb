package reports

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/scenarios"
)

// A Shard says which part of a run a report holds.
type Shard struct {
	Index int `json:"index"` // from 1
	Total int `json:"total"`
	// Plan is a hash of all that the shards of one run have in common; see Plan.
	Plan string `json:"plan"`
	// Results is how many this shard has to hold, and All how many all of them have together.
	Results int `json:"results"`
	All     int `json:"all"`
}

// Plan hashes what a run was to do: version of retrychaos, seed, world, level, clients with their versions and
// declarations, and the scenarios with all that they say. Shards are of one run if their plans are equal.
func Plan(run Run, list []scenarios.Scenario) (string, error) {
	plan := struct {
		Schema, Version string
		Seed            uint64
		World           string
		Level           check.Level
		Clients         []ClientInfo
		Scenarios       []string
	}{Schema: Schema, Version: run.Version, Seed: run.Seed, World: run.World, Level: run.Level, Clients: run.Clients}
	for _, s := range list {
		text, err := scenarios.Format(s)
		if err != nil {
			return "", fmt.Errorf("plan: %w", err)
		}
		plan.Scenarios = append(plan.Scenarios, string(text))
	}
	slices.Sort(plan.Scenarios)
	data, err := json.Marshal(plan)
	if err != nil {
		return "", fmt.Errorf("plan: %w", err)
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:]), nil
}

// A Part is the report of a shard, and the name of its file, for errors.
type Part struct {
	Name   string
	Report *Report
}

// Merge makes one report of the shards of one run. It equals the report of the run without shards but for the
// times, as far as the clients do the same in both. It refuses what is no shard, shards of another run, shards that
// are given twice, that are missing, or that do not hold what they should; the error names each with its file.
func Merge(parts []Part) (*Report, error) {
	if len(parts) == 0 {
		return nil, errors.New("no shard was given")
	}
	if err := mergeable(parts); err != nil {
		return nil, err
	}
	first := parts[0].Report
	run := Run{Version: first.Tool.Version, Started: first.Started, Seed: first.Seed, World: first.World, Level: first.Level, Clients: first.Clients}
	var results []harness.Result
	var spent time.Duration
	for _, p := range parts {
		if p.Report.Started.Before(run.Started) {
			run.Started = p.Report.Started
		}
		spent += p.Report.Real
		results = append(results, p.Report.Results...)
	}
	run.Real = spent
	merged := New(run, results)
	merged.Tool = first.Tool
	return merged, nil
}

func mergeable(parts []Part) error {
	var errs []error
	bad := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	var first *Part // the first that is a shard: what the others are held against
	given := map[int]string{}
	seen := map[[3]string]string{}
	for i := range parts {
		p := &parts[i]
		s := p.Report.Shard
		if s == nil {
			bad("%s is no shard: it was made without --shard", p.Name)
			continue
		}
		if s.Total < 1 || s.Index < 1 || s.Index > s.Total {
			bad("%s says that it is shard %d of %d, and there is no such one", p.Name, s.Index, s.Total)
			continue
		}
		if first == nil {
			first = p
		}
		if why := foreign(first.Report, p.Report); why != "" {
			bad("%s is a shard of another run than %s: %s", p.Name, first.Name, why)
			continue
		}
		if other, twice := given[s.Index]; twice {
			bad("shard %d of %d is given twice: %s and %s", s.Index, s.Total, other, p.Name)
			continue
		}
		given[s.Index] = p.Name
		if n := len(p.Report.Results); n != s.Results {
			bad("%s holds %s, and shard %d of %d has %d: it is not whole", p.Name, count(n, "result"), s.Index, s.Total, s.Results)
		}
		for _, r := range p.Report.Results {
			key := [3]string{r.Client, r.Scenario, r.World}
			if other, twice := seen[key]; twice {
				bad("%s and %s both hold %s of %s", other, p.Name, plain(r.Scenario), plain(r.Client))
				break
			}
			seen[key] = p.Name
		}
	}
	if first != nil {
		var missing []string
		for i := 1; i <= first.Report.Shard.Total; i++ {
			if given[i] == "" {
				missing = append(missing, fmt.Sprint(i))
			}
		}
		if len(missing) > 0 {
			bad("of %s, %s missing: give the reports of all", count(first.Report.Shard.Total, "shard"), isMissing(missing))
		} else if n := len(seen); len(errs) == 0 && n != first.Report.Shard.All {
			bad("the shards hold %s together, and the run has %d", count(n, "result"), first.Report.Shard.All)
		}
	}
	return errors.Join(errs...)
}

func isMissing(list []string) string {
	if len(list) == 1 {
		return "number " + list[0] + " is"
	}
	return "numbers " + strings.Join(list, ", ") + " are"
}

// foreign says what tells a shard's run from another; "" if they are one.
func foreign(a, b *Report) string {
	switch x, y := a.Shard, b.Shard; {
	case a.Tool.Version != b.Tool.Version:
		return fmt.Sprintf("retrychaos %s, not %s", b.Tool.Version, a.Tool.Version)
	case a.Seed != b.Seed:
		return fmt.Sprintf("seed %d, not %d", b.Seed, a.Seed)
	case a.World != b.World:
		return fmt.Sprintf("the %s world, not %s", b.World, a.World)
	case a.Level != b.Level:
		return fmt.Sprintf("level %s, not %s", b.Level, a.Level)
	case x.Total != y.Total:
		return fmt.Sprintf("it has %s, not %d", count(y.Total, "shard"), x.Total)
	case !slices.EqualFunc(a.Clients, b.Clients, func(p, q ClientInfo) bool { return p.Name == q.Name && p.Version == q.Version }):
		return "other clients, or other versions of them"
	case x.Plan != y.Plan || x.All != y.All:
		return "its scenarios or the declarations of its clients differ"
	}
	return ""
}
