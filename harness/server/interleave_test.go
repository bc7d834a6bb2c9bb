package server

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/scenarios"
)

// However the attempts of one key fall over each other, and whatever happens to them on the wire, there is one
// effect at most; every good answer tells of it; and once the application's own failure is stored, nothing else
// ever comes.
func TestOneKeyOneEffect(t *testing.T) {
	kinds := []string{"ok", "503", "503@after_commit", "503@commit_late late=2s", "empty_response", "empty_response@after_commit",
		"connection_reset@after_commit", "hang", "hang@after_commit", "hang@commit_late late=2s", "latency delay=3s",
		"latency@after_commit delay=3s", "latency@commit_late delay=3s", "truncated_body", "500 stored=true", "500@after_commit stored=true"}
	rapid.Check(t, func(rt *rapid.T) {
		profile := rapid.SampledFrom([]scenarios.Profile{scenarios.Plain, scenarios.IETF, scenarios.Stripe}).Draw(rt, "profile")
		met := rapid.SliceOfN(rapid.SampledFrom(kinds), 1, 8).Draw(rt, "faults")
		starts := rapid.SliceOfN(rapid.IntRange(0, 8), len(met), len(met)).Draw(rt, "starts")
		patience := rapid.SliceOfN(rapid.IntRange(1, 6), len(met), len(met)).Draw(rt, "patience")
		var h *history.History
		answers := make([]answer, len(met))
		bubble(t, Config{Keys: scenarios.Honour, Profile: profile}, []route{{path: "/a", sequence: met}}, func(r *rig) {
			var wg sync.WaitGroup
			for i := range met {
				wg.Go(func() {
					time.Sleep(time.Duration(starts[i]) * time.Second / 2)
					c := &rig{t: r.t, addr: r.addr, client: &http.Client{Transport: r.client.Transport, Timeout: time.Duration(patience[i])*time.Second + time.Millisecond}}
					answers[i] = c.send("POST", "/a", "x", "Idempotency-Key", `"k"`)
				})
			}
			wg.Wait()
			r.srv.AwaitLate(r.t.Context())
			h = r.history()
		})
		if n := len(h.Effects); n > 1 {
			rt.Fatalf("%d effects, of attempts %s", n, effects(h))
		}
		good := map[string]bool{}
		for _, a := range answers {
			if a.status/100 == 2 && a.err == nil {
				good[a.body] = true
			}
		}
		for body := range good {
			if len(good) > 1 || len(h.Effects) != 1 || !strings.Contains(body, `"effect":1`) {
				rt.Fatalf("%d effects, good answers %v", len(h.Effects), good)
			}
		}
		refused := false
		for _, a := range h.Calls[0].Attempts {
			if refused && (a.Effect != 0 || a.Status/100 == 2) {
				rt.Fatalf("after a stored failure, attempt %d had effect %d and status %d", a.N, a.Effect, a.Status)
			}
			refused = refused || a.Stored && len(h.Effects) == 0
		}
		if len(h.Findings) > 0 {
			rt.Fatal(fmt.Sprint(h.Findings))
		}
	})
}
