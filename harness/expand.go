package harness

import (
	"cmp"
	"context"
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
	group  scenarios.Group
	offset time.Duration // from the start of the run, or from the end of the group that it waits for
	call   Call
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
	for _, g := range d.scenario.Calls {
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
		for range g.Count {
			id := "c" + strconv.Itoa(len(jobs)+1)
			path := strings.ReplaceAll(g.Path, "{call}", id)
			j := &job{id: id, group: g, offset: offset, call: Call{
				ID: id, Method: g.Method, URL: path, Header: header(g), KeyHonoured: g.Key && !g.KeyUntrusted,
			}}
			if g.Arrivals == scenarios.Poisson {
				offset += time.Duration(gaps.ExpFloat64() * float64(g.Every))
			} else {
				offset += g.Every
			}
			if !g.SameInstant {
				j.offset += time.Duration(skew.Int64N(int64(maxSkew)))
			}
			if g.Body != "" {
				j.call.Body = []byte(g.Body)
			}
			if g.Key {
				j.call.Key = key(keys)
			}
			resource := g.Resource
			if resource == "" {
				resource = path
			}
			call := &history.Call{
				ID: id, Group: g.Name, Method: g.Method, Path: path, Resource: resource, Keyed: g.Key,
				KeyHonoured: j.call.KeyHonoured, Fleet: g.Fleet, BodyLen: len(j.call.Body),
				Planned: texts, Endless: endless,
			}
			if len(j.call.Body) > 0 {
				call.BodyHash = server.Hash(j.call.Body)
			}
			rec.add(id, path)
			reg := server.Registration{Call: call, Route: g.Path, Schedule: schedule, Header: j.call.Header, Capped: j.abort}
			if d.client.Declared.Process {
				reg.Header = nil // a command line has no placeholder for header fields
			}
			srv.Register(reg)
			jobs = append(jobs, j)
		}
	}
	return jobs
}

func header(g scenarios.Group) http.Header {
	h := http.Header{"Accept": {"application/json"}}
	if g.Body != "" {
		h.Set("Content-Type", "application/json")
	}
	for k, v := range g.Header {
		h[http.CanonicalHeaderKey(k)] = v
	}
	return h
}

// key makes an idempotency key that an application might make: a UUID as a structured-field string, by
// draft-ietf-httpapi-idempotency-key-header §2.1. It is drawn from the seed, so that a run can be replayed.
func key(r *rand.Rand) string {
	const hex = "0123456789abcdef"
	b := make([]byte, 0, 38)
	b = append(b, '"')
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
	return string(append(b, '"'))
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
