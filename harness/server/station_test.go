package server

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

const ms = time.Millisecond

// inStation runs f with a station in virtual time.
func inStation(t *testing.T, c scenarios.Capacity, incidents []scenarios.Incident, f func(s *station)) {
	t.Helper()
	synctest.Test(t, func(*testing.T) {
		start := time.Now()
		s := newStation(7, c, incidents, func() time.Duration { return time.Since(start) })
		s.start()
		f(s)
		s.close()
	})
}

// arrive puts an attempt into the station and returns it, and why it was turned away.
func arrive(s *station, ctx context.Context) (*ticket, string) {
	t := &ticket{ctx: ctx, work: &history.Work{}, service: s.capacity.Service}
	shed, _ := s.enter(t)
	return t, shed
}

// ends waits for the tickets and tells when each was begun and done.
func ends(list ...*ticket) string {
	text := ""
	for _, t := range list {
		<-t.begun
		<-t.done
		text += fmt.Sprintf("%v-%v ", t.work.Began.Round(ms), t.work.Done.Round(ms))
	}
	return text
}

func TestStationQueues(t *testing.T) {
	inStation(t, scenarios.Capacity{Workers: 2, Service: 100 * ms, Queue: 2}, nil, func(s *station) {
		var list []*ticket
		for i := range 4 {
			x, shed := arrive(s, context.Background())
			if shed != "" || x.work.Ahead != max(0, i-2) {
				t.Errorf("attempt %d: shed %q, %d ahead", i, shed, x.work.Ahead)
			}
			list = append(list, x)
		}
		if _, shed := arrive(s, context.Background()); shed != shedFull {
			t.Errorf("the fifth of 2 + 2: %q", shed)
		}
		if got := ends(list...); got != "0s-100ms 0s-100ms 100ms-200ms 100ms-200ms " {
			t.Error(got)
		}
		if s.drain(3) != 200*ms {
			t.Errorf("four attempts by two workers in %v", s.drain(3))
		}
	})
}

func TestStationIncidents(t *testing.T) {
	one := scenarios.Capacity{Workers: 1, Service: 100 * ms, Queue: 100}
	for _, x := range []struct {
		name string
		list []scenarios.Incident
		want string // of attempts at 0, 0 and 50 ms
	}{
		{"none", nil, "0s-100ms 100ms-200ms 200ms-300ms "},
		{"stall", []scenarios.Incident{{At: 50 * ms, For: time.Second, Do: scenarios.Stall}}, "0s-1.1s 1.1s-1.2s 1.2s-1.3s "},
		{"slow", []scenarios.Incident{{At: 50 * ms, For: 200 * ms, Do: scenarios.Slow, Factor: 4}}, "0s-250ms 250ms-350ms 350ms-450ms "},
		{"slow and stall", []scenarios.Incident{{At: 0, For: 150 * ms, Do: scenarios.Slow, Factor: 2}, {At: 50 * ms, For: 50 * ms, Do: scenarios.Stall}},
			"0s-200ms 200ms-300ms 300ms-400ms "},
		{"burst at once", []scenarios.Incident{{At: 20 * ms, Do: scenarios.Burst, Count: 3}}, "0s-100ms 100ms-200ms 500ms-600ms "},
		{"burst over time", []scenarios.Incident{{At: 20 * ms, For: 80 * ms, Do: scenarios.Burst, Count: 4}}, "0s-100ms 100ms-200ms 400ms-500ms "},
	} {
		inStation(t, one, x.list, func(s *station) {
			a, _ := arrive(s, context.Background())
			b, _ := arrive(s, context.Background())
			time.Sleep(50 * ms)
			c, _ := arrive(s, context.Background())
			if got := ends(a, b, c); got != x.want {
				t.Errorf("%s: %s, want %s", x.name, got, x.want)
			}
		})
	}
}

func TestStationRestart(t *testing.T) {
	restart := []scenarios.Incident{{At: 50 * ms, For: time.Second, Do: scenarios.Restart, Factor: 5, Count: 4}}
	inStation(t, scenarios.Capacity{Workers: 1, Service: 100 * ms, Queue: 10}, restart, func(s *station) {
		a, _ := arrive(s, context.Background())
		b, _ := arrive(s, context.Background())
		<-b.done
		if <-a.done; a.lost != shedRestart || b.lost != shedRestart || s.now() != 50*ms || a.work.Done != 0 || b.work.Began != 0 {
			t.Errorf("at %v: %+v, %+v", s.now(), a.work, b.work)
		}
		if _, shed := arrive(s, context.Background()); shed != shedRestart {
			t.Errorf("while it restarts: %q", shed)
		}
		time.Sleep(time.Second)
		var list []*ticket
		for range 6 {
			x, _ := arrive(s, context.Background())
			list = append(list, x)
		}
		// 500, 400, 300 and 200 ms with the cache getting warm, then 100.
		if got := ends(list...); got != "1.05s-1.55s 1.55s-1.95s 1.95s-2.25s 2.25s-2.45s 2.45s-2.55s 2.55s-2.65s " {
			t.Error(got)
		}
	})
}

