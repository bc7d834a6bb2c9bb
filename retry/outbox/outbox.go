package outbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/retrychaos/retrychaos/retry"
)

// An Outbox is a file of calls that are to be delivered. It is safe for
// concurrent use. Make one with [Open], and close it.
type Outbox struct {
	opts   Options
	store  *store
	client *retry.Client
	wake   chan struct{} // tells Run that the queue has changed

	mu        sync.Mutex
	queue     *queue
	busy      int
	dead      int
	delivered int
	closed    bool
	stop      context.CancelFunc // ends the Run that goes on, if any
	stopped   chan struct{}      // closed when it has ended
	users     sync.WaitGroup     // of the store
}

// Open opens the outbox in the file path, and makes the file if there is none:
// readable by its owner only, for it holds calls as they are. No call is
// delivered until Run.
//
// The error is a [*LockedError] when the file is in use, a [*DamagedError] or a
// [*FormatError] when it cannot be read, an [*OptionError] or one of the policy,
// or one of the file system.
func Open(path string, opts Options) (*Outbox, error) {
	opts = opts.withDefaults()
	if err := opts.validate(); err != nil {
		return nil, err
	}
	// One attempt at a time: the outbox itself waits and counts, in the file.
	single := opts.Policy
	single.MaxAttempts = 1
	client, err := retry.NewClient(single, opts.Client...)
	if err != nil {
		return nil, fmt.Errorf("outbox: Options.Client: %w", err)
	}
	s, err := openStore(path, opts.LockTimeout)
	if err != nil {
		return nil, err
	}
	o := &Outbox{opts: opts, store: s, client: client, wake: make(chan struct{}, 1), queue: newQueue()}
	if err := o.fill(); err != nil {
		s.db.Close()
		return nil, err
	}
	return o, nil
}

// fill makes the queue from the file.
func (o *Outbox) fill() error {
	type row struct {
		it  *item
		seq uint64
	}
	var rows []row
	now := time.Now()
	err := o.store.load(bucketWaiting, func(e entry) {
		it := &item{id: e.id, due: e.state.Due, host: e.rec.call(nil).host(), order: e.rec.Order}
		// A clock that was set back must not make a wait longer than it was.
		if latest := now.Add(e.state.Wait); it.due.After(latest) {
			it.due = latest
		}
		rows = append(rows, row{it, e.state.Seq})
	})
	if err != nil {
		return err
	}
	slices.SortFunc(rows, func(a, b row) int { return cmp.Compare(a.seq, b.seq) })
	for _, r := range rows {
		o.queue.push(r.it)
	}
	return o.store.load(bucketDead, func(entry) { o.dead++ })
}

// use keeps the store open until the function that it returns is called.
func (o *Outbox) use() (done func(), err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return nil, ErrClosed
	}
	o.users.Add(1)
	return o.users.Done, nil
}

// Enqueue stores the call, and returns when it is on the disk (fsync): from then
// on it is delivered or becomes a dead letter, whatever happens to the process.
//
// A call with the key of one that is still in the file, to the same server, is
// that call: its ID is returned, and nothing is stored. So a program that does
// not know whether Enqueue succeeded, because it was killed or has got an error
// of the file system, may enqueue again with a key of its own.
//
// The error is a [*CallError], an [*UnsafeError], a [*KeyReusedError], ctx's,
// ErrClosed, or one of the file system. ctx is looked at once, before anything
// is written.
func (o *Outbox) Enqueue(ctx context.Context, c Call) (ID, error) {
	done, err := o.use()
	if err != nil {
		return 0, err
	}
	defer done()
	if c, err = c.prepare(o.opts); err != nil {
		return 0, err
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	id, fresh, st, err := o.store.add(c, time.Now())
	if err != nil {
		return 0, err
	}
	if fresh {
		o.push(id, c, st.Due)
	}
	return id, nil
}

func (o *Outbox) push(id ID, c Call, due time.Time) {
	o.mu.Lock()
	o.queue.push(&item{id: id, due: due, host: c.host(), order: c.Order})
	o.mu.Unlock()
	o.signal()
}

// signal makes Run look at the queue.
func (o *Outbox) signal() {
	select {
	case o.wake <- struct{}{}:
	default: // it is going to look
	}
}

// Stats are numbers of calls.
type Stats struct {
	Waiting     int       // in the file, for their first attempt or another
	InFlight    int       // of these, those that an attempt is being made for
	DeadLetters int       // in the file, given up
	Delivered   int       // since Open
	Next        time.Time // when the next attempt is due; zero if none is
}

// Stats returns the numbers of this moment.
func (o *Outbox) Stats() Stats {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := Stats{Waiting: o.queue.size, InFlight: o.busy, DeadLetters: o.dead, Delivered: o.delivered}
	s.Next, _ = o.queue.next(o.opts.WorkersPerHost)
	return s
}

// Close ends Run, as the end of its context does, waits for it, and closes the
// file. Further calls of Close do nothing.
func (o *Outbox) Close() error {
	o.mu.Lock()
	if o.closed {
		o.mu.Unlock()
		return nil
	}
	o.closed = true
	stop, stopped := o.stop, o.stopped
	o.mu.Unlock()
	if stop != nil {
		stop()
		<-stopped
	}
	o.users.Wait()
	o.client.CloseIdleConnections()
	return o.store.db.Close()
}
