package world

import (
	"sync"
	"time"
)

// deadline is the read or the write deadline of a memConn, guarded by its lock.
// It owns one timer, made when a deadline is first set and used again after,
// because servers move their deadlines with every request.
type deadline struct {
	passed bool
	at     time.Time // on this process's clock; zero if there is none to come
	timer  *time.Timer
}

// set changes the deadline and wakes the waiters of cond when it passes. The
// caller holds cond.L.
func (d *deadline) set(t time.Time, cond *sync.Cond) {
	d.clear()
	if t.IsZero() {
		return
	}
	wait := time.Until(t)
	if wait <= 0 {
		d.passed = true
		cond.Broadcast()
		return
	}
	d.at = time.Now().Add(wait)
	if d.timer != nil {
		d.timer.Reset(wait)
		return
	}
	d.timer = time.AfterFunc(wait, func() {
		cond.L.Lock()
		defer cond.L.Unlock()
		// A firing for an earlier deadline may come after it was moved.
		if !d.at.IsZero() && !time.Now().Before(d.at) {
			d.passed = true
			cond.Broadcast()
		}
	})
}

// clear removes the deadline.
func (d *deadline) clear() {
	d.passed = false
	d.at = time.Time{}
	if d.timer != nil {
		d.timer.Stop()
	}
}
