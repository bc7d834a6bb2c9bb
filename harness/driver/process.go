package driver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/retrychaos/retrychaos/internal/procgroup"
)

// limits are how long a driver may take. They are long, since a machine may be busy, and short against a person
// who waits.
type limits struct {
	hello    time.Duration // from its start to its first line
	ping     time.Duration // between two pings
	silence  time.Duration // from a ping to its pong
	exit     time.Duration // from the end of its input to its own
	restarts int           // processes started after the first one
}

var defaults = limits{hello: 30 * time.Second, ping: time.Second / 2, silence: 20 * time.Second, exit: 10 * time.Second, restarts: 3}

// killDelay is how long a killed process has before its pipes are closed.
const killDelay = 2 * time.Second

// process is one process of a driver.
type process struct {
	name   string
	limits limits
	kill   context.CancelFunc
	stderr tail
	lines  chan []byte   // to its stdin
	quit   chan struct{} // closed when its stdin is to be closed
	done   chan struct{} // closed when it is over, whatever the reason
	met    chan struct{} // closed when the first line has been read
	hello  Hello         // valid once met is closed

	mu        sync.Mutex
	next      int64 // last id of a call
	opened    int64 // last number of an instance
	pending   map[int64]*pending
	left      map[int64]bool // calls that nobody waits for any more; they may be answered once
	instances map[*Instance]bool
	pinged    time.Time // when the ping without a pong was sent
	ping      int64
	closing   bool
	fault     error // why it was given up
	told      bool  // a run has been told of the fault
}

type pending struct {
	instance *Instance
	answer   chan Outcome
}

// start starts a process and reads its hello.
func start(name string, words []string, dir string, lim limits) (*process, error) {
	ctx, kill := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Dir = dir
	cmd.WaitDelay = killDelay
	procgroup.Isolate(cmd)
	p := &process{name: name, limits: lim, kill: kill, stderr: tail{limit: 2 << 10}, lines: make(chan []byte, 256),
		quit: make(chan struct{}), done: make(chan struct{}), met: make(chan struct{}),
		pending: map[int64]*pending{}, left: map[int64]bool{}, instances: map[*Instance]bool{}}
	cmd.Stderr = &p.stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		kill()
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		kill()
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		kill()
		return nil, fmt.Errorf("starting driver %s: %w", name, err)
	}
	go p.write(stdin)
	go p.read(cmd, stdout)
	timer := time.NewTimer(lim.hello)
	defer timer.Stop()
	select {
	case <-p.met:
		go p.watch()
		return p, nil
	case <-p.done:
	case <-timer.C:
		p.fail("it said nothing for %v after its start; its first line is to be its hello", lim.hello)
		<-p.done
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.told = true
	return nil, p.fault
}

// fail gives the process up, once, and tells every run that uses it.
func (p *process) fail(format string, args ...any) {
	p.mu.Lock()
	if p.fault != nil {
		p.mu.Unlock()
		return
	}
	p.fault = &Fault{Driver: p.name, What: fmt.Sprintf(format, args...), Stderr: p.stderr.String()}
	var open []*Instance
	for i := range p.instances {
		open = append(open, i)
	}
	p.told = p.told || len(open) > 0
	fault := p.fault
	p.mu.Unlock()
	for _, i := range open {
		i.tell(fault)
	}
	p.kill()
}

// write hands lines to the process until its input is to end.
func (p *process) write(stdin io.WriteCloser) {
	defer stdin.Close()
	for {
		select {
		case line := <-p.lines:
			if _, err := stdin.Write(line); err != nil {
				<-p.done // who reads its output will see why
				return
			}
		case <-p.quit:
			return
		case <-p.done:
			return
		}
	}
}

// send queues a line; false where the process is over.
func (p *process) send(v any) bool {
	line, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types of this package can be marshalled
	}
	select {
	case p.lines <- append(line, '\n'):
		return true
	case <-p.done:
		return false
	}
}

// read goes through what the process says until it is over.
func (p *process) read(cmd *exec.Cmd, stdout io.Reader) {
	defer close(p.done)
	defer p.kill()
	r := bufio.NewReaderSize(stdout, 64<<10)
	n := 0
	for {
		line, err := readLine(r)
		if err != nil {
			if errors.Is(err, errTooLong) {
				p.fail("line %d of its output is longer than %d bytes", n+1, MaxLine)
			} else if len(bytes.TrimSpace(line)) > 0 {
				p.fail("its output ends in the middle of line %d: %s", n+1, excerpt(line))
			}
			break
		}
		n++
		if err := p.take(n, line); err != nil {
			p.fail("line %d of its output: %v: %s", n, err, excerpt(line))
			break
		}
	}
	p.ended(cmd)
}

