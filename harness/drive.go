package harness

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/driver"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/server"
	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/scenarios"
)

// Grains: how exact instants are. In the virtual world only the skew of the starts is noise; on loopback
// it is the scheduler of a small machine; a process must be started besides.
const (
	grainVirtual  = time.Millisecond
	grainLoopback = 25 * time.Millisecond
	grainProcess  = 250 * time.Millisecond
)

// lateLimit bounds the wait for late commits after the last call.
const lateLimit = 10 * time.Second

// drive is one run: it opens the world's network, starts the server, makes the calls and closes all.
type drive struct {
	client   Client
	scenario scenarios.Scenario
	seed     uint64
	env      environment

	attemptCap int // attempts per call; 0: the server's default
	// headerTimeout of the transports; 0: none
	headerTimeout time.Duration
	free          bool // whoever makes the calls may give them header fields of their own

	// What follows is read by history, which may be asked while a stuck run still goes on.
	mu       sync.Mutex
	srv      *server.Server
	rec      *recorder
	start    time.Time
	end      time.Duration
	findings []history.Finding
	leaks    history.Leaks
	lateness time.Duration
}

// environment is what differs between the worlds.
type environment struct {
	kind    world.Kind
	grain   time.Duration
	settle  time.Duration // how long the world goes on after the last call
	limit   time.Duration // on the world's clock, for the calls of the scenario
	quiesce func(open func() int)
}

func newDrive(c Client, s scenarios.Scenario, seed uint64) *drive {
	return &drive{client: c, scenario: s, seed: seed}
}

func (d *drive) finding(kind, format string, args ...any) {
	f := history.Finding{Kind: kind, Text: fmt.Sprintf(format, args...)}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(d.findings, f) { // the instances of a fleet tell the same
		d.findings = append(d.findings, f)
	}
}

// run is the whole life of a world, on the clock of the goroutine that it is called in.
func (d *drive) run(net *world.Network) {
	defer net.Close()
	start := time.Now()
	rec := newRecorder(start)
	srv := d.newServer(start)
	jobs := d.expand(rec, srv)
	d.mu.Lock()
	d.srv, d.rec, d.start = srv, rec, start
	d.mu.Unlock()

	l, err := net.Listen()
	if err != nil {
		d.finding(history.FindingHarness, "listening: %v", err)
		return
	}
	dial, l, err := d.newDialer(net, srv, rec, l)
	if err != nil {
		d.finding(history.FindingHarness, "%v", err)
		return
	}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()

	fleet := &fleet{client: d.client, dial: dial, rec: rec, baseURL: dial.baseURL(d.client.Declared.Outside()), seed: d.seed,
		finding: func(kind, text string) { d.finding(kind, "%s", text) },
		warm:    d.scenario.Connection == faults.Reused, protocol: d.scenario.Server.Protocol,
		tokens: d.scenario.Server.Token != scenarios.TokenNone, lean: lean(d.scenario), headerTimeout: d.headerTimeout}
	if err := d.calls(jobs, fleet, start); err != nil {
		d.finding(history.FindingHarness, "%v", err)
	}
	d.mu.Lock()
	d.end = time.Since(start)
	d.mu.Unlock()

	late, cancel := context.WithTimeout(context.Background(), lateLimit)
	srv.AwaitLate(late)
	cancel()
	time.Sleep(d.env.settle)

	behind := fleet.lateness()
	d.mu.Lock()
	d.lateness = max(d.lateness, behind)
	d.mu.Unlock()
	fleet.close()
	d.env.quiesce(func() int {
		// A connection becomes idle some time after its call has returned: one that was busy with the end of a
		// stream, say. Idle is what it has to be to be let go.
		for _, t := range fleet.bases {
			t.CloseIdleConnections()
		}
		return net.Open()
	})
	d.mu.Lock()
	d.leaks.Known = !d.client.Declared.Outside()
	if d.leaks.Known {
		d.leaks.Conns = net.Open()
	}
	d.mu.Unlock()
	_ = dial.close()
	_ = srv.Close()
	if err := <-served; err != nil {
		d.finding(history.FindingHarness, "serving: %v", err)
	}
}

