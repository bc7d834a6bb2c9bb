package cli

import (
	"context"
	"slices"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/reports"
	"github.com/retrychaos/retrychaos/scenarios"
)

// maxCalls bounds the calls that are under way at once on loopback: more clients would disturb each other's
// clock.
const maxCalls = 2000

// execute runs every client through every scenario. An interrupt ends it early; what was not run says so.
func (f *runFlags) execute(ctx context.Context, level check.Level, progress *reports.Progress) []harness.Result {
	runner := harness.Runner{World: world.Kind(f.world), Seed: f.seed, Level: level}
	var tasks []task
	for _, c := range f.tested {
		for _, s := range f.scenarios {
			tasks = append(tasks, task{c.Client, s})
		}
	}
	r := &results{runner: runner, progress: progress}
	if runner.World == world.Virtual {
		t := bubbles()
		for _, task := range tasks {
			r.add(ctx, task, func() *harness.Result { return runner.One(t, task.client, task.scenario) })
		}
		return r.list
	}
	// The largest first: what is left over at the end is then small, and the whole short.
	slices.SortStableFunc(tasks, func(a, b task) int { return b.calls() - a.calls() })
	slots := semaphore.NewWeighted(int64(f.parallel))
	room := semaphore.NewWeighted(maxCalls)
	var wg sync.WaitGroup
	for _, task := range tasks {
		// Not ctx: after an interrupt the rest is gone through quickly, and told as not run.
		_ = slots.Acquire(context.Background(), 1)
		n := int64(min(task.calls(), maxCalls))
		_ = room.Acquire(context.Background(), n)
		wg.Go(func() {
			defer slots.Release(1)
			defer room.Release(n)
			r.add(ctx, task, func() *harness.Result { return runner.One(nil, task.client, task.scenario) })
		})
	}
	wg.Wait()
	return r.list
}

type task struct {
	client   harness.Client
	scenario scenarios.Scenario
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
}

func (r *results) add(ctx context.Context, t task, run func() *harness.Result) {
	var res *harness.Result
	if ctx.Err() != nil {
		res = &harness.Result{Scenario: t.scenario.Name, Summary: t.scenario.Summary, Rule: t.scenario.Rule, Source: t.scenario.Source,
			Client: t.client.Name, World: string(r.runner.World), Seed: r.runner.Seed, Status: check.Skipped, Reason: "the run was interrupted before it"}
	} else {
		res = run()
	}
	r.mu.Lock()
	r.list = append(r.list, *res)
	r.mu.Unlock()
	r.progress.Done(t.scenario.Name, res.Status)
}
