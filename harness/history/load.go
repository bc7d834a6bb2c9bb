package history

import (
	"slices"
	"time"
)

// The rules by which a recovery is judged.
const (
	// LoadWindow is the sliding window over which shares and amplification are taken.
	LoadWindow = 5 * time.Second
	// RecoveredShare of the calls that start in a window must succeed for the server to be well.
	RecoveredShare = 0.9
	// RecoverWithin is how long after the end of its trigger a server may take.
	RecoverWithin = 2 * time.Minute
	// leastLoad is how long the load must have gone on after the trigger for a collapse to be called one.
	leastLoad = 30 * time.Second
	// fewCalls in a window say nothing about a share.
	fewCalls = 10
)

// Recovery is the word for what became of the server after its trigger.
type Recovery string

const (
	Recovered Recovery = "recovered"
	Collapsed Recovery = "collapsed" // the trigger has gone and the server is still down
	Undecided Recovery = "undecided" // the load ended too early to tell
)

// Load is what clients did to a server with a capacity, and what it did for them.
type Load struct {
	Calls    int
	Attempts int
	// From and End delimit the trigger; with none, both are the start of the first call, and the herd itself is it.
	From, End time.Duration
	Closed    bool // no calls start once the trigger is over: a closed herd

	Offered float64 // calls a second that start from the end of the trigger on; 0 for a closed herd
	// After is attempts ÷ calls, of the calls that started from the beginning of the trigger on.
	After float64
	// Outage is the same of the calls that started from then until the recovery.
	Outage float64
	// Peak is the largest attempts arrived ÷ calls started in any LoadWindow with calls to speak of, and PeakAt
	// where it begins. PeakRate is the most attempts a second in any LoadWindow.
	Peak     float64
	PeakAt   time.Duration
	PeakRate float64
	// Worked is what the workers were busy with together, and Wasted what of it helped nobody.
	Worked, Wasted time.Duration
	// Overload is the number of seconds in which more attempts arrived than the server can do.
	Overload time.Duration

	Recovery Recovery
	// Took is the time from the end of the trigger to the recovery, where there was one, and otherwise how long the
	// load went on without.
	Took time.Duration
	// Seconds is the course of the run.
	Seconds []Second
}

// A Second is one second of a run.
type Second struct {
	Calls     int // started
	Good      int // of these, succeeded in the end
	Attempts  int // arrived
	Succeeded int // calls that came to a good end in this second: the goodput
	Shed      int // attempts that were turned away
	Wasted    time.Duration
}

// Load returns what the calls did to the server; false where it had no capacity, or there were no calls.
//
// The server has recovered at the first instant after the trigger from which on, in every LoadWindow until the load
// ends, RecoveredShare of the calls that start succeed. That is the goodput as a share of the load offered at
// that time. A closed herd has recovered when RecoveredShare of its calls have succeeded. If that is not so within
// RecoverWithin, the server has collapsed, provided that the load went on for at least 30 s.
func (h *History) Load() (Load, bool) {
	if h.Capacity == nil || len(h.Calls) == 0 {
		return Load{}, false
	}
	l := Load{Calls: len(h.Calls)}
	first, last := h.Calls[0].Started, time.Duration(0)
	for _, c := range h.Calls {
		first, last = min(first, c.Started), max(last, c.Started)
	}
	l.From, l.End = first, first
	for i, t := range h.Triggers {
		if i == 0 {
			l.From = t.From
		}
		l.From, l.End = min(l.From, t.From), max(l.End, t.To)
	}
	l.Closed = last < l.End+LoadWindow
	l.course(h)
	l.recovery(h, last)
	l.ratios(h, last)
	return l, true
}