// newServer makes the scenario's server.
func (d *drive) newServer(start time.Time) *server.Server {
	s := d.scenario.Server
	return server.New(server.Config{Scenario: d.scenario.Name, Seed: d.seed, Start: start, AttemptCap: d.attemptCap,
		Keys: s.Keys, Profile: s.Profile, Expiry: s.Expiry, Token: s.Token, Protocol: s.Protocol,
		Capacity: s.Capacity, Incidents: s.Incidents})
}

// calls starts every call at its time and waits until all are over or the world's limit is reached.
func (d *drive) calls(jobs []*job, fleet *fleet, start time.Time) error {
	for _, j := range jobs {
		if err := fleet.assign(j); err != nil {
			return err
		}
	}
	groups := map[string]*sync.WaitGroup{}
	for _, j := range jobs {
		if groups[j.group.Name] == nil {
			groups[j.group.Name] = &sync.WaitGroup{}
		}
		groups[j.group.Name].Add(1)
	}
	for _, j := range jobs {
		go func() {
			defer groups[j.group.Name].Done()
			if before := groups[j.group.After]; before != nil {
				before.Wait()
				time.Sleep(j.offset)
			} else {
				time.Sleep(time.Until(start.Add(j.offset)))
			}
			d.call(j)
		}()
	}
	done := make(chan struct{})
	go func() {
		for _, g := range groups {
			g.Wait()
		}
		close(done)
	}()
	limit := time.NewTimer(d.env.limit)
	defer limit.Stop()
	select {
	case <-done:
	case <-limit.C:
		d.finding(history.FindingWorldCap, "calls were still going on after %v, the limit of this run: they were given up", d.env.limit)
		for _, j := range jobs {
			j.abort()
		}
	}
	return nil
}

// call performs one call in the calling goroutine.
func (d *drive) call(j *job) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	j.arm(cancel)
	g := j.group
	// The record comes before the clocks: on a busy machine it can take a while, and a call must not be over
	// before the instant at which the record says that it was cancelled.
	d.rec.begin(j.id, g.Deadline, g.CancelAfter)
	if g.Deadline > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, g.Deadline)
		defer stop()
	}
	if g.CancelAfter > 0 {
		timer := time.AfterFunc(g.CancelAfter, cancel)
		defer timer.Stop()
	}
	ctx = context.WithValue(ctx, callKey{}, j.dial)
	if o, over := perform(ctx, j.caller, j.call); over {
		d.rec.finish(j.id, o)
	}
}

// perform calls the client and turns a panic in the caller's goroutine into a fact. over is false where nobody
// will ever know what came of the call.
func perform(ctx context.Context, c Caller, call Call) (o history.Outcome, over bool) {
	defer func() {
		if p := recover(); p != nil {
			over = true
			o = history.Outcome{Error: fmt.Sprintf("panic: %v", p), Panic: fmt.Sprintf("%v\n%s", p, debug.Stack())}
		}
	}()
	out := c.Call(ctx, call)
	return out.record(), !errors.Is(out.Err, driver.ErrGivenUp)
}

// history puts both sides of the run together.
func (d *drive) history() *history.History {
	d.mu.Lock()
	defer d.mu.Unlock()
	h := &history.History{
		Scenario: d.scenario.Name, Client: d.client.Name, World: string(d.env.kind), Seed: d.seed,
		Grain: d.env.grain, Declared: d.client.Declared, Start: d.start, End: d.end,
		Findings: append([]history.Finding(nil), d.findings...), Leaks: d.leaks, Lateness: d.lateness,
	}
	if d.srv == nil {
		return h
	}
	d.srv.Record(h)
	h.Triggers = triggers(d.scenario)
	open := d.rec.merge(h)
	if h.Leaks.Known {
		h.Leaks.Bodies = open
	}
	return h
}
