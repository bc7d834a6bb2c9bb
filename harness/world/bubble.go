package world

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const (
	// settle is how much virtual time leftover goroutines have to end by
	// themselves: longer than the idle timeout of any usual client.
	settle     = 10 * time.Minute
	settleStep = 100 * time.Microsecond

	// settleReal bounds the settling in real time, for a leftover that spins
	// on a very short ticker. leaveReal, or realCap if that is shorter, bounds
	// it when even the steps cannot be taken, because a leftover is running or
	// waits for something outside the bubble.
	settleReal = time.Second
	leaveReal  = 10 * time.Second

	// horizon is when a function that has not returned counts as deadlocked.
	// It keeps virtual time far from the end of the clock in 2262: there a
	// ticker would fire for ever at the same instant, in a loop of the runtime
	// that nothing can interrupt.
	horizon   = 100 * 365 * 24 * time.Hour
	firstLook = time.Minute
)

// Lingerer is a goroutine that outlived the function but ended by itself.
type Lingerer struct {
	Stack  string        // where it was when the function returned
	Within time.Duration // virtual time after the return, rounded up by as much as a half, in which it ended
}

// BubbleReport is what [Bubble] saw. At most one of Deadlock and Stuck is set.
type BubbleReport struct {
	// Leftovers are the stacks of the goroutines that were still in the bubble
	// when it was given up; with Deadlock or Stuck that includes the
	// function's own.
	Leftovers []string

	// Lingered are the goroutines that were there when the function returned
	// and ended within ten virtual minutes.
	Lingered []Lingerer

	// Deadlock: the function can never return. Everything in the bubble is
	// blocked, and a century of virtual time did not wake it.
	Deadlock bool

	// Stuck: the cap of real time was reached. Either the function had not
	// returned (a hot loop, or a wait for something outside the bubble), or it
	// had and a leftover goroutine did one of the two.
	Stuck bool

	// Unsettled: the leftovers were noticed too late to let time run, so it is
	// not known whether they would have ended by themselves. It takes a
	// goroutine outside the bubble that ends at the same time, and is rare.
	Unsettled bool

	// Abandoned: goroutines of the bubble are still in this process, and stay.
	Abandoned bool

	// Returned: the function returned, panicked or called runtime.Goexit.
	Returned bool

	// Panic is the value the function panicked with and PanicStack where.
	// A panic in another goroutine of the bubble ends the process, as always.
	Panic      any
	PanicStack string

	// Goexit: the function ended by runtime.Goexit, which is what FailNow and
	// SkipNow of a *testing.T do.
	Goexit bool

	// Simulated is the virtual time until the function returned. It is zero if
	// Stuck without Returned, and the horizon of a century if Deadlock.
	Simulated time.Duration

	// Real is the real time that Bubble took.
	Real time.Duration
}

// Bubble runs f in a [testing/synctest] bubble and returns when the bubble has
// ended, or when it had to be abandoned because it never would; realCap bounds
// the real time that f gets. Whatever f does, t does not fail by it and the
// caller neither panics nor exits; f runs on a goroutine of its own and must
// not use t. (Under the race detector a race does fail t, as it should.)
//
// When f has returned and everything in the bubble is blocked, goroutines that
// are left get ten virtual minutes to end. If any does not, virtual time is
// stopped, by parking a goroutine of the bubble on something outside it, and
// the bubble is left as it is. (This has ten seconds of real time of its own,
// and no more than realCap.) An abandoned hot loop cannot be stopped from
// here; [Network.Freeze] stops one that uses the network.
//
// Bubble must not be called inside a bubble, where it panics, nor from a
// t.Cleanup function, where package testing ends the process. It may be called
// any number of times with one t, also at the same time. It is fastest alone:
// with two at once each has to list all goroutines of the process to know
// whether it has left any, about 0.1 ms, more if there are thousands. t may be
// the *testing.T of a Ginkgo suite or one that testing.Main made in an
// ordinary program.
func Bubble(t *testing.T, realCap time.Duration, f func()) BubbleReport {
	if t == nil {
		panic("world: Bubble needs a *testing.T")
	}
	start := time.Now()
	b := &bubble{
		f:        f,
		realCap:  realCap,
		returned: make(chan struct{}, 1),
		out:      make(chan outcome, 2),
	}
	b.crowded.Store(live.Add(1) > 1)
	b.serial = started.Add(1)
	defer live.Add(-1)

	timer := time.NewTimer(realCap)
	defer timer.Stop()
	go b.root(t)

	rep, err := b.wait(timer)
	if err != nil {
		panic(err)
	}
	rep.Real = time.Since(start)
	return rep
}

// live and started count bubbles: with another one about, the number of
// goroutines in the process says nothing about ours. An abandoned hot loop
// may go on starting goroutines, so it counts as live for good.
var live, started atomic.Int64

// bubble is one call of Bubble. Its channels are made outside the bubble.
type bubble struct {
	f        func()
	realCap  time.Duration
	id       atomic.Uint64
	returned chan struct{} // f has returned
	out      chan outcome  // from whichever of main and root knows first
	hurry    atomic.Bool   // settleReal is over
	gone     atomic.Bool   // the caller has been given its report
	crowded  atomic.Bool
	serial   int64

	rep BubbleReport // main's, until it hands it over
}

type outcome struct {
	rep BubbleReport
	err any // a panic that is the caller's own fault
}

