package outbox_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/retry/outbox"
)

// childEnv makes the test binary the process that is killed. It holds a
// childTask in JSON.
const childEnv = "RETRYCHAOS_OUTBOX_CHILD"

// A childTask is what one life of the process has to do.
type childTask struct {
	Path    string // of the outbox
	BaseURL string
	Calls   []int  // enqueue these, while earlier ones are delivered
	Finish  bool   // then deliver all that is left, and end
	Seed    uint64 // of the pauses between the calls
}

func TestMain(m *testing.M) {
	if text := os.Getenv(childEnv); text != "" {
		if err := child(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// killOptions make for many attempts in a short time.
func killOptions() outbox.Options {
	return outbox.Options{
		Policy: retry.Policy{
			MaxAttempts: 10_000, BaseDelay: 5 * time.Millisecond, MaxDelay: 40 * time.Millisecond,
			AttemptTimeout: 60 * time.Millisecond,
		},
		Workers:     8,
		LockTimeout: 5 * time.Second, // a killed process takes a moment to be gone
	}
}

// child says what it does on stdout, a line at a time: "open", "start n" before
// Enqueue of call n, "ack n id" after it has returned, "done dead-letters".
func child(text string) error {
	var task childTask
	if err := json.Unmarshal([]byte(text), &task); err != nil {
		return err
	}
	o, err := outbox.Open(task.Path, killOptions())
	if err != nil {
		return err
	}
	fmt.Println("open")
	ctx := context.Background()
	if task.Finish {
		if err := o.Drain(ctx); err != nil {
			return err
		}
		fmt.Println("done", o.Stats().DeadLetters)
		return o.Close()
	}
	failed := make(chan error, 1)
	go func() { failed <- o.Run(ctx) }()
	pause := rand.New(rand.NewPCG(task.Seed, 1))
	for _, n := range task.Calls {
		time.Sleep(time.Duration(pause.Int64N(int64(6 * time.Millisecond))))
		fmt.Println("start", n)
		id, err := o.Enqueue(ctx, outbox.Call{Method: http.MethodPost, URL: task.BaseURL + chargePath(n),
			Body: fmt.Appendf(nil, `{"amount":%d}`, n), KeyHonoured: true})
		if err != nil {
			return err
		}
		fmt.Println("ack", n, id)
	}
	return <-failed // it does not end: the parent kills this process
}

func chargePath(n int) string { return fmt.Sprintf("/charges/c%d", n) }
