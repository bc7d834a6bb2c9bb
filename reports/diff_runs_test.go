package reports_test

import (
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/reports"
	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/scenarios"
)

// looper retries what fails, a number of times, after a wait; it declares nothing.
type looper struct {
	base  http.RoundTripper
	tries int
	wait  func(k int) time.Duration
}

func (l looper) RoundTrip(req *http.Request) (*http.Response, error) {
	for k := 1; ; k++ {
		if req.GetBody != nil {
			req.Body, _ = req.GetBody()
		}
		resp, err := l.base.RoundTrip(req)
		if k == l.tries || err == nil && resp.StatusCode < 500 && resp.StatusCode != 429 {
			return resp, err
		}
		if err == nil {
			_ = resp.Body.Close()
		}
		select {
		case <-req.Context().Done():
			return nil, req.Context().Err()
		case <-time.After(l.wait(k)):
		}
	}
}

func looping(tries int, wait func(k int) time.Duration) harness.Client {
	return harness.RoundTripper("looper", func(base http.RoundTripper) http.RoundTripper { return looper{base, tries, wait} })
}

func doubling(k int) time.Duration { return time.Second << (k - 1) }
func full(k int) time.Duration     { return time.Duration(rand.Int64N(int64(doubling(k)))) }

// runs runs the client through a part of the library, in virtual time.
func runs(t *testing.T, c harness.Client, seed uint64, globs ...string) *reports.Report {
	t.Helper()
	all, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	list, err := scenarios.Match(all, globs...)
	if err != nil {
		t.Fatal(err)
	}
	var results []harness.Result
	for _, s := range list {
		results = append(results, *harness.Runner{Seed: seed}.One(t, c, s))
	}
	return reports.New(reports.Run{Seed: seed, World: "virtual", Clients: []reports.ClientInfo{{Name: c.Name}}}, results)
}

var families = []string{"bounded/*", "cancellation/*", "rate-limits/*", "keys/*", "recovery/*", "redirects/*", "connection/*-for-ever*"}

// TestSameVersionListsNothing compares runs of one client in a row, each with another seed; ten where the client
// draws its waits, since chance has most to say there.
func TestSameVersionListsNothing(t *testing.T) {
	for name, x := range map[string]struct {
		client harness.Client
		runs   uint64
	}{
		"bundled, declared and seeded": {harness.Bundled("looper", retry.Policy{}), 3},
		"constant, undeclared":         {looping(4, doubling), 3},
		"full jitter, undeclared":      {looping(4, full), 11},
		"no wait":                      {looping(3, func(int) time.Duration { return 0 }), 3},
	} {
		t.Run(name, func(t *testing.T) {
			c := x.client
			last := runs(t, c, 1, families...)
			for seed := uint64(2); seed <= x.runs; seed++ {
				next := runs(t, c, seed, families...)
				d := reports.Diff(last, next)
				if !d.Empty() {
					t.Errorf("seeds %d and %d:\n%s", seed-1, seed, listed(d))
				}
				if n := len(next.Results) - d.Same - len(d.Incomparable); n != 0 || len(d.Incomparable) > len(next.Results)/20 {
					t.Errorf("seeds %d and %d: %d not the same, %d not comparable", seed-1, seed, n, len(d.Incomparable))
				}
				last = next
			}
		})
	}
}

func listed(d *reports.Comparison) string {
	var b strings.Builder
	for _, g := range d.Groups() {
		for _, ch := range g.Changes {
			b.WriteString(g.Name + " " + ch.Scenario + " " + ch.Why + ": " + strings.Join(ch.Differences, "; ") + "\n")
		}
	}
	for _, x := range d.Trends {
		b.WriteString(x.String() + "\n")
	}
	return b.String()
}

// TestOtherVersionIsSeen: what a new version does otherwise is found, with jitter and without.
func TestOtherVersionIsSeen(t *testing.T) {
	find := func(d *reports.Comparison, text string) bool { return strings.Contains(listed(d), text) }
	for name, c := range map[string]struct {
		old, new harness.Client
		want     []string
	}{
		"one attempt more": {looping(3, doubling), looping(4, doubling), []string{"changed bounded/", "attempts 3 → 4"}},
		"with jitter":      {looping(3, full), looping(4, full), []string{"attempts 3 → 4"}},
		"no wait any more": {looping(4, doubling), looping(4, func(int) time.Duration { return 0 }), []string{"first gap 1s → 0 s", "broken "}},
		"jitter comes":     {looping(4, doubling), looping(4, full), []string{"wait before retry 1: 1s → ", "changed (p="}},
	} {
		t.Run(name, func(t *testing.T) {
			d := reports.Diff(runs(t, c.old, 1, families...), runs(t, c.new, 2, families...))
			for _, w := range c.want {
				if !find(d, w) {
					t.Errorf("%q is not found in\n%s", w, listed(d))
				}
			}
		})
	}
}