// ended waits for the end of a process that says no more, and looks at how it ends.
func (p *process) ended(cmd *exec.Cmd) {
	late := time.AfterFunc(p.limits.exit, func() {
		p.fail("it closed its standard output and did not exit in %v", p.limits.exit)
	})
	err := cmd.Wait()
	late.Stop()
	p.mu.Lock()
	closing := p.closing
	p.mu.Unlock()
	how := "exit status 0"
	if err != nil {
		how = err.Error()
	}
	switch {
	case !closing:
		p.fail("it ended before its input did: %s", how)
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		p.fail("at the end of its input it exited badly: %s", how)
	}
}

func (p *process) take(n int, line []byte) error {
	if n == 1 {
		h, err := ParseHello(line)
		if err != nil {
			return fmt.Errorf("this is no hello: %w", err)
		}
		p.hello = h
		close(p.met)
		return nil
	}
	a, err := parseAnswer(line)
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if a.outcome == nil {
		if a.pong != p.ping || p.pinged.IsZero() {
			return fmt.Errorf("a pong for a ping %d that was not sent, or had its pong", a.pong)
		}
		for i := range p.instances {
			i.late = max(i.late, time.Since(p.pinged))
		}
		p.pinged = time.Time{}
		return nil
	}
	id := a.outcome.ID
	if c := p.pending[id]; c != nil {
		delete(p.pending, id)
		c.answer <- *a.outcome
		return nil
	}
	switch {
	case p.left[id]:
		delete(p.left, id)
		return nil
	case id >= 1 && id <= p.next:
		return fmt.Errorf("call %d is answered twice", id)
	}
	return fmt.Errorf("call %d was never asked for", id)
}

// watch pings the process, so that one that hangs is told from a client that takes its time.
func (p *process) watch() {
	ticker := time.NewTicker(p.limits.ping)
	defer ticker.Stop()
	for {
		select {
		case <-p.done:
			return
		case <-p.quit:
			return
		case <-ticker.C:
		}
		p.mu.Lock()
		since, fresh := time.Since(p.pinged), p.pinged.IsZero()
		if fresh {
			p.ping++
			p.pinged = time.Now()
		}
		ping := p.ping
		p.mu.Unlock()
		switch {
		case fresh:
			go p.send(pingLine{ping}) // it may not read: then its silence will be noticed
		case since > p.limits.silence:
			p.fail("it hangs: no answer to a ping for %v; a driver reads its input while calls are under way", p.limits.silence)
			return
		}
	}
}

// close ends the input of the process and waits for its end. It returns a fault that no run was told of.
func (p *process) close() error {
	p.mu.Lock()
	p.closing = true
	p.mu.Unlock()
	close(p.quit)
	timer := time.NewTimer(p.limits.exit)
	defer timer.Stop()
	select {
	case <-p.done:
	case <-timer.C:
		p.fail("it did not exit within %v after the end of its input", p.limits.exit)
		<-p.done
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.told {
		return nil
	}
	p.told = true
	return p.fault
}

// errTooLong is a line of more than MaxLine bytes.
var errTooLong = errors.New("line too long")

// readLine reads to the next newline, which it leaves out.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > MaxLine+1 {
			return nil, errTooLong
		}
		line = append(line, part...)
		if err == bufio.ErrBufferFull {
			continue
		}
		return bytes.TrimSuffix(line, []byte("\n")), err
	}
}

// excerpt is the start of a line, quoted.
func excerpt(line []byte) string {
	const most = 120
	if len(line) > most {
		return fmt.Sprintf("%q…", line[:most])
	}
	return fmt.Sprintf("%q", line)
}

// tail keeps the last bytes that were written to it.
type tail struct {
	mu    sync.Mutex
	buf   []byte
	limit int
}

func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if over := len(t.buf) - t.limit; over > 0 {
		t.buf = append(t.buf[:0], t.buf[over:]...)
	}
	return len(b), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.buf), "\ufffd"))
}
