package outbox

import (
	"container/heap"
	"time"
)

// An item is a waiting call, as the queue knows it. The rest is in the file.
type item struct {
	id    ID
	due   time.Time
	host  string
	order string
}

// A queue says which call is next. It is held in memory, and made again from
// the file at Open. Its user locks it.
type queue struct {
	hosts  map[string]*hostQueue
	orders map[string][]*item // calls with an Order: only the first is in a hostQueue, or at work
	size   int                // waiting and at work
}

type hostQueue struct {
	due  dueHeap
	busy int // attempts in flight
}

func newQueue() *queue {
	return &queue{hosts: map[string]*hostQueue{}, orders: map[string][]*item{}}
}

// push adds a call.
func (q *queue) push(it *item) {
	q.size++
	if it.order != "" {
		q.orders[it.order] = append(q.orders[it.order], it)
		if len(q.orders[it.order]) > 1 {
			return
		}
	}
	q.ready(it)
}

func (q *queue) ready(it *item) {
	h := q.hosts[it.host]
	if h == nil {
		h = &hostQueue{}
		q.hosts[it.host] = h
	}
	heap.Push(&h.due, it)
}

// take returns a call that is due, or nil. Either again or remove must follow.
func (q *queue) take(now time.Time, perHost int) *item {
	var best *hostQueue
	for _, h := range q.hosts {
		if len(h.due) == 0 || h.busy >= perHost || h.due[0].due.After(now) {
			continue
		}
		if best == nil || h.busy < best.busy || h.busy == best.busy && h.due.before(h.due[0], best.due[0]) {
			best = h
		}
	}
	if best == nil {
		return nil
	}
	best.busy++
	return heap.Pop(&best.due).(*item)
}

// again puts back a call that was taken.
func (q *queue) again(it *item, due time.Time) {
	q.hosts[it.host].busy--
	it.due = due
	q.ready(it)
}

// remove forgets a call that was taken.
func (q *queue) remove(it *item) {
	q.size--
	h := q.hosts[it.host]
	h.busy--
	if it.order != "" {
		row := q.orders[it.order][1:]
		if len(row) == 0 {
			delete(q.orders, it.order)
		} else {
			q.orders[it.order] = row
			q.ready(row[0])
		}
	}
	if h.busy == 0 && len(h.due) == 0 {
		delete(q.hosts, it.host)
	}
}

// next returns when the next call is due that may be taken then.
func (q *queue) next(perHost int) (at time.Time, ok bool) {
	for _, h := range q.hosts {
		if len(h.due) > 0 && h.busy < perHost && (!ok || h.due[0].due.Before(at)) {
			at, ok = h.due[0].due, true
		}
	}
	return at, ok
}

// A dueHeap has the call on top that has been due for longest.
type dueHeap []*item

func (d dueHeap) before(a, b *item) bool {
	if !a.due.Equal(b.due) {
		return a.due.Before(b.due)
	}
	return a.id < b.id
}

func (d dueHeap) Len() int           { return len(d) }
func (d dueHeap) Less(i, j int) bool { return d.before(d[i], d[j]) }
func (d dueHeap) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *dueHeap) Push(x any)        { *d = append(*d, x.(*item)) }

func (d *dueHeap) Pop() any {
	old := *d
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*d = old[:len(old)-1]
	return it
}
