package harness

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/server"
	"github.com/retrychaos/retrychaos/scenarios"
)

// job is one call to be made.
type job struct {
	id     string
	group  *scenarios.Group // of the scenario; a herd shares it
	offset time.Duration    // from the start of the run, or from the end of the group that it waits for
	call   Call
	dial   server.Dial
	caller Caller

	mu      sync.Mutex
	cancel  context.CancelFunc
	aborted bool
}

// arm makes abort work; an abort that came before takes effect at once.
func (j *job) arm(cancel context.CancelFunc) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.cancel = cancel
	if j.aborted {
		cancel()
	}
}

// abort gives the call up on behalf of the harness.
func (j *job) abort() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.aborted = true
	if j.cancel != nil {
		j.cancel()
	}
}

// maxSkew spreads the starts of calls that start together: clients that seed their jitter from the clock
// would else all draw the same number in a world where all start in the same nanosecond.
const maxSkew = time.Millisecond

// expand makes the scenario's groups into calls and registers them with both recorders.
func (d *drive) expand(rec *recorder, srv *server.Server) []*job {
	var jobs []*job
	skew := rand.New(rand.NewPCG(d.seed, 1))
	keys := rand.New(rand.NewPCG(d.seed, 2))
	gaps := rand.New(rand.NewPCG(d.seed, 3))
	for i := range d.scenario.Calls {
		g := &d.scenario.Calls[i]
		sequence := g.Faults
		if sequence == nil {
			sequence = d.scenario.Faults
		}
		schedule := faults.Schedule{Sequence: sequence, Storms: d.scenario.Storms, Draw: d.scenario.Draw}
		planned, endless := schedule.Planned()
		var texts []string
		for _, f := range planned {
			texts = append(texts, f.String())
		}
		offset := g.Start
		payload, sent := g.Payload(), g.Payload() // what clients have in their hands may change
		var hash string
		if len(sent) > 0 {
			hash = server.Hash(sent)
		}
		fields := header(*g) // shared by the calls, of which a herd has many: nobody writes to it
		if d.scenario.Server.Token != scenarios.TokenNone {
			fields.Set("Authorization", "Bearer "+server.StaleToken)
		}
		kept := lasting(fields)
		switch {
		case d.client.Declared.Remote:
			// A driver is given one line a field, in which values are joined (RFC 9110 §5.3).
			maps.DeleteFunc(kept, func(_ string, values []string) bool { return len(values) > 1 })
		case d.client.Declared.Process || d.free:
			kept = nil // a command line has no placeholder for header fields
		}
		for range g.Count {
			id := "c" + strconv.Itoa(len(jobs)+1)
			path := strings.ReplaceAll(g.Path, "{call}", id)
			j := &job{id: id, group: g, dial: server.Dial{Path: path, Method: g.Method}, offset: offset, call: Call{
				ID: id, Method: g.Method, URL: path, Header: fields, KeyHonoured: g.Key && !g.KeyUntrusted,
				KeyText: strings.ReplaceAll(g.KeyText, "{call}", id), Idempotent: g.Idempotent,
			}}
			if g.Arrivals == scenarios.Poisson {
				offset += time.Duration(gaps.ExpFloat64() * float64(g.Every))
			} else {
				offset += g.Every
			}
			if !g.SameInstant {
				j.offset += time.Duration(skew.Int64N(int64(maxSkew)))
			}
			if j.call.Body = payload; g.Stream {
				j.call.Stream, j.call.stream = true, onlyRead(payload)
			}
			if g.Key {
				j.call.Key = wireKey(cmp.Or(j.call.KeyText, uuid(keys)), d.scenario.Server.Profile)
			}
			resource := g.Resource
			if resource == "" {
				resource = path
			}
			call := &history.Call{
				ID: id, Group: g.Name, Method: g.Method, Path: path, Resource: resource, Keyed: g.Key,
				KeyHonoured: j.call.KeyHonoured, KeyText: j.call.KeyText, MayRepeat: g.Idempotent, Fleet: g.Fleet, BodyLen: len(sent), BodyHash: hash,
				Stream:  g.Stream,
				Planned: texts, Endless: endless,
			}
			rec.add(id, path)
			srv.Register(server.Registration{Call: call, Route: g.Path, Schedule: schedule, Header: kept, Body: sent, Capped: j.abort})
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// onlyRead returns a body as a stream: something of which net/http knows neither the length nor how to have it again.
func onlyRead(body []byte) io.Reader { return struct{ io.Reader }{bytes.NewReader(body)} }

func header(g scenarios.Group) http.Header {
	h := http.Header{"Accept": {"application/json"}}
	if g.Body != "" || g.BodySize > 0 {
		h.Set("Content-Type", "application/json")
	}
	for k, v := range g.Header {
		h[http.CanonicalHeaderKey(k)] = v
	}
	return h
}

// lasting returns the fields that every attempt of a call must carry as they are. The others change with good
// reason: a token is refreshed (RFC 9110 §15.5.2), and what was refused with 417 is repeated without Expect
// (RFC 9110 §10.1.1).
func lasting(h http.Header) http.Header {
	h = h.Clone()
	h.Del("Authorization")
	h.Del("Expect")
	return h
}

// wireKey is the form in which an application that reads its server's documentation sends a key: bare for
// Stripe, else a structured-field string, by draft-ietf-httpapi-idempotency-key-header §2.1.
func wireKey(key string, p scenarios.Profile) string {
	if p == scenarios.Stripe {
		return key
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
}

// uuid makes an idempotency key that an application might make. It is drawn from the seed, so that a run
// can be replayed.
func uuid(r *rand.Rand) string {
	const hex = "0123456789abcdef"
	b := make([]byte, 0, 36)
	for i := range 36 {
		switch i {
		case 8, 13, 18, 23:
			b = append(b, '-')
		case 14:
			b = append(b, '4')
		case 19:
			b = append(b, hex[8+r.IntN(4)])
		default:
			b = append(b, hex[r.IntN(16)])
		}
	}
	return string(b)
}

// mix derives a seed of its own for the n-th instance (splitmix64).
func mix(seed, n uint64) uint64 {
	z := seed + n*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// triggers lists what makes the scenario's server fail or slow for a time: its incidents and the storms of faults.
func triggers(s scenarios.Scenario) []history.Trigger {
	var list []history.Trigger
	for _, i := range s.Server.Incidents {
		list = append(list, history.Trigger{From: i.At, To: i.End(), What: string(i.Do)})
	}
	for _, st := range s.Storms {
		list = append(list, history.Trigger{From: st.From, To: st.To, What: st.Fault.String()})
	}
	slices.SortStableFunc(list, func(a, b history.Trigger) int { return cmp.Compare(a.From, b.From) })
	return list
}

// longest returns when the last call of the scenario is over if every call ends by its deadline.
func longest(s scenarios.Scenario) time.Duration {
	ends := map[string]time.Duration{}
	var last time.Duration
	for range s.Calls { // a chain of groups is at most as long as their number
		for _, g := range s.Calls {
			deadline := g.Deadline
			if deadline <= 0 {
				deadline = 24 * time.Hour
			}
			if g.CancelAfter > 0 {
				deadline = min(deadline, g.CancelAfter)
			}
			end := ends[g.After] + g.Start + time.Duration(g.Count-1)*g.Every + deadline
			if g.Arrivals == scenarios.Poisson {
				// Ten standard deviations of the sum of Count exponential gaps.
				end += time.Duration(10 * math.Sqrt(float64(g.Count)) * float64(g.Every))
			}
			ends[g.Name] = end
			last = max(last, end)
		}
	}
	return last
}
