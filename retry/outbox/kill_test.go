package outbox_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
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
