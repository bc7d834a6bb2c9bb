package herd

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

// realCap bounds the real time of one run.
const realCap = 10 * time.Minute

// A Setting is a server, what happens to it, and the load.
type Setting struct {
	Name      string
	Capacity  scenarios.Capacity
	Incidents []scenarios.Incident
	Clients   int           // closed herd: so many calls at the start, each with a client of its own; 0: open-loop load
	Load      float64       // open-loop: calls a second as a part of the server's rate, Poisson
	For       time.Duration // open-loop: how long calls start
	Timeout   time.Duration // after which a client gives an attempt up
	// HeaderTimeout is the ResponseHeaderTimeout of the transport that the client is given; 0: none.
	HeaderTimeout time.Duration
	Attempts      int // per call at most; 0: as the policy has it
}

// Scenario is the setting as a scenario. Calls are GETs without a deadline.
func (s Setting) Scenario() (scenarios.Scenario, error) {
	g := scenarios.Group{Method: "GET", Deadline: scenarios.NoDeadline, Count: s.Clients, Fleet: true}
	if s.Clients == 0 {
		rate := s.Load * s.Capacity.Rate()
		if !(rate > 0) || s.For <= 0 {
			return scenarios.Scenario{}, errors.New("a herd needs clients, or a load and how long it lasts")
		}
		g.Every = time.Duration(float64(time.Second) / rate)
		g.Count = int(math.Round(rate * s.For.Seconds()))
		g.Arrivals, g.Fleet = scenarios.Poisson, false
	}
	return scenarios.Validate(scenarios.Scenario{
		Name: "herd/" + s.Name, Summary: "Made by retrychaos herd.", Rule: "load.amplification", Source: "retrychaos herd",
		Worlds: []scenarios.World{scenarios.Virtual}, Why: "the server's rate must not depend on the machine",
		Server: scenarios.Server{Capacity: &s.Capacity, Incidents: s.Incidents},
		Calls:  []scenarios.Group{g},
	})
}

// A Run is one client in one setting with one seed.
type Run struct {
	Setting Setting
	Client  string
	Seed    uint64
	Load    history.Load
	Verdict check.Verdict // of load.amplification
	Waves   []Wave
	Took    time.Duration // on the world's clock, until the last call was over
	Real    time.Duration
}

// A Wave is how long the calls waited before their k-th retry.
type Wave struct {
	K    int
	Gaps []time.Duration
}

// Do runs the client in the setting, in virtual time. t is needed for the bubble and is not failed.
func Do(t *testing.T, c harness.Client, s Setting, seed uint64) (Run, error) {
	scenario, err := s.Scenario()
	if err != nil {
		return Run{}, err
	}
	r := harness.Runner{Seed: seed, RealCap: realCap, AttemptCap: max(64, s.Attempts), HeaderTimeout: s.HeaderTimeout}
	res := r.One(t, c, scenario)
	if res.History == nil { // not run: too many for the memory that there is, or a process
		return Run{}, fmt.Errorf("%s, %s: %s", s.Name, c.Name, res.Reason)
	}
	if len(res.Findings) > 0 {
		f := res.Findings[0]
		return Run{}, fmt.Errorf("%s, %s, seed %d: the harness: %s: %s", s.Name, c.Name, seed, f.Kind, f.Text)
	}
	run := Run{Setting: s, Client: c.Name, Seed: seed, Took: res.Simulated, Real: res.Real}
	run.Load, _ = res.History.Load()
	for _, v := range res.Verdicts {
		if v.Check == "load.amplification" {
			run.Verdict = v
		}
	}
	for _, w := range res.History.Waves() {
		wave := Wave{K: w.K}
		for _, g := range w.Gaps {
			wave.Gaps = append(wave.Gaps, g.Len)
		}
		run.Waves = append(run.Waves, wave)
	}
	return run, nil
}

// A Row sums up the runs of one client in one setting with several seeds.
type Row struct {
	Client    string
	Setting   string
	Runs      int
	Recovered int           // of the runs
	Took      time.Duration // mean time to recover, of those that did
	After     float64       // mean attempts a call from the trigger on
	// AfterRecovered and AfterCollapsed are the same of the runs that recovered, and of the others; 0 where there are none.
	AfterRecovered, AfterCollapsed float64
	Peak                           float64       // mean of the largest attempts a second
	Good                           float64       // mean share of calls that succeeded
	Wasted                         float64       // mean share of the work
	Failed                         int           // runs that load.amplification does not let pass: the clients kept the server down, or amplified too much
	Done                           time.Duration // mean time until the last call was over
}

// Sum sums up runs of one client in one setting.
func Sum(runs []Run) Row {
	row := Row{Runs: len(runs)}
	for _, r := range runs {
		row.Client, row.Setting = r.Client, r.Setting.Name
		if r.Load.Recovery == history.Recovered {
			row.Recovered++
			row.Took += r.Load.Took
			row.AfterRecovered += r.Load.After
		} else {
			row.AfterCollapsed += r.Load.After
		}
		if r.Verdict.Status == check.Fail {
			row.Failed++
		}
		n := float64(len(runs))
		row.After += r.Load.After / n
		row.Peak += r.Load.PeakRate / n
		good := 0
		for _, s := range r.Load.Seconds {
			good += s.Good
		}
		row.Good += float64(good) / float64(r.Load.Calls) / n
		if r.Load.Worked > 0 {
			row.Wasted += r.Load.Wasted.Seconds() / r.Load.Worked.Seconds() / n
		}
		row.Done += r.Took / time.Duration(len(runs))
	}
	if row.Recovered > 0 {
		row.Took /= time.Duration(row.Recovered)
		row.AfterRecovered /= float64(row.Recovered)
	}
	row.AfterCollapsed /= float64(max(1, row.Runs-row.Recovered))
	return row
}
