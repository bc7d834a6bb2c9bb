// Package reports holds the result model, with a versioned JSON form, and its writers: one file a format.
//
// A report never runs anything and never judges: it counts, groups and tells what the harness found. The
// data's way is scenario → run → history → verdicts → report.
//
// Client names, errors and everything else that came from the thing under test is hostile text. Writers
// escape it for the place that it goes to: no control character, escape sequence or markup of a client
// reaches a terminal, an XML reader or a page.
package reports

import (
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
)

// Schema names the JSON form of a Report. Fields may be added under the same name; a change that an older
// reader would misread gets a new one.
const Schema = "retrychaos.report/v1"

// A Report is the results of scenarios × clients. New makes one; it is read-only afterwards and then safe
// for concurrent use.
type Report struct {
	Schema    string           `json:"schema"`
	Tool      Tool             `json:"tool"`
	Started   time.Time        `json:"started"`
	Seed      uint64           `json:"seed"`
	World     string           `json:"world"`
	Level     check.Level      `json:"level"` // the least level whose findings count
	Clients   []ClientInfo     `json:"clients"`
	Shard     *Shard           `json:"shard,omitempty"` // of a run in parts, which part this is
	Simulated time.Duration    `json:"simulated_ns"`    // the sum of the worlds' clocks
	Real      time.Duration    `json:"real_ns"`         // wall time of the whole run
	Results   []harness.Result `json:"results"`         // last, so that a reader sees the head first
}

// Tool is what made the report.
type Tool struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Go      string `json:"go"`
}

// ClientInfo is one client of a report.
type ClientInfo struct {
	Name     string           `json:"name"`
	Version  string           `json:"version,omitempty"`
	Policy   string           `json:"policy,omitempty"` // the effective policy in words, where the client tells
	Declared history.Declared `json:"declared"`
	// Repro is the start of the command that runs this client, quoted for a POSIX shell (see ShellQuote):
	// retrychaos run --exec 'curl …'. Writers append scenario, seed and world. Empty: retrychaos run
	// --client NAME.
	Repro string `json:"repro,omitempty"`
}

// Run is what is known of a run beside its results.
type Run struct {
	Version string // of retrychaos
	Started time.Time
	Seed    uint64
	World   string
	Level   check.Level // default SHOULD
	Clients []ClientInfo
	Real    time.Duration // wall time; 0: the sum of the results'
	Shard   *Shard        // nil: the whole
}

// New makes a report. The results may come in any order: they are copied and sorted by client, in the order
// of run.Clients, then by scenario, world and seed, so that scenarios that ran side by side give one report. A
// client of a result that run.Clients lacks is added at its end.
func New(run Run, results []harness.Result) *Report {
	r := &Report{
		Schema:  Schema,
		Tool:    Tool{Name: "retrychaos", Version: run.Version, Go: runtime.Version()},
		Started: run.Started.UTC().Round(0),
		Seed:    run.Seed,
		World:   run.World,
		Level:   run.Level,
		Clients: slices.Clone(run.Clients),
		Shard:   run.Shard,
		Real:    run.Real,
		Results: slices.Clone(results),
	}
	if r.Level == "" {
		r.Level = check.Should
	}
	slices.SortStableFunc(r.Results, func(a, b harness.Result) int { return strings.Compare(a.Client, b.Client) })
	rank := map[string]int{}
	for i, c := range r.Clients {
		rank[c.Name] = i
	}
	var sum time.Duration
	for _, res := range r.Results {
		r.Simulated += res.Simulated
		sum += res.Real
		if _, ok := rank[res.Client]; !ok {
			rank[res.Client] = len(r.Clients)
			info := ClientInfo{Name: res.Client}
			if res.History != nil {
				info.Declared = res.History.Declared
			}
			r.Clients = append(r.Clients, info)
		}
	}
	if r.Real == 0 {
		r.Real = sum
	}
	slices.SortStableFunc(r.Results, func(a, b harness.Result) int {
		if d := rank[a.Client] - rank[b.Client]; d != 0 {
			return d
		}
		if d := strings.Compare(a.Scenario, b.Scenario); d != 0 {
			return d
		}
		if d := strings.Compare(a.World, b.World); d != 0 {
			return d
		}
		switch {
		case a.Seed < b.Seed:
			return -1
		case a.Seed > b.Seed:
			return 1
		}
		return 0
	})
	return r
}