// wait is the caller's side.
func (b *bubble) wait(timer *time.Timer) (BubbleReport, any) {
	returned := false
	settling := (<-chan time.Time)(nil)
	for {
		select {
		case o := <-b.out:
			return o.rep, o.err
		case <-b.returned:
			returned = true
			timer.Reset(min(b.realCap, leaveReal))
			hurry := time.NewTimer(settleReal)
			defer hurry.Stop()
			settling = hurry.C
		case <-settling:
			b.hurry.Store(true)
		case <-timer.C:
			b.gone.Store(true)
			live.Add(1)
			return BubbleReport{
				Stuck: true, Abandoned: true, Returned: returned,
				Leftovers: stacksOf(bubbleGoroutines(b.id.Load())),
			}, nil
		}
	}
}

// root is the goroutine that becomes the root of the bubble: the deadlock
// panic of synctest surfaces here, and so does the Goexit with which
// synctest.Test reports that the inner test has failed.
func (b *bubble) root(t *testing.T) {
	defer func() {
		switch r := recover(); {
		case r == nil:
			b.out <- outcome{rep: b.rep}
		case strings.HasPrefix(fmt.Sprint(r), "deadlock: "):
			rep := b.rep
			rep.Abandoned, rep.Unsettled, rep.Deadlock = true, rep.Returned, !rep.Returned
			rep.Leftovers = stacksOf(bubbleGoroutines(b.id.Load()))
			b.out <- outcome{rep: rep}
		default:
			b.out <- outcome{err: r}
		}
	}()
	synctest.Test(t, func(*testing.T) { b.main() })
}

// main is the bubble's main goroutine.
func (b *bubble) main() {
	b.id.Store(currentBubble())
	base := runtime.NumGoroutine()
	begun := time.Now()

	done := make(chan struct{})
	go b.call(done)
	if !b.await(done, begun) {
		b.rep = BubbleReport{Deadlock: true, Simulated: time.Since(begun)}
		b.abandon(bubbleGoroutines(b.id.Load()))
	}
	b.rep.Returned = true
	b.rep.Simulated = time.Since(begun)
	b.returned <- struct{}{}

	synctest.Wait()
	if b.empty(base) {
		return
	}
	if left := b.settle(bubbleGoroutines(b.id.Load())); len(left) > 0 {
		b.abandon(left)
	}
}

// call runs f so that neither its panic nor its Goexit gets any further.
func (b *bubble) call(done chan<- struct{}) {
	normal := false
	defer func() {
		if !normal {
			if r := recover(); r != nil {
				b.rep.Panic, b.rep.PanicStack = r, string(debug.Stack())
			} else {
				b.rep.Goexit = true
			}
		}
		close(done)
	}()
	b.f()
	normal = true
}

// await waits for done until the horizon. It looks up now and then in virtual
// time, at intervals that grow with it, so that when the caller has given up
// while a ticker keeps the bubble going, this goroutine parks and stops the
// clock: soon if the clock runs slowly in real time, and after a quarter more
// of the same time in any case.
func (b *bubble) await(done <-chan struct{}, begun time.Time) bool {
	step := firstLook
	timer := time.NewTimer(step)
	defer timer.Stop()
	for {
		select {
		case <-done:
			return true
		case <-timer.C:
		}
		b.parkIfGone()
		passed := time.Since(begun)
		if passed >= horizon {
			synctest.Wait() // f may be due at the same instant
			select {
			case <-done:
				return true
			default:
				return false
			}
		}
		step = min(step+step/4, horizon-passed)
		timer.Reset(step)
	}
}

// empty tells cheaply, if it can, that nothing is left in the bubble. A
// goroutine that has just ended may be counted for a moment longer.
func (b *bubble) empty(base int) bool {
	for range 3 {
		if b.crowded.Load() || live.Load() > 1 || started.Load() != b.serial {
			return len(bubbleGoroutines(b.id.Load())) == 0
		}
		if runtime.NumGoroutine() <= base {
			return true
		}
		runtime.Gosched()
	}
	return false
}

// settle lets virtual time run and returns the goroutines that do not end. The
// costly full list is taken only when a goroutine of the process has begun or
// ended since the last look.
func (b *bubble) settle(first []goroutine) []goroutine {
	left := first
	waiting := make(map[uint64]goroutine, len(first))
	for _, g := range first {
		waiting[g.id] = g
	}
	look := func(within time.Duration) {
		left = bubbleGoroutines(b.id.Load())
		here := make(map[uint64]bool, len(left))
		for _, g := range left {
			here[g.id] = true
		}
		for _, g := range first {
			if _, ok := waiting[g.id]; ok && !here[g.id] {
				b.rep.Lingered = append(b.rep.Lingered, Lingerer{Stack: g.stack, Within: within})
				delete(waiting, g.id)
			}
		}
	}
	count, waited := countGoroutines(), time.Duration(0)
	for step := settleStep; len(left) > 0 && waited < settle && !b.hurry.Load(); step += step / 2 {
		step = min(step, settle-waited)
		time.Sleep(step)
		synctest.Wait()
		b.parkIfGone()
		waited += step
		if now := countGoroutines(); now != count {
			count = now
			look(waited)
		}
	}
	if len(left) > 0 {
		look(waited)
	}
	return left
}

// abandon hands over the report and stops the bubble's clock for good.
func (b *bubble) abandon(left []goroutine) {
	b.rep.Leftovers = stacksOf(left)
	b.rep.Abandoned = true
	b.out <- outcome{rep: b.rep}
	<-forever
}

func (b *bubble) parkIfGone() {
	if b.gone.Load() {
		<-forever
	}
}
