package outbox_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/server"
	"github.com/retrychaos/retrychaos/scenarios"
)

// The variables of the environment say how often the process is killed, and at
// which points: those of an earlier run, as far as a real process repeats itself.
const (
	killsEnv    = "RETRYCHAOS_KILLS"
	killSeedEnv = "RETRYCHAOS_SEED"
)

const callsALife = 3

// weather is what happens to an attempt with a probability of a half.
const weather = `[connection_reset, connection_reset@after_commit, empty_response@after_commit, 503, 503@after_commit,
	500@after_commit, hang@after_commit, hang@commit_late, truncated_body@after_commit,
	latency delay=10ms, "latency@after_commit delay=20ms", "429 retry-after=0"]`

// A process that delivers calls is killed again and again, at seeded points of
// its life: while it starts, while it enqueues, while an attempt is on the wire.
// Then the server's ledger is read: every call whose Enqueue had returned has one
// effect; none has two; nothing has one that was not asked for.
func TestKilledProcessLosesAndDoublesNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no SIGKILL")
	}
	kills := 20
	if testing.Short() {
		kills = 8
	}
	if text := os.Getenv(killsEnv); text != "" {
		kills = number(t, text)
	}
	seed := uint64(1)
	if text := os.Getenv(killSeedEnv); text != "" {
		seed = uint64(number(t, text))
	}
	v := newVictim(t, seed, kills)
	for life := range kills {
		v.live(t, life)
	}
	dead := v.finish(t)
	h := v.close(t)
	v.judge(t, h, kills, dead)
}

func number(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A victim is the process over all its lives, and the server that it calls.
type victim struct {
	path    string
	baseURL string
	seed    uint64
	random  *rand.Rand
	srv     *server.Server
	begin   time.Time
	served  chan error
	arrived chan struct{} // gets a value when bytes of a request have come

	next    int             // the next call
	started map[int]bool    // Enqueue was about to be called
	acked   map[int]string  // Enqueue returned this ID
	ends    []time.Duration // of the lives
	points  map[string]int  // kills by what the process was doing
}

func newVictim(t *testing.T, seed uint64, lives int) *victim {
	list, err := faults.ParseSequence(weather)
	if err != nil {
		t.Fatal(err)
	}
	v := &victim{path: filepath.Join(t.TempDir(), "outbox"), seed: seed, random: rand.New(rand.NewPCG(seed, 0)),
		begin: time.Now(), served: make(chan error, 1), arrived: make(chan struct{}, 1), next: 1,
		started: map[int]bool{}, acked: map[int]string{}, points: map[string]int{}}
	v.srv = server.New(server.Config{Scenario: "kill", Seed: seed, Start: v.begin, Keys: scenarios.Honour, AttemptCap: 10_000})
	for n := 1; n <= lives*callsALife; n++ {
		v.srv.Register(server.Registration{
			Call:     &history.Call{ID: fmt.Sprintf("c%d", n), Method: "POST", Path: chargePath(n), Resource: chargePath(n)},
			Route:    "/charges/{id}",
			Schedule: faults.Schedule{Draw: &faults.Draw{P: 0.5, Faults: list}},
		})
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v.baseURL = "http://" + l.Addr().String()
	go func() { v.served <- v.srv.Serve(&tap{l, v.arrived}) }()
	t.Cleanup(func() { v.srv.Close() })
	return v
}

// A tap tells when bytes arrive.
type tap struct {
	net.Listener
	arrived chan<- struct{}
}

func (l *tap) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &tapped{c.(*net.TCPConn), l.arrived}, nil
}

type tapped struct {
	*net.TCPConn
	arrived chan<- struct{}
}

func (c *tapped) Read(p []byte) (int, error) {
	n, err := c.TCPConn.Read(p)
	if n > 0 {
		select {
		case c.arrived <- struct{}{}:
		default:
		}
	}
	return n, err
}

// A process is one life.
type process struct {
	cmd    *exec.Cmd
	lines  <-chan string // closed at the end of stdout
	stderr *bytes.Buffer
}

func (v *victim) spawn(t *testing.T, task childTask) *process {
	t.Helper()
	task.Path, task.BaseURL = v.path, v.baseURL
	text, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(os.Args[0]), stderr: new(bytes.Buffer)}
	p.cmd.Env = append(os.Environ(), childEnv+"="+string(text))
	p.cmd.Stderr = p.stderr
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 4*callsALife+4) // more than a life has, so that nothing blocks
	p.lines = lines
	go func() {
		defer close(lines)
		for r := bufio.NewReader(out); ; {
			line, err := r.ReadString('\n')
			if err == nil { // a line without its end was cut by the kill, before its step was over
				lines <- strings.TrimSuffix(line, "\n")
			} else {
				_, _ = io.Copy(io.Discard, out)
				return
			}
		}
	}()
	return p
}

