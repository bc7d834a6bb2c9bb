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
			doc: "Watches for a cancellation in a goroutine of its own, which then waits for ever to tell of it: " +
				"nobody listens any more.",
			wrong: func(p *policy) { p.around = watched },
		},
	}
}

// watched makes the call beside a watcher that a cancellation leaves blocked on a channel without a reader.
func watched(next harness.Caller) harness.Caller {
	return harness.CallerFunc(func(ctx context.Context, call harness.Call) harness.Outcome {
		told := make(chan error)
		stop := context.AfterFunc(ctx, func() {
			if errors.Is(ctx.Err(), context.Canceled) {
				told <- ctx.Err()
			}
		})
		o := next.Call(ctx, call)
		if ctx.Err() == nil {
			stop()
		}
		return o
	})
}
