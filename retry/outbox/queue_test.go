package outbox

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Whatever happens to a queue: what it hands out is due, within the bound of its
// host, the first of its Order, from a host with the fewest in flight, and there
// the longest due; and in the end everything has come out.
func TestQueue(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		q := newQueue()
		now := time.Unix(0, 0)
		perHost := rapid.IntRange(1, 3).Draw(r, "per host")
		waiting := map[ID]*item{}
		taken := map[ID]*item{}
		rows := map[string][]ID{}
		var id ID
		ready := func(it *item) bool {
			return !it.due.After(now) && (it.order == "" || rows[it.order][0] == it.id)
		}
		busy := func(host string) (n int) {
			for _, it := range taken {
				if it.host == host {
					n++
				}
			}
			return n
		}
		take := func(r *rapid.T) *item {
			it := q.take(now, perHost)
			for _, other := range waiting {
				if !ready(other) || busy(other.host) >= perHost {
					continue
				}
				if it == nil {
					r.Fatalf("%d is ready and was not taken", other.id)
				}
				if n, m := busy(other.host), busy(it.host); n < m || n == m && other.due.Before(it.due) {
					r.Fatalf("%d was taken before %d", it.id, other.id)
				}
			}
			if it == nil {
				return nil
			}
			if waiting[it.id] != it || !ready(it) || busy(it.host) >= perHost {
				r.Fatalf("%d should not have been taken", it.id)
			}
			delete(waiting, it.id)
			taken[it.id] = it
			return it
		}
		anyTaken := func(r *rapid.T) *item {
			var least *item
			for _, it := range taken {
				if least == nil || it.id < least.id {
					least = it
				}
			}
			if least == nil {
				r.Skip("none is taken")
			}
			delete(taken, least.id)
			return least
		}
		remove := func(it *item) {
			if it.order != "" {
				rows[it.order] = rows[it.order][1:]
			}
			q.remove(it)
		}
		r.Repeat(map[string]func(*rapid.T){
			"push": func(r *rapid.T) {
				id++
				it := &item{id: id, due: now.Add(time.Duration(rapid.IntRange(-2, 3).Draw(r, "due"))),
					host: fmt.Sprint(rapid.IntRange(1, 3).Draw(r, "host")), order: rapid.SampledFrom([]string{"", "", "a", "b"}).Draw(r, "order")}
				if it.order != "" {
					rows[it.order] = append(rows[it.order], id)
				}
				waiting[id] = it
				q.push(it)
			},
			"take": func(r *rapid.T) { take(r) },
			"again": func(r *rapid.T) {
				it := anyTaken(r)
				waiting[it.id] = it
				q.again(it, now.Add(time.Duration(rapid.IntRange(0, 3).Draw(r, "wait"))))
			},
			"remove": func(r *rapid.T) { remove(anyTaken(r)) },
			"later":  func(*rapid.T) { now = now.Add(1) },
			"": func(r *rapid.T) {
				if q.size != len(waiting)+len(taken) {
					r.Fatalf("size %d, want %d", q.size, len(waiting)+len(taken))
				}
				at, ok := q.next(perHost)
				if ok && at.After(now) != (func() bool { // next is in the future if nothing can be taken now
					for _, it := range waiting {
						if ready(it) && busy(it.host) < perHost {
							return false
						}
					}
					return true
				})() {
					r.Fatalf("next at %v, now %v", at, now)
				}
			},
		})
		for q.size > 0 {
			for _, it := range taken {
				delete(taken, it.id)
				remove(it)
			}
			now = now.Add(1)
			for take(r) != nil {
			}
			if len(taken) == 0 && now.After(time.Unix(0, 1_000_000)) {
				r.Fatalf("%d calls never come", q.size)
			}
		}
		if len(q.hosts)+len(q.orders) != 0 {
			r.Fatalf("an empty queue keeps %d hosts and %d orders", len(q.hosts), len(q.orders))
		}
	})
}