// The points of a life at which it is killed.
const (
	whileStarting   = "while starting"
	whileEnqueueing = "while enqueueing"
	inAnAttempt     = "in an attempt"
	anyTime         = "any time"
)

// live starts the process, kills it, and notes what it has said.
func (v *victim) live(t *testing.T, life int) {
	point := []string{whileStarting, whileEnqueueing, inAnAttempt, anyTime}[v.random.IntN(4)]
	event := 1 + v.random.IntN(callsALife)
	var calls []int
	for n := range callsALife {
		calls = append(calls, v.next+n)
	}
	select {
	case <-v.arrived:
	default:
	}
	p := v.spawn(t, childTask{Calls: calls, Seed: v.seed + uint64(life)})

	delay := func(most time.Duration) <-chan time.Time {
		return time.After(time.Duration(v.random.Int64N(int64(most))))
	}
	var now <-chan time.Time
	if point == whileStarting {
		now = delay(20 * time.Millisecond)
	}
	tooLate := time.After(2 * time.Second) // the point was not reached
	arrivals, starts := 0, 0
	open := false
wait:
	for {
		select {
		case <-now:
			break wait
		case <-tooLate:
			point = anyTime
			break wait
		case <-v.arrived:
			if arrivals++; point == inAnAttempt && arrivals == event {
				now = delay(8 * time.Millisecond)
			}
		case line, ok := <-p.lines:
			if !ok {
				_ = p.cmd.Wait()
				t.Fatalf("life %d ended by itself: %s", life, p.stderr)
			}
			v.hear(t, line)
			switch {
			case line == "open":
				if open = true; point == anyTime {
					now = delay(50 * time.Millisecond)
				}
			case strings.HasPrefix(line, "start "):
				if starts++; point == whileEnqueueing && starts == event {
					now = delay(4 * time.Millisecond)
				}
			}
		}
	}
	if point == whileStarting && open {
		point = anyTime
	}
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for line := range p.lines { // what it had said before
		v.hear(t, line)
	}
	if err := p.cmd.Wait(); p.cmd.ProcessState.ExitCode() != -1 { // -1: by a signal
		t.Fatalf("life %d was not killed: %v: %s", life, err, p.stderr)
	}
	v.points[point]++
	v.ends = append(v.ends, time.Since(v.begin))
}

// hear notes a line of the process.
func (v *victim) hear(t *testing.T, line string) {
	t.Helper()
	word := strings.Fields(line)
	switch {
	case len(word) == 1 && word[0] == "open":
	case len(word) == 2 && word[0] == "start":
		n := number(t, word[1])
		v.started[n] = true
		v.next = n + 1
	case len(word) == 3 && word[0] == "ack":
		v.acked[number(t, word[1])] = word[2]
	default:
		t.Fatalf("the process said %q", line)
	}
}

