package world

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const plenty = 30 * time.Second // of real time

func TestBubbleClean(t *testing.T) {
	var began time.Time
	rep := Bubble(t, plenty, func() {
		began = time.Now()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { time.Sleep(10 * time.Minute) })
		}
		wg.Wait()
	})
	if rep.Simulated != 10*time.Minute || began.Year() != 2000 || rep.Real <= 0 || rep.Real > plenty {
		t.Errorf("times: %+v", rep)
	}
	if !rep.Returned || rep.Abandoned || rep.Stuck || rep.Deadlock || rep.Goexit || rep.Unsettled || rep.Panic != nil || len(rep.Leftovers)+len(rep.Lingered) != 0 {
		t.Errorf("%+v", rep)
	}
}

func TestBubbleLeakBlocked(t *testing.T) {
	rep := Bubble(t, plenty, func() {
		go leakForever()
		go func() { time.Sleep(time.Second) }()
	})
	if !rep.Returned || !rep.Abandoned || rep.Deadlock || rep.Stuck || rep.Unsettled {
		t.Errorf("%+v", rep)
	}
	if len(rep.Leftovers) != 1 || !strings.Contains(rep.Leftovers[0], "leakForever") {
		t.Errorf("leftovers: %q", rep.Leftovers)
	}
	if len(rep.Lingered) != 1 || rep.Simulated != 0 {
		t.Errorf("%+v", rep)
	}
}

//go:noinline
func leakForever() { select {} }

// A ticker would keep virtual time going for ever. It must have stopped when
// Bubble returns.
func TestBubbleLeakTicker(t *testing.T) {
	for _, period := range []time.Duration{time.Nanosecond, time.Millisecond, time.Hour} {
		var ticks atomic.Int64
		rep := Bubble(t, plenty, func() {
			go func() {
				for range time.Tick(period) {
					ticks.Add(1)
				}
			}()
		})
		if !rep.Abandoned || len(rep.Leftovers) != 1 || !strings.Contains(rep.Leftovers[0], "TestBubbleLeakTicker") {
			t.Errorf("%v: %+v", period, rep)
		}
		before := ticks.Load()
		time.Sleep(20 * time.Millisecond)
		if after := ticks.Load(); after > before+1 {
			t.Errorf("%v: the ticker goes on: %d, then %d", period, before, after)
		}
	}
}

func TestBubbleLingered(t *testing.T) {
	rep := Bubble(t, plenty, func() {
		time.Sleep(time.Second)
		go func() { time.Sleep(90 * time.Second) }()
		go func() {
			time.Sleep(time.Second)
			go func() { time.Sleep(time.Minute) }() // not there when f returned
		}()
	})
	if rep.Abandoned || len(rep.Leftovers) != 0 || len(rep.Lingered) != 2 || rep.Simulated != time.Second {
		t.Fatalf("%+v", rep)
	}
	within := []time.Duration{rep.Lingered[0].Within, rep.Lingered[1].Within}
	slices.Sort(within)
	if w := within[0]; w < time.Second || w > 1500*time.Millisecond {
		t.Error(within)
	}
	if w := within[1]; w < 90*time.Second || w > 135*time.Second {
		t.Error(within)
	}
	if !strings.Contains(rep.Lingered[1].Stack, "TestBubbleLingered") {
		t.Error(rep.Lingered[1].Stack)
	}
}

func TestBubblePanic(t *testing.T) {
	boom := errors.New("boom")
	rep := Bubble(t, plenty, func() { panicIn(boom) })
	if rep.Panic != boom || !rep.Returned || rep.Abandoned || !strings.Contains(rep.PanicStack, "panicIn") {
		t.Errorf("%+v", rep)
	}
	rep = Bubble(t, plenty, func() { go leakForever(); panic(boom) })
	if rep.Panic != boom || len(rep.Leftovers) != 1 {
		t.Errorf("%+v", rep)
	}
}

//go:noinline
func panicIn(err error) { panic(err) }

