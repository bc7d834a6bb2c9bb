package herd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/retry"
)

// Contention is what N clients that update one row under optimistic concurrency need: each reads the row's version
// and writes it back; a write with a stale version fails, and its client waits and starts over.
type Contention struct {
	Clients int
	Policy  string
	Runs    int
	Time    time.Duration // until the last client was through, mean
	Writes  float64       // write requests, mean
}

// ContentionPolicies are the waits of the published comparison: base 5 ms, cap 2 s, where the first nominal wait is
// already twice the base. Decorrelated jitter starts from the base.
func ContentionPolicies() []Policy {
	const base, limit = 5 * time.Millisecond, 2 * time.Second
	with := func(j retry.Jitter, first time.Duration) retry.Policy {
		return retry.Policy{BaseDelay: first, MaxDelay: limit, Jitter: j}
	}
	all := []Policy{
		{Name: "none", Doc: "at once", retry: retry.Policy{BaseDelay: immediately, MaxDelay: immediately, Jitter: retry.NoJitter}},
		{Name: "exponential", Doc: "exponential, no jitter", retry: with(retry.NoJitter, 2*base)},
		{Name: "full", Doc: "full jitter", retry: with(retry.FullJitter, 2*base)},
		{Name: "equal", Doc: "equal jitter", retry: with(retry.EqualJitter, 2*base)},
		{Name: "decorrelated", Doc: "decorrelated jitter", retry: with(retry.DecorrelatedJitter, base)},
	}
	for i := range all {
		all[i].retry.MaxAttempts = math.MaxInt32
		all[i].retry.AttemptTimeout = retry.NoTimeout
		all[i].retry.Budget = retry.NoBudget()
	}
	return all
}

// ContentionFigure is one cell of the reference.
type ContentionFigure struct {
	Clients int
	Policy  string
	Time    time.Duration
	Writes  float64
}

// ContentionReference holds the means of 100 runs of aws-samples/aws-arch-backoff-simulator, the simulator behind
// the AWS Architecture Blog's "Exponential Backoff and Jitter".
func ContentionReference() []ContentionFigure {
	const ms = time.Millisecond
	return []ContentionFigure{
		{10, "none", 378 * ms, 50}, {10, "exponential", 3542 * ms, 50}, {10, "full", 464 * ms, 39}, {10, "equal", 709 * ms, 42}, {10, "decorrelated", 450 * ms, 37},
		{50, "none", 1142 * ms, 690}, {50, "exponential", 36830 * ms, 630}, {50, "full", 2933 * ms, 333}, {50, "equal", 4352 * ms, 348}, {50, "decorrelated", 2272 * ms, 374},
		{100, "none", 2030 * ms, 2423}, {100, "exponential", 64350 * ms, 1866}, {100, "full", 4906 * ms, 796}, {100, "equal", 6646 * ms, 811}, {100, "decorrelated", 4619 * ms, 998},
		{150, "none", 2876 * ms, 5135}, {150, "exponential", 86200 * ms, 3548}, {150, "full", 6392 * ms, 1318}, {150, "equal", 8174 * ms, 1323}, {150, "decorrelated", 6630 * ms, 1761},
	}
}

// TimeMargin and WritesMargin are how far means of 100 runs may be from the reference. Without jitter the time is
// heavy-tailed.
func (f ContentionFigure) TimeMargin() float64 {
	if f.Policy == "exponential" {
		return 0.25
	}
	return 0.15
}

// WritesMargin is the margin of the number of writes.
func (f ContentionFigure) WritesMargin() float64 { return 0.10 }

// Contend measures a policy. The seeds of the runs are 1 … runs.
func Contend(t *testing.T, p Policy, clients, runs int) (Contention, error) {
	sum := Contention{Clients: clients, Policy: p.Name, Runs: runs}
	for seed := range runs {
		took, writes, err := contend(t, p, clients, uint64(seed+1))
		if err != nil {
			return sum, fmt.Errorf("%s, %d clients, seed %d: %w", p.Name, clients, seed+1, err)
		}
		sum.Time += took / time.Duration(runs)
		sum.Writes += float64(writes) / float64(runs)
	}
	return sum, nil
}