func TestStationRefuses(t *testing.T) {
	inStation(t, scenarios.Capacity{Workers: 1, Service: 100 * ms}, []scenarios.Incident{{For: time.Second, Do: scenarios.Refuse}}, func(s *station) {
		if _, shed := arrive(s, context.Background()); shed != shedRefuse {
			t.Errorf("%q", shed)
		}
		time.Sleep(time.Second)
		if _, shed := arrive(s, context.Background()); shed != "" {
			t.Errorf("afterwards: %q", shed)
		}
	})
}

// An attempt whose client has left is worked on, and wasted, unless the server looks.
func TestStationClientsLeave(t *testing.T) {
	for _, abandon := range []bool{false, true} {
		inStation(t, scenarios.Capacity{Workers: 1, Service: 100 * ms, Queue: 2, Abandon: abandon}, nil, func(s *station) {
			ctx, leave := context.WithTimeout(context.Background(), 50*ms)
			defer leave()
			a, _ := arrive(s, ctx)
			b, _ := arrive(s, ctx)
			c, _ := arrive(s, context.Background())
			want := "0s-100ms 100ms-200ms 200ms-300ms "
			if abandon {
				want = "0s-100ms 0s-0s 100ms-200ms "
			}
			if got := ends(a, b, c); got != want || !a.work.Wasted || b.work.Wasted == abandon || (b.lost == shedLeft) != abandon || c.work.Wasted {
				t.Errorf("abandon %v: %s, %+v %+v %+v", abandon, got, a.work, b.work, c.work)
			}
		})
	}
}

// The drawn service times have the mean and the deviation that their distribution has, and the seed replays them.
func TestServiceTimes(t *testing.T) {
	for d, deviation := range map[scenarios.Distribution]float64{scenarios.Fixed: 0, scenarios.Exponential: 1, scenarios.LogNormal: 1} {
		s := newStation(7, scenarios.Capacity{Workers: 1, Service: 100 * ms, Distribution: d}, nil, nil)
		again := newStation(7, s.capacity, nil, nil)
		other := newStation(8, s.capacity, nil, nil)
		const n = 50_000
		sum, squares := 0.0, 0.0
		same, different := true, false
		for i := range n {
			x := s.draw("c1", i)
			same = same && x == again.draw("c1", i)
			different = different || x != other.draw("c1", i)
			sum += x.Seconds()
			squares += x.Seconds() * x.Seconds()
		}
		mean := sum / n
		dev := math.Sqrt(max(0, squares/n-mean*mean)) / mean
		if math.Abs(mean-0.1) > 0.003 || math.Abs(dev-deviation) > 0.05 {
			t.Errorf("%s: mean %.4f s, coefficient of variation %.3f", d, mean, dev)
		}
		if !same || different != (d != scenarios.Fixed) {
			t.Errorf("%s: same seed the same %v, another different %v", d, same, different)
		}
	}
}

// An attempt within its quota is work like any other; one beyond it, or one that a fault strikes first, is none.
func TestWorkOfPlannedFaults(t *testing.T) {
	const limit = "rate_limit quota=1 window=1s times=forever"
	for _, x := range []struct {
		planned []string
		want    string // status and end of each attempt
	}{
		{[]string{limit}, "200 at 100ms, 429 at 100ms, 429 at 100ms, "},
		{[]string{"503", "ok", "503@after_commit"}, "503 at 0s, 200 at 100ms, 503 at 200ms, "},
	} {
		cfg := Config{Seed: 7, Capacity: &scenarios.Capacity{Workers: 1, Service: 100 * ms}}
		bubble(t, cfg, []route{{method: "GET", path: "/a", sequence: x.planned}}, func(r *rig) {
			got, start := "", time.Now()
			for range 3 {
				a := r.send("GET", "/a", "")
				got += fmt.Sprintf("%d at %v, ", a.status, time.Since(start))
			}
			if got != x.want {
				t.Errorf("%v: %s, want %s", x.planned, got, x.want)
			}
		})
	}
}

// Nobody is told of an attempt within its quota whose client has left: that is no failure of the harness.
func TestWorkWithinQuotaOfAClientThatLeft(t *testing.T) {
	cfg := Config{Seed: 7, Capacity: &scenarios.Capacity{Workers: 1, Service: 100 * ms}}
	bubble(t, cfg, []route{{path: "/a", sequence: []string{"rate_limit quota=1 window=1s"}}}, func(r *rig) {
		r.client.Timeout = 50 * ms
		if a := r.send("POST", "/a", "{}"); a.err == nil {
			t.Errorf("answered with %d", a.status)
		}
		time.Sleep(time.Second)
		h := r.history()
		one := h.Calls[0].Attempts[0]
		if len(h.Findings) != 0 || len(h.Effects) != 1 || one.Work == nil || !one.Work.Wasted || one.Ended != 50*ms {
			t.Errorf("findings %v, effects %v, %+v", h.Findings, h.Effects, one)
		}
	})
}

// A restart ends work in the order in which it began, so that a seed replays what comes of it.
func TestWorkEndsInItsOrder(t *testing.T) {
	s := newStation(1, scenarios.Capacity{Workers: 20, Service: time.Hour, Queue: 1}, nil, func() time.Duration { return 0 })
	defer s.close()
	var want []*ticket
	for range 20 {
		one := &ticket{service: time.Hour, ctx: context.Background()}
		if shed, _ := s.enter(one); shed != "" {
			t.Fatal(shed)
		}
		want = append(want, one)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Equal(s.working(), want) {
		t.Error("the work is not in the order in which it began")
	}
}
