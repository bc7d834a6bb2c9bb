package outbox_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/server"
	"github.com/retrychaos/retrychaos/scenarios"
)

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
