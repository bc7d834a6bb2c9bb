package check

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

// load is a history of 10 calls a second for some seconds at a server that can do 20 a second and is stalled from
// 10 s to 15 s. Calls that start before the stall or from well on succeed at once; the others fail after that
// many attempts.
func load(seconds int, well time.Duration, attempts int) *history.History {
	var calls []*history.Call
	for i := range 10 * seconds {
		at := time.Duration(i) * s / 10
		id := "c" + strconv.Itoa(i+1)
		if at < 10*s || at >= well {
			calls = append(calls, with(call(id, try(at, "ok")), func(c *history.Call) { c.Started = at }))
			continue
		}
		var list []*history.Attempt
		for k := range attempts {
			list = append(list, try(at+time.Duration(k)*s, "503"))
		}
		calls = append(calls, with(call(id, list...), func(c *history.Call) { c.Started = at }))
	}
	h := run(calls...)
	h.Capacity = &history.Capacity{Workers: 2, Service: 100 * ms, Queue: 50}
	h.Triggers = []history.Trigger{{From: 10 * s, To: 15 * s, What: "stall"}}
	return h
}

func TestAmplification(t *testing.T) {
	closed := func(n, ok, attempts int) *history.History {
		var calls []*history.Call
		for i := range n {
			var list []*history.Attempt
			for k := range attempts {
				list = append(list, try(time.Duration(k)*s, "503"))
			}
			if i < ok {
				list = append(list, try(time.Duration(attempts)*s, "ok"))
			}
			calls = append(calls, call("c"+strconv.Itoa(i+1), list...))
		}
		h := run(calls...)
		h.Capacity = &history.Capacity{Workers: 2, Service: 100 * ms, Queue: 50}
		return h
	}
	unbounded := load(60, 20*s, 4)
	unbounded.Capacity = nil
	busy := load(60, 20*s, 4)
	busy.Capacity.Workers = 1
	idle, shedding := load(60, time.Hour, 4), load(60, time.Hour, 4)
	idle.Capacity.Workers, shedding.Capacity.Workers = 10, 10
	shedding.Calls[200].Attempts[0].Work = &history.Work{Shed: "full"}
	table(t, loadAmplification, []row{
		{"never, and not for load", idle, Pass, "never got more attempts than it can do"},
		{"never, and some were turned away", shedding, Fail, "stayed down"},
		{"no capacity", unbounded, Skipped, "no bound"},
		{"calls alone are too many", busy, Skipped, "all that the server can do"},
		{"few calls", closed(19, 19, 1), Skipped, "fewer than 20"},
		{"recovers", load(60, 20*s, 4), Pass, "recovered 5s after the stall"},
		{"never", load(60, time.Hour, 4), Fail, "4.00 attempts a call kept it busy"},
		{"never, without retries", load(60, time.Hour, 1), Pass, "not for retries"},
		{"at last, too late", load(200, 140*s, 4), Fail, "stayed down"},
		{"recovers at the price of six attempts", load(60, 20*s, 6), Fail, "cost 6.0 attempts"},
		{"too early to tell", load(40, time.Hour, 4), Unknown, "too early"},
		{"a herd that gets through", closed(100, 100, 3), Pass, "recovered 3s after the start of all calls"},
		{"a herd that does not", closed(100, 80, 3), Fail, "fewer than 90 %"},
	})
}

// The figures of a run, counted by hand.
func TestLoad(t *testing.T) {
	h := load(60, 20*s, 4)
	for _, c := range h.Calls[100:110] { // the first second of the stall: worked on for clients that have gone
		c.Attempts[0].Work = &history.Work{Began: c.Started, Done: c.Started + s, Wasted: true}
		c.Attempts[1].Work = &history.Work{Shed: "full"}
	}
	l, ok := h.Load()
	if !ok || l.Calls != 600 || l.Attempts != 500+100*4 || l.Recovery != history.Recovered || l.Took != 5*s || l.Closed {
		t.Errorf("%+v", l)
	}
	if l.Worked != 10*s || l.Wasted != 10*s || l.Seconds[11].Wasted != 10*s || l.Seconds[11].Shed != 10 {
		t.Errorf("worked %v, wasted %v: %+v", l.Worked, l.Wasted, l.Seconds[11])
	}
	// 500 calls from the trigger on, of which 100 made four attempts; 100 until the recovery and one at it.
	if l.After != 800.0/500 || l.Outage != (400.0+1)/101 || l.Offered < 9.9 || l.Offered > 10.1 {
		t.Errorf("after %v, outage %v, offered %v", l.After, l.Outage, l.Offered)
	}
	// From 13 s on all of 40 attempts a second for 5 s, by 10 calls a second.
	if l.Peak != 4 || l.PeakAt != 13*s || l.PeakRate != 40 {
		t.Errorf("peak %v at %v, %v a second", l.Peak, l.PeakAt, l.PeakRate)
	}
	// More than 20 a second: 30 in second 12, 40 in 13 … 19, 10 more than the load in 20 (40), 21 (30): 22 has 20.
	if l.Overload != 10*s {
		t.Errorf("overload %v", l.Overload)
	}
	if v := loadAmplification.judge(h); !strings.Contains(strings.Join(v.Evidence, "\n"), "900 attempts for 600 calls") {
		t.Errorf("%v", v.Evidence)
	}
}