func TestBubbleGoexit(t *testing.T) {
	rep := Bubble(t, plenty, runtime.Goexit)
	if !rep.Goexit || !rep.Returned || rep.Panic != nil || rep.Abandoned {
		t.Errorf("%+v", rep)
	}
}

// A deadlock is one even if a ticker keeps the bubble going.
func TestBubbleDeadlock(t *testing.T) {
	for name, f := range map[string]func(){
		"all blocked": func() { blockHere(make(chan int)) },
		"slow ticker": func() { time.NewTicker(24 * time.Hour); blockHere(make(chan int)) },
		"endless sleep": func() {
			time.Sleep(1<<63 - 1)
			time.NewTicker(time.Second)
			select {}
		},
	} {
		rep := Bubble(t, plenty, f)
		if !rep.Deadlock || !rep.Abandoned || rep.Stuck || rep.Returned || len(rep.Leftovers) != 1 {
			t.Errorf("%s: %+v", name, rep)
		}
		if name == "all blocked" && !strings.Contains(rep.Leftovers[0], "blockHere") {
			t.Errorf("%s: %q", name, rep.Leftovers)
		}
	}
}

//go:noinline
func blockHere(c chan int) { <-c }

// Real time is used up by a loop that never waits, by a wait for something
// outside the bubble, and by a ticker that spins virtual time; the last must
// have stopped soon after.
func TestBubbleStuck(t *testing.T) {
	var stop atomic.Bool
	outside := make(chan int)
	for name, f := range map[string]func(){
		"hotLoop":     func() { hotLoop(&stop) },
		"waitOutside": func() { waitOutside(outside) },
	} {
		rep := Bubble(t, 50*time.Millisecond, f)
		if !rep.Stuck || !rep.Abandoned || rep.Deadlock || rep.Returned || rep.Real < 50*time.Millisecond || rep.Real > 10*time.Second {
			t.Errorf("%s: %+v", name, rep)
		}
		if len(rep.Leftovers) != 1 || !strings.Contains(rep.Leftovers[0], name) {
			t.Errorf("%s: %q", name, rep.Leftovers)
		}
	}
	// The same when the function has returned and a goroutine of it goes on.
	rep := Bubble(t, 50*time.Millisecond, func() { go waitOutside(outside) })
	if !rep.Stuck || !rep.Abandoned || !rep.Returned || len(rep.Leftovers) != 1 {
		t.Errorf("%+v", rep)
	}
	stop.Store(true)
	close(outside)

	var ticks atomic.Int64
	rep = Bubble(t, 50*time.Millisecond, func() {
		for range time.Tick(time.Millisecond) {
			ticks.Add(1)
		}
	})
	if !rep.Stuck || rep.Deadlock {
		t.Errorf("%+v", rep)
	}
	for begun := time.Now(); ; {
		before := ticks.Load()
		time.Sleep(20 * time.Millisecond)
		if ticks.Load() == before {
			break
		}
		if time.Since(begun) > 10*time.Second {
			t.Fatal("virtual time goes on after the bubble was abandoned")
		}
	}
}

//go:noinline
func hotLoop(stop *atomic.Bool) {
	for !stop.Load() {
		runtime.Gosched()
	}
}

//go:noinline
func waitOutside(c chan int) { <-c }

// A client that retries without a pause is stopped through the network.
func TestFreezeStopsHotClient(t *testing.T) {
	n := Memory()
	var dials atomic.Int64
	rep := Bubble(t, 50*time.Millisecond, func() {
		client := &http.Client{Transport: &http.Transport{DialContext: n.DialContext}}
		for {
			_, _ = client.Get("http://127.0.0.1:1/")
			dials.Add(1)
		}
	})
	if !rep.Stuck || dials.Load() == 0 {
		t.Fatalf("%+v", rep)
	}
	n.Freeze()
	_ = n.Close() // must neither hang nor end the process
	time.Sleep(20 * time.Millisecond)
	before := dials.Load()
	time.Sleep(20 * time.Millisecond)
	if after := dials.Load(); after != before {
		t.Errorf("goes on dialling: %d, then %d", before, after)
	}
}

