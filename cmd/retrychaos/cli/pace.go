package cli

import (
	"context"
	"sync/atomic"
	"time"
)

const (
	// onTime is how late this process may be for its own timers while another scenario starts. A client's
	// waits are seen no sharper than that.
	onTime = 15 * time.Millisecond
	// patience bounds the wait for that, on a machine that is busy with other things.
	patience = 2 * time.Second
	// again is how many scenarios are run side by side when they are run again, and one more for each twenty.
	again = 16
)

// pace lets scenarios on the real clock start only as fast as the machine can run them: where a thousand
// start at once, all are late, and what is measured is the machine.
type pace struct{ late atomic.Int64 }

// watchPace measures until ctx ends.
func watchPace(ctx context.Context) *pace {
	p := &pace{}
	go func() {
		const every = 5 * time.Millisecond
		for ctx.Err() == nil {
			due := time.Now().Add(every)
			time.Sleep(every)
			p.late.Store(int64(time.Since(due)))
		}
	}()
	return p
}

// step waits for a good moment to start a scenario with so many calls.
func (p *pace) step(calls int) {
	time.Sleep(2*time.Millisecond + time.Duration(calls)*200*time.Microsecond)
	for end := time.Now().Add(patience); time.Duration(p.late.Load()) > onTime && time.Now().Before(end); {
		time.Sleep(time.Millisecond)
	}
}