// contend is one run in a world of its own.
func contend(t *testing.T, p Policy, clients int, seed uint64) (took time.Duration, writes int, err error) {
	net := world.Memory()
	row := &row{}
	report := world.Bubble(t, realCap, func() {
		defer net.Close()
		l, lerr := net.Listen()
		if lerr != nil {
			err = lerr
			return
		}
		srv := &http.Server{Handler: row}
		go func() { _ = srv.Serve(l) }()
		defer srv.Close()
		start := time.Now()
		errs := make([]error, clients)
		var wg sync.WaitGroup
		for i := range clients {
			wg.Go(func() {
				errs[i] = update(net, "http://"+l.Addr().String()+"/row", p, rand.NewPCG(seed, uint64(i)))
			})
		}
		wg.Wait()
		took = time.Since(start)
		err = errors.Join(errs...)
	})
	switch {
	case report.Panic != nil:
		err = fmt.Errorf("the run panicked: %v\n%s", report.Panic, report.PanicStack)
	case report.Stuck:
		err = fmt.Errorf("the run was not over after %v", realCap)
	case report.Deadlock:
		err = errors.New("the run is blocked for ever")
	}
	if report.Abandoned {
		net.Freeze()
		return 0, 0, errors.Join(err, errors.New("the run left goroutines behind"))
	}
	return took, row.writes, err
}

// row is a server with one row. A write names the version that it has read, in If-Match.
type row struct {
	mu      sync.Mutex
	version int
	writes  int
}

func (r *row) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if req.Method == http.MethodPut {
		r.writes++
		if req.Header.Get("If-Match") != strconv.Quote(strconv.Itoa(r.version)) {
			w.WriteHeader(http.StatusPreconditionFailed)
			return
		}
		r.version++
	}
	w.Header().Set("ETag", strconv.Quote(strconv.Itoa(r.version)))
	w.WriteHeader(http.StatusNoContent)
}

// errStale says that somebody else was faster.
var errStale = errors.New("the version was stale")

// update reads the row and writes it back until that works.
func update(net *world.Network, url string, p Policy, src rand.Source) error {
	transport := &http.Transport{DialContext: net.DialContext}
	defer transport.CloseIdleConnections()
	c := &http.Client{Transport: &delayed{transport, rand.New(src)}}
	_, err := retry.Do(context.Background(), p.retry, func(ctx context.Context) (struct{}, error) {
		tag, err := exchange(ctx, c, http.MethodGet, url, "")
		if err == nil {
			_, err = exchange(ctx, c, http.MethodPut, url, tag)
		}
		return struct{}{}, retry.WithOutcome(err, retry.NotProcessed)
	}, retry.WithRand(src))
	return err
}

func exchange(ctx context.Context, c *http.Client, method, url, match string) (tag string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return "", err
	}
	if match != "" {
		req.Header.Set("If-Match", match)
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	switch {
	case err != nil:
		return "", err
	case resp.StatusCode == http.StatusPreconditionFailed:
		return "", errStale
	case resp.StatusCode != http.StatusNoContent:
		return "", fmt.Errorf("%s: %s", method, resp.Status)
	}
	return resp.Header.Get("ETag"), nil
}

// delayed makes each message, the request and the response, take |Normal(10, 2)| ms. It is used by one goroutine.
type delayed struct {
	next http.RoundTripper
	rand *rand.Rand
}

func (d *delayed) RoundTrip(req *http.Request) (*http.Response, error) {
	d.travel()
	resp, err := d.next.RoundTrip(req)
	d.travel()
	return resp, err
}

func (d *delayed) travel() {
	time.Sleep(time.Duration(math.Abs(10+2*d.rand.NormFloat64()) * float64(time.Millisecond)))
}