// Whatever happened inside, the test that lent its T goes on and passes.
func TestBubbleLeavesTAlone(t *testing.T) {
	var after bool
	t.Run("lender", func(t *testing.T) {
		Bubble(t, plenty, func() { panic("boom") })
		Bubble(t, plenty, runtime.Goexit)
		Bubble(t, plenty, func() { go leakForever() })
		Bubble(t, plenty, func() { select {} })
		after = true
	})
	if !after || t.Failed() {
		t.Error("the lender was stopped or failed")
	}
}

func TestBubblesAtOnce(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 20 {
				leaks := (i+j)%4 == 0
				rep := Bubble(t, plenty, func() {
					time.Sleep(time.Duration(i) * time.Second)
					if leaks {
						go leakForever()
					}
				})
				if rep.Abandoned != leaks || rep.Unsettled || rep.Simulated != time.Duration(i)*time.Second {
					t.Errorf("leaks %v: %+v", leaks, rep)
				}
			}
		})
	}
	wg.Wait()
}

// The quick look is misled when a goroutine outside ends just as one is left
// inside. The runtime notices, and the report says what is not known.
func TestBubbleUnsettled(t *testing.T) {
	// Bubbles that other tests left stuck would make every look a thorough one.
	defer live.Add(live.Swap(0))
	release := make(chan int)
	go func() { <-release }()
	rep := Bubble(t, plenty, func() {
		before := runtime.NumGoroutine()
		go leakForever()
		close(release)
		for runtime.NumGoroutine() > before {
			runtime.Gosched()
		}
	})
	if len(rep.Leftovers) != 1 || !rep.Abandoned || !rep.Unsettled || rep.Deadlock || !rep.Returned {
		t.Errorf("%+v", rep)
	}
}

func TestBubbleMisuse(t *testing.T) {
	rep := Bubble(t, plenty, func() {
		Bubble(t, plenty, func() {})
	})
	if s, _ := rep.Panic.(string); !strings.Contains(s, "within a synctest bubble") {
		t.Errorf("%+v", rep)
	}
	defer func() {
		if recover() == nil {
			t.Error("a nil T must panic")
		}
	}()
	Bubble(nil, plenty, func() {})
}

func TestBubbleOf(t *testing.T) {
	for header, want := range map[string]uint64{
		"goroutine 7 [running]:":                                                      0,
		"goroutine 7 [running, synctest bubble 12]:":                                  12,
		"goroutine 7 [select (durable), 3 minutes, synctest bubble 3]:":               3,
		`goroutine 7 [chan receive (durable), synctest bubble 41 labels:{"a": "b"}]:`: 41,
	} {
		if got := bubbleOf(header); got != want {
			t.Errorf("%s: %d", header, got)
		}
	}
}

// Everything that can be blocked in the network has to be durably blocked, or
// virtual time would stand still.
func TestBlockedIsDurable(t *testing.T) {
	rep := Bubble(t, plenty, func() {
		n := Memory()
		n.fabric.(*memoryNet).backlog = 1
		l, _ := n.Listen()
		full, _ := n.Listen()
		dial := func(ctx context.Context, addr string) Conn {
			c, err := n.DialContext(ctx, "tcp", addr)
			if err != nil {
				return nil
			}
			return c.(Conn)
		}
		a := dial(context.Background(), l.Addr().String())
		b, _ := l.Accept()
		dial(context.Background(), full.Addr().String())
		go func() { _, _ = l.Accept() }()
		go func() { dial(context.Background(), full.Addr().String()) }()
		go func() { _, _ = a.Read(make([]byte, 1)) }()
		for range 2 { // the second waits for the first
			go func() { _, _ = a.Write(make([]byte, 1<<20)) }()
		}
		time.Sleep(time.Hour)
		_ = b.SetDeadline(time.Now().Add(time.Hour))
		_ = n.Close()
	})
	if rep.Simulated != time.Hour || rep.Abandoned || rep.Stuck {
		t.Errorf("%+v", rep)
	}
}
