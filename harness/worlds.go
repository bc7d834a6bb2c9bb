package harness

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/world"
)

// virtual runs the scenario in a bubble with a clock of its own.
func (d *drive) virtual(t *testing.T, realCap time.Duration) {
	d.env = environment{
		kind:   world.Virtual,
		grain:  grainVirtual,
		settle: time.Minute,
		limit:  longest(d.scenario) + time.Hour,
		quiesce: func(func() int) {
			synctest.Wait()
		},
	}
	if d.scenario.Settle > 0 {
		d.env.settle = d.scenario.Settle
	}
	net := world.Memory()
	report := world.Bubble(t, realCap, func() { d.run(net) })
	if report.Abandoned {
		net.Freeze() // whatever still runs in there gets nowhere, and its clock stops
	}
	d.mu.Lock()
	if report.Returned {
		d.leaks.Goroutines = leaked(report)
	}
	d.mu.Unlock()
	stacks := strings.Join(report.Leftovers, "\n\n")
	switch {
	case report.Panic != nil:
		d.finding(history.FindingHarness, "the run panicked: %v\n%s", report.Panic, report.PanicStack)
	case report.Stuck && !report.Returned:
		d.finding(history.FindingWorldCap, "the run was still going on after %v of real time and was given up:\n%s", realCap, stacks)
	case report.Deadlock:
		d.finding(history.FindingWorldCap, "everything in the run is blocked for ever:\n%s", stacks)
	}
}

// leaked lists the goroutines that outlived the run, and the world that they lived in.
func leaked(report world.BubbleReport) []string {
	list := append([]string(nil), report.Leftovers...)
	for _, l := range report.Lingered {
		list = append(list, "ended by itself after "+l.Within.String()+":\n"+l.Stack)
	}
	return list
}

// loopback runs the scenario on TCP and the real clock.
func (d *drive) loopback(realCap time.Duration) {
	grain := grainLoopback
	if d.client.Declared.Outside() {
		grain = grainProcess
	}
	d.env = environment{
		kind:   world.Loopback,
		grain:  grain,
		settle: d.scenario.Settle,
		limit:  min(longest(d.scenario)+5*time.Second, realCap),
		quiesce: func(open func() int) {
			// Connections are closed by goroutines of net/http; they get a moment, and no more.
			for wait := time.Millisecond; open() > 0 && wait < time.Second; wait *= 2 {
				time.Sleep(wait)
			}
		},
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		d.watchClock(stop)
	}()
	d.run(world.TCP())
	close(stop)
	<-stopped
}

// watchClock measures how late this process is for its own timers: on a busy machine everybody is.
func (d *drive) watchClock(stop <-chan struct{}) {
	const every = 50 * time.Millisecond
	timer := time.NewTimer(every)
	defer timer.Stop()
	due := time.Now().Add(every)
	for {
		select {
		case <-stop:
			return
		case <-timer.C:
			late := time.Since(due)
			d.mu.Lock()
			d.lateness = max(d.lateness, late)
			d.mu.Unlock()
			due = time.Now().Add(every)
			timer.Reset(every)
		}
	}
}
