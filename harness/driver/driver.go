package driver

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"time"
)

// A Fault is something that a driver did wrong. It says nothing about the client behind it.
type Fault struct {
	Driver string
	What   string
	Stderr string // the end of what it wrote to its standard error
}

func (f *Fault) Error() string {
	said := "its standard error is empty"
	if f.Stderr != "" {
		said = fmt.Sprintf("its standard error ends with %q", f.Stderr)
	}
	return fmt.Sprintf("driver %s: %s (%s; the protocol is in docs/drivers.md)", f.Driver, f.What, said)
}

// ErrGivenUp is the end of a call whose instance was closed before the driver answered.
var ErrGivenUp = errors.New("the call was given up before the driver answered")

// A Driver starts the processes of one driver: one at first, and another where that was given up, a few times.
// It is safe for concurrent use.
type Driver struct {
	name   string
	words  []string
	dir    string
	client string // who the driver must say that it is; "": whoever
	limits limits

	mu     sync.Mutex
	now    *process
	starts int
	last   error   // why there is no process
	untold []error // faults that no run was told of
}

// New returns a driver that is the command, run in dir; "" is the folder of this process. client is the name that
// it must give itself, "" for any. Nothing is started yet.
func New(name, client, dir string, command ...string) *Driver {
	return &Driver{name: name, client: client, dir: dir, words: command, limits: defaults}
}

// Hello starts the driver if need be and returns what it says of itself. Its error is a *Fault, or says that the
// command cannot be started.
func (d *Driver) Hello() (Hello, error) {
	p, err := d.process()
	if err != nil {
		return Hello{}, err
	}
	return p.hello, nil
}

// process returns the running process, or starts one.
func (d *Driver) process() (*process, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if p := d.now; p != nil {
		p.mu.Lock()
		fault := p.fault
		if fault != nil && !p.told {
			p.told = true
			d.untold = append(d.untold, fault)
		}
		p.mu.Unlock()
		if fault == nil {
			return p, nil
		}
		d.now, d.last = nil, fault
	}
	if d.starts > d.limits.restarts {
		return nil, fmt.Errorf("it has failed %d times and is not started again: %w", d.starts, d.last)
	}
	if _, err := exec.LookPath(d.words[0]); err != nil {
		return nil, fmt.Errorf("starting driver %s: %w", d.name, err)
	}
	d.starts++
	p, err := start(d.name, d.words, d.dir, d.limits)
	if err == nil && d.client != "" && p.hello.Client != d.client {
		err = &Fault{Driver: d.name, What: fmt.Sprintf("it says that it is the client %q, and %q was asked for", p.hello.Client, d.client), Stderr: p.stderr.String()}
		_ = p.close()
	}
	if err != nil {
		d.last = err
		return nil, err
	}
	d.now = p
	return p, nil
}

// Close ends the input of the driver and waits for its end. It returns the faults that no run was told of. A
// driver that is used again is started again.
func (d *Driver) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	errs := d.untold
	if d.now != nil {
		errs = append(errs, d.now.close())
	}
	d.now, d.untold, d.starts, d.last = nil, nil, 0, nil
	return errors.Join(errs...)
}

// An Instance is one client object of a driver. It stays with the process that it was made in.
type Instance struct {
	p      *process
	id     int64
	cacert string
	tell   func(error)
	closed chan struct{}
	late   time.Duration
}

// Lateness is how late the driver was at worst to answer a ping while the instance was open: what its client cannot
// be blamed for.
func (i *Instance) Lateness() time.Duration {
	i.p.mu.Lock()
	defer i.p.mu.Unlock()
	if i.p.pinged.IsZero() {
		return i.late
	}
	return max(i.late, time.Since(i.p.pinged))
}

// Open makes an instance that trusts the certificate authority in the file cacert, "" for none. tell is called,
// once and from any goroutine, if the driver fails before the instance is closed.
func (d *Driver) Open(cacert string, tell func(error)) (*Instance, error) {
	p, err := d.process()
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault != nil {
		p.told = true
		return nil, p.fault
	}
	p.opened++
	i := &Instance{p: p, id: p.opened, cacert: cacert, tell: tell, closed: make(chan struct{})}
	p.instances[i] = true
	return i, nil
}

// Call performs a call; ID, Instance and CACert are filled in. When ctx is cancelled a driver that can is asked
// to cancel the call, and it is waited for all the same: how long that takes is the client's doing. The error
// is a *Fault or ErrGivenUp.
func (i *Instance) Call(ctx context.Context, r Request) (Outcome, error) {
	p := i.p
	c := &pending{i, make(chan Outcome, 1)}
	p.mu.Lock()
	if p.fault != nil {
		p.mu.Unlock()
		return Outcome{}, p.fault
	}
	p.next++
	r.ID, r.Instance, r.CACert = p.next, i.id, i.cacert
	p.pending[r.ID] = c
	p.mu.Unlock()
	p.send(r)
	cancelled := ctx.Done()
	for {
		select {
		case o := <-c.answer:
			return o, nil
		case <-cancelled:
			cancelled = nil
			if p.hello.Cancels && errors.Is(ctx.Err(), context.Canceled) {
				p.send(cancelLine{r.ID})
			}
		case <-i.closed:
			return Outcome{}, ErrGivenUp
		case <-p.done:
			select {
			case o := <-c.answer:
				return o, nil
			default:
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.fault != nil {
				return Outcome{}, p.fault
			}
			return Outcome{}, ErrGivenUp
		}
	}
}

// Close tells the driver that the client object is not needed any more, and gives up what it has not answered.
func (i *Instance) Close() error {
	p := i.p
	p.mu.Lock()
	delete(p.instances, i)
	for id, c := range p.pending {
		if c.instance == i {
			delete(p.pending, id)
			p.left[id] = true
		}
	}
	gone := p.fault != nil || p.closing
	p.mu.Unlock()
	close(i.closed)
	if !gone {
		p.send(closeLine{i.id})
	}
	return nil
}
