package cli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/semaphore"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/reports"
	"github.com/retrychaos/retrychaos/scenarios"
)

// maxCalls bounds the calls that are under way at once on loopback: more clients would disturb each other's
// clock.
const maxCalls = 2500

// large is how many calls make a scenario a herd, which is work for the machine.
const large = 100

// execute runs what is to be run. An interrupt ends it early; what was not run says so.
func (f *runFlags) execute(ctx context.Context, all []task, level check.Level, progress *reports.Progress) []harness.Result {
	runner := harness.Runner{Seed: f.seed, Level: level}
	var tasks, inBubbles []task
	for _, t := range all {
		if t.world == world.Virtual {
			inBubbles = append(inBubbles, t)
		} else {
			tasks = append(tasks, t)
		}
	}
	r := &results{runner: runner, progress: progress, lean: f.histories == historiesFailed}
	// First, since the clocks of the loopback world suffer when the machine is busy.
	if len(inBubbles) > 0 {
		r.virtual(ctx, inBubbles)
	}
	if len(tasks) > 0 {
		f.loopback(ctx, r, tasks)
	}
	r.hangUp(f.tested)
	return r.list
}

// loopback runs tasks on the real clock, side by side.
func (f *runFlags) loopback(ctx context.Context, r *results, tasks []task) {
	measuring, stop := context.WithCancel(context.Background())
	defer stop()
	pace := watchPace(measuring)
	// The small first: they wait more than they work, and go on beside the large, which there is room for only in
	// twos and threes. Of those the largest first, so that the gaps between them are filled.
	// Clients take turns, so that no process of a driver has all of its scenarios at once.
	slices.SortStableFunc(tasks, func(a, b task) int {
		x, y := a.calls(), b.calls()
		if max(x, y) < large {
			x, y = 0, 0
		} else if min(x, y) >= large {
			x, y = y, x
		}
		return cmp.Or(x-y, strings.Compare(a.scenario.Name, b.scenario.Name))
	})
	f.sideBySide(tasks, f.parallel, pace, func(t task) {
		r.add(ctx, t, func() *harness.Result { return r.one(nil, t) })
	})
	if late := r.doubtful(tasks); len(late) > 0 && ctx.Err() == nil {
		r.progress.Say(fmt.Sprintf("%s once more, fewer at a time: this machine was late for its own timers, which is no client's fault", plural(len(late), "scenario")))
		f.sideBySide(late, again+len(late)/40, pace, func(t task) {
			r.replace(r.one(nil, t))
		})
	}
}

// sideBySide runs tasks on the real clock, as many at a time as may be.
func (f *runFlags) sideBySide(tasks []task, parallel int, pace *pace, run func(task)) {
	slots := semaphore.NewWeighted(int64(parallel))
	room := semaphore.NewWeighted(maxCalls)
	var wg sync.WaitGroup
	for _, t := range tasks {
		if !t.scenario.RunsIn(scenarios.World(t.world)) {
			run(t) // says that it is skipped, at once
			continue
		}
		// No context: after an interrupt the rest is gone through quickly, and told as not run.
		share := min(t.weight(), int64(parallel))
		_ = slots.Acquire(context.Background(), share)
		n := int64(min(t.calls(), maxCalls))
		_ = room.Acquire(context.Background(), n)
		pace.step(t.calls())
		wg.Go(func() {
			defer slots.Release(share)
			defer room.Release(n)
			run(t)
		})
	}
	wg.Wait()
}

type task struct {
	client   harness.Client
	scenario scenarios.Scenario
	world    world.Kind
}

// weight is how many of the places for scenarios side by side a task takes: a process a call is heavy for the machine,
// and a driver has to do with one process for all of its calls.
func (t task) weight() int64 {
	switch {
	case t.client.Declared.Process:
		return 4
	case t.client.Outside():
		return 2
	}
	return 1
}

func (t task) calls() int {
	n := 0
	for _, g := range t.scenario.Calls {
		n += g.Count
	}
	return n
}

// results collects what is done side by side.
type results struct {
	runner   harness.Runner
	progress *reports.Progress
	mu       sync.Mutex
	list     []harness.Result
	lean     bool // histories of what passed are dropped at once
}

// one runs a task in its world.
func (r *results) one(bubbles *testing.T, t task) *harness.Result {
	runner := r.runner
	runner.World = t.world
	return runner.One(bubbles, t.client, t.scenario)
}

// virtual runs tasks in virtual time, one after the other: a bubble is fastest alone.
func (r *results) virtual(ctx context.Context, tasks []task) {
	t := bubbles()
	undo := sync.OnceFunc(oneProcessor())
	defer undo()
	for _, task := range tasks {
		r.add(ctx, task, func() *harness.Result {
			res := r.one(t, task)
			if res.History != nil && slices.ContainsFunc(res.History.Findings, func(f history.Finding) bool { return f.Kind == history.FindingWorldCap }) {
				undo() // it may have left something that runs on without end
			}
			return res
		})
	}
}

func (r *results) add(ctx context.Context, t task, run func() *harness.Result) {
	var res *harness.Result
	if ctx.Err() != nil {
		res = &harness.Result{Scenario: t.scenario.Name, Summary: t.scenario.Summary, Rule: t.scenario.Rule, Source: t.scenario.Source,
			Client: t.client.Name, World: string(t.world), Seed: r.runner.Seed, Status: check.Skipped, Reason: reports.ReasonInterrupted}
	} else {
		res = run()
	}
	r.mu.Lock()
	r.list = append(r.list, r.kept(*res))
	r.mu.Unlock()
	r.progress.Done(t.scenario.Name, res.Status)
}

// doubtful returns the tasks whose results a late machine may have spoilt.
func (r *results) doubtful(tasks []task) []task {
	spoilt := map[[2]string]bool{}
	for i := range r.list {
		if res := &r.list[i]; res.Doubtful() {
			spoilt[[2]string{res.Client, res.Scenario}] = true
		}
	}
	var out []task
	for _, t := range tasks {
		if spoilt[[2]string{t.client.Name, t.scenario.Name}] {
			out = append(out, t)
		}
	}
	return out
}

// replace puts a result in the place of an earlier one.
func (r *results) replace(res *harness.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.list {
		if r.list[i].Client == res.Client && r.list[i].Scenario == res.Scenario {
			r.list[i] = r.kept(*res)
		}
	}
}
