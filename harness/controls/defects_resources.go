package controls

import (
	"context"
	"errors"
	"net/http"

	"github.com/retrychaos/retrychaos/harness"
)

// resourceDefects leave something behind.
func resourceDefects() []defect {
	return []defect{
		{
			name:   "leaks-bodies",
			breaks: "resources.released",
			doc:    "Neither reads nor closes the responses that it does not want.",
			wrong:  func(p *policy) { p.release = func(*http.Response) {} },
		},
		{
			name:   "does-not-drain",
			breaks: "resources.released",
			doc:    "Closes the responses that it does not want without reading them, so that each repeat needs a new connection.",
			wrong:  func(p *policy) { p.release = func(resp *http.Response) { _ = resp.Body.Close() } },
		},
		{
			name:   "leaks-a-goroutine",
			breaks: "resources.released",
			doc: "Has a goroutine of its own make the call, which hands the outcome to nobody once the application " +
				"has cancelled, and waits for ever to do so.",
			wrong: func(p *policy) { p.around = handOver },
		},
	}
}

// handOver makes the call in a goroutine that blocks on a channel without room when the caller has gone.
func handOver(next harness.Caller) harness.Caller {
	return harness.CallerFunc(func(ctx context.Context, call harness.Call) harness.Outcome {
		done := make(chan harness.Outcome)
		canceled := make(chan struct{})
		stop := context.AfterFunc(ctx, func() {
			if errors.Is(ctx.Err(), context.Canceled) {
				close(canceled)
			}
		})
		defer stop()
		go func() { done <- next.Call(ctx, call) }()
		select {
		case o := <-done:
			return o
		case <-canceled:
			return harness.Outcome{Err: ctx.Err()}
		}
	})
}