// finish lets the process deliver what is left, and returns the number of dead
// letters.
func (v *victim) finish(t *testing.T) int {
	p := v.spawn(t, childTask{Finish: true})
	timer := time.AfterFunc(time.Minute, func() { _ = p.cmd.Process.Kill() })
	defer timer.Stop()
	var said []string
	for line := range p.lines {
		said = append(said, line)
	}
	if err := p.cmd.Wait(); err != nil {
		t.Fatalf("the last life: %v: %s", err, p.stderr)
	}
	if len(said) != 2 || !strings.HasPrefix(said[1], "done ") {
		t.Fatalf("the last life said %q", said)
	}
	return number(t, strings.TrimPrefix(said[1], "done "))
}

// close waits for late commits, and returns what the server knows.
func (v *victim) close(t *testing.T) *history.History {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	v.srv.AwaitLate(ctx)
	if err := v.srv.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-v.served; err != nil {
		t.Fatal(err)
	}
	h := new(history.History)
	v.srv.Record(h)
	return h
}

// judge reads the ledger and the journal.
func (v *victim) judge(t *testing.T, h *history.History, kills, dead int) {
	effects := map[string]int{}
	for _, e := range h.Effects {
		effects[e.Call]++
	}
	var lost, duplicates, unasked, unacked, attempts, replayed, inFlight, overLives int
	for n := 1; n <= kills*callsALife; n++ {
		has := effects[fmt.Sprintf("c%d", n)]
		_, acked := v.acked[n]
		duplicates += max(0, has-1)
		switch {
		case acked && has == 0:
			lost++
			t.Errorf("lost: call %d, ID %s", n, v.acked[n])
		case has > 0 && !v.started[n]:
			unasked++
		case has > 0 && !acked:
			unacked++
		}
	}
	keys := map[string]string{} // the call that has each
	for _, c := range h.Calls {
		attempts += len(c.Attempts)
		lives := map[int]bool{}
		for _, a := range c.Attempts {
			if a.Replayed {
				replayed++
			}
			if a.InFlight {
				inFlight++
			}
			life, _ := slices.BinarySearch(v.ends, a.At)
			lives[life] = true
			if a.Key == "" || a.Key != c.Attempts[0].Key {
				t.Errorf("%s: attempt %d has the key %q, the first had %q", c.ID, a.N, a.Key, c.Attempts[0].Key)
			}
		}
		if len(lives) > 1 {
			overLives++
		}
		if len(c.Attempts) > 0 {
			key := c.Attempts[0].Key
			if keys[key] != "" {
				t.Errorf("%s and %s have the same key", c.ID, keys[key])
			}
			keys[key] = c.ID
		}
	}
	ids := map[string]bool{}
	for _, id := range v.acked {
		ids[id] = true
	}
	t.Logf("kills %d, calls %d, effects %d, duplicates %d, lost %d", kills, len(v.acked), len(h.Effects), duplicates, lost)
	t.Logf("kills by point: %v; started but not acknowledged: %d calls, of which %d have their effect; dead letters %d",
		v.points, len(v.started)-len(v.acked), unacked, dead)
	t.Logf("attempts %d; calls with attempts of several processes: %d; answered from the idempotency store: %d, refused as in flight: %d; seed %d",
		attempts, overLives, replayed, inFlight, v.seed)

	if duplicates != 0 || lost != 0 || unasked != 0 || dead != 0 {
		t.Errorf("duplicates %d, lost %d, effects that nobody asked for %d, dead letters %d: want none", duplicates, lost, unasked, dead)
	}
	if len(ids) != len(v.acked) {
		t.Errorf("%d calls share %d IDs", len(v.acked), len(ids))
	}
	for _, f := range h.Findings {
		// A fault cannot be delivered to a process that has just been killed.
		if f.Kind != history.FindingUndelivered {
			t.Errorf("the server: %s: %s", f.Kind, f.Text)
		}
	}
	// The test must have tested something.
	if len(v.ends) != kills || len(v.acked) == 0 {
		t.Errorf("%d kills, %d calls", len(v.ends), len(v.acked))
	}
	if kills >= 20 && (overLives == 0 || replayed == 0 || v.points[inAnAttempt] == 0 || v.points[whileEnqueueing] == 0) {
		t.Error("no kill has hit anything")
	}
}