// course fills in Seconds and what is counted by the second.
func (l *Load) course(h *History) {
	at := func(t time.Duration) *Second {
		i := int(max(0, t) / time.Second)
		for len(l.Seconds) <= i {
			l.Seconds = append(l.Seconds, Second{})
		}
		return &l.Seconds[i]
	}
	for _, c := range h.Calls {
		at(c.Started).Calls++
		if c.Outcome.OK {
			at(c.Started).Good++
			at(c.Ended).Succeeded++
		}
		l.Attempts += len(c.Attempts)
		for _, a := range c.Attempts {
			s := at(a.At)
			s.Attempts++
			w := a.Work
			if w == nil {
				continue
			}
			if w.Shed != "" {
				s.Shed++
			}
			if w.Done > 0 {
				l.Worked += w.Done - w.Began
			}
			if w.Wasted {
				l.Wasted += w.Done - w.Began
				at(w.Done).Wasted += w.Done - w.Began
			}
		}
	}
	for _, s := range l.Seconds {
		if float64(s.Attempts) > h.Capacity.Rate() {
			l.Overload += time.Second
		}
	}
	for i := range l.Seconds {
		calls, attempts := 0, 0
		for _, s := range l.window(i) {
			calls, attempts = calls+s.Calls, attempts+s.Attempts
		}
		l.PeakRate = max(l.PeakRate, float64(attempts)/LoadWindow.Seconds())
		if p := float64(attempts) / float64(max(1, calls)); calls >= fewCalls && p > l.Peak {
			l.Peak, l.PeakAt = p, time.Duration(i)*time.Second
		}
	}
}

// window returns the seconds of the LoadWindow that begins with second i.
func (l *Load) window(i int) []Second {
	return l.Seconds[min(i, len(l.Seconds)):min(i+int(LoadWindow/time.Second), len(l.Seconds))]
}

func (l *Load) recovery(h *History, last time.Duration) {
	l.Recovery = Recovered
	if l.Closed {
		var ends []time.Duration
		for _, c := range h.Calls {
			if c.Outcome.OK {
				ends = append(ends, c.Ended)
			}
		}
		need := int(RecoveredShare*float64(len(h.Calls)) + 0.5)
		if len(ends) < need || need == 0 {
			l.Recovery, l.Took = Collapsed, max(0, h.End-l.End)
			return
		}
		slices.Sort(ends)
		if l.Took = max(0, ends[need-1]-l.End); l.Took > RecoverWithin {
			l.Recovery = Collapsed
		}
		return
	}
	// The end of the trigger rounded up to a whole second, so that no window reaches back into it.
	from := int((l.End + time.Second - 1) / time.Second)
	to := int(last/time.Second) + 1 - int(LoadWindow/time.Second)
	well := from
	for i := from; i <= to; i++ {
		calls, good := 0, 0
		for _, s := range l.window(i) {
			calls, good = calls+s.Calls, good+s.Good
		}
		if calls >= fewCalls && float64(good) < RecoveredShare*float64(calls) {
			well = i + 1
		}
	}
	l.Took = max(0, time.Duration(well)*time.Second-l.End)
	switch {
	case well > to && last-l.End < leastLoad:
		l.Recovery, l.Took = Undecided, last-l.End
	case well > to:
		l.Recovery, l.Took = Collapsed, last-l.End
	case l.Took > RecoverWithin:
		l.Recovery = Collapsed
	}
}

// ratios fills in what depends on the trigger and on the recovery.
func (l *Load) ratios(h *History, last time.Duration) {
	var after, afterTries, outage, outageTries, offered int
	until := l.End + l.Took
	for _, c := range h.Calls {
		if c.Started < l.From {
			continue
		}
		after, afterTries = after+1, afterTries+len(c.Attempts)
		if c.Started <= until {
			outage, outageTries = outage+1, outageTries+len(c.Attempts)
		}
		if c.Started >= l.End {
			offered++
		}
	}
	l.After = float64(afterTries) / float64(max(1, after))
	l.Outage = float64(outageTries) / float64(max(1, outage))
	if !l.Closed {
		l.Offered = float64(offered) / (last - l.End).Seconds()
	}
}