// Counts is how many results ended how.
type Counts struct {
	Total, Passed, Failed, Unknown, Skipped int
}

func (c *Counts) add(s check.Status) {
	c.Total++
	switch s {
	case check.Pass:
		c.Passed++
	case check.Fail:
		c.Failed++
	case check.Skipped:
		c.Skipped++
	default:
		c.Unknown++
	}
}

// Counts counts the results at the report's level.
func (r *Report) Counts() Counts { return r.CountsAt(r.Level) }

// CountsAt counts the results at another level.
func (r *Report) CountsAt(level check.Level) Counts {
	var c Counts
	for i := range r.Results {
		c.add(StatusAt(&r.Results[i], level))
	}
	return c
}

// Worst returns the worst status of all results at the report's level: fail before unknown before pass
// before skipped. A report without results is unknown.
func (r *Report) Worst() check.Status { return r.CountsAt(r.Level).worst() }

func (c Counts) worst() check.Status {
	switch {
	case c.Failed > 0:
		return check.Fail
	case c.Unknown > 0 || c.Total == 0:
		return check.Unknown
	case c.Passed > 0:
		return check.Pass
	}
	return check.Skipped
}

// Exit statuses of a run.
const (
	ExitOK        = 0 // no finding at the level
	ExitFindings  = 1 // a client breaks a rule at the level or above
	ExitUndecided = 3 // something could not be judged, or the harness is at fault
)

// ExitCode decides how a run ends: ExitFindings if any client fails at the level or above, whatever else
// happened, for that is certain; else ExitUndecided if a verdict at the level is unknown, if the harness has
// a finding of its own, if the run was interrupted, or if nothing was judged at all (no results, or all skipped);
// else ExitOK.
func (r *Report) ExitCode(level check.Level) int {
	switch r.CountsAt(level).worst() {
	case check.Fail:
		return ExitFindings
	case check.Pass:
		if r.interrupted() == 0 {
			return ExitOK
		}
	}
	return ExitUndecided
}

// ReasonInterrupted is why a scenario was skipped that an interrupted run did not come to.
const ReasonInterrupted = "the run was interrupted before it"

// interrupted counts the results that an interrupted run did not come to.
func (r *Report) interrupted() (n int) {
	for _, res := range r.Results {
		if res.Status == check.Skipped && res.Reason == ReasonInterrupted {
			n++
		}
	}
	return n
}

// StatusAt is the status of a result when only verdicts of the level and above count, by the same rule as
// the harness's own: a fail wins, then what could not be judged (an unknown verdict, or a finding of the
// harness), then a failure that is known and accepted, which is skipped, then pass; a scenario to which no check
// applied is skipped. A status that no verdict explains holds at every level.
func StatusAt(res *harness.Result, level check.Level) check.Status {
	if len(res.Verdicts) == 0 && (len(res.Findings) == 0 || res.Status == check.Fail) {
		if !isStatus(res.Status) {
			return check.Unknown
		}
		return res.Status
	}
	var explained, passed, failed, known bool
	undecided := len(res.Findings) > 0
	for _, v := range res.Verdicts {
		explained = explained || v.Status == res.Status
		passed = passed || v.Status == check.Pass
		if !v.Level.AtLeast(level) {
			continue
		}
		failed = failed || v.Status == check.Fail
		known = known || v.Known
		undecided = undecided || v.Status == check.Unknown
	}
	switch {
	case failed || res.Status == check.Fail && !explained:
		return check.Fail
	case undecided || res.Status == check.Unknown && !explained:
		return check.Unknown
	case passed && !known:
		return check.Pass
	}
	return check.Skipped
}

// worlds are the worlds of the results, sorted; without results the one that was asked for.
func (r *Report) worlds() []string {
	var ws []string
	for _, res := range r.Results {
		if res.World != "" && !slices.Contains(ws, res.World) {
			ws = append(ws, res.World)
		}
	}
	if len(ws) == 0 && r.World != "" {
		ws = []string{r.World}
	}
	slices.Sort(ws)
	return ws
}

func (r *Report) client(name string) ClientInfo {
	for _, c := range r.Clients {
		if c.Name == name {
			return c
		}
	}
	return ClientInfo{Name: name}
}

// family is the part of a scenario's name before the slash.
func family(scenario string) string {
	f, _, _ := strings.Cut(scenario, "/")
	return f
}
