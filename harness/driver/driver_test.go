package driver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// hurried are limits for tests. The long ones end nothing that goes well.
var hurried = limits{hello: 30 * time.Second, ping: 20 * time.Millisecond, silence: time.Minute, exit: 30 * time.Second, restarts: 1}

// ofTest is this test binary as a driver; external_test.go has the modes.
func ofTest(t *testing.T, mode string, lim limits) *Driver {
	t.Helper()
	t.Setenv("RETRYCHAOS_TEST_DRIVER", mode)
	d := New("mine", "", "", os.Args[0])
	d.limits = lim
	return d
}

// faultOf makes one call and returns the fault that the run is told of, or else the one of Close.
func faultOf(t *testing.T, d *Driver) error {
	t.Helper()
	var mu sync.Mutex
	var told []error
	inst, err := d.Open("", func(err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, err)
	})
	if err != nil {
		return err
	}
	_, err = inst.Call(context.Background(), Request{Call: "c1", Method: "GET", URL: "http://127.0.0.1:1/"})
	<-waitFault(inst)
	_ = inst.Close()
	mu.Lock()
	defer mu.Unlock()
	if len(told) > 1 {
		t.Errorf("told %d times: %v", len(told), told)
	}
	closed := d.Close()
	if len(told) == 1 {
		if closed != nil {
			t.Errorf("told by Close as well: %v", closed)
		}
		if err != nil && err != told[0] {
			t.Errorf("the call ends with %v", err)
		}
		return told[0]
	}
	if closed == nil {
		return err
	}
	return closed
}

// waitFault is closed when the process is over, or at once where it has none to wait for.
func waitFault(i *Instance) <-chan struct{} {
	if mode := os.Getenv("RETRYCHAOS_TEST_DRIVER"); mode == "good" || mode == "bad-exit" || mode == "never-exits" {
		done := make(chan struct{})
		close(done)
		return done
	}
	return i.p.done
}

// Faults tells for each way to break the protocol what is said of it.
func Faults(t *testing.T, modes map[string]string) {
	for mode, want := range modes {
		t.Run(mode, func(t *testing.T) {
			lim := hurried
			switch mode {
			case "hangs":
				lim.silence = 100 * time.Millisecond
			case "silent":
				lim.hello = 100 * time.Millisecond
			case "never-exits", "closes-output":
				lim.exit = 100 * time.Millisecond
			}
			err := faultOf(t, ofTest(t, mode, lim))
			var fault *Fault
			if !errors.As(err, &fault) {
				t.Fatalf("no fault: %v", err)
			}
			for _, part := range []string{"driver mine: ", want, "docs/drivers.md"} {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in: %s", part, err)
				}
			}
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %s", err)
			}
		})
	}
}

// TestGood: a driver that does as it should has no fault, answers out of order, and is started again after Close.
func TestGood(t *testing.T) {
	d := ofTest(t, "good", hurried)
	for range 2 {
		h, err := d.Hello()
		if err != nil || h.Client != "drivertest" || h.Version != "1.2.3" || h.Declared.MaxAttempts != 3 {
			t.Fatalf("%+v, %v", h, err)
		}
		inst, err := d.Open("", func(err error) { t.Error(err) })
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() {
				o, err := inst.Call(context.Background(), Request{Call: fmt.Sprint(i), Method: "GET", URL: "http://127.0.0.1:1/"})
				if err != nil || o.OK || o.Error == "" {
					t.Errorf("%+v, %v", o, err)
				}
			})
		}
		wg.Wait()
		_ = inst.Close()
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestRestarts: another process is started after a fault, and not for ever.
func TestRestarts(t *testing.T) {
	d := ofTest(t, "dies", hurried)
	for range 1 + hurried.restarts {
		inst, err := d.Open("", func(error) {})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := inst.Call(context.Background(), Request{}); !errors.As(err, new(*Fault)) {
			t.Fatalf("the call: %v", err)
		}
		if _, err := inst.Call(context.Background(), Request{}); !errors.As(err, new(*Fault)) {
			t.Fatalf("an instance stays with its process: %v", err)
		}
	}
	_, err := d.Open("", func(error) {})
	if !errors.As(err, new(*Fault)) || !strings.Contains(err.Error(), "it has failed 2 times") {
		t.Error(err)
	}
}

// TestGivenUp: an instance that is closed ends its calls; the answer that comes later is no fault.
func TestGivenUp(t *testing.T) {
	d := ofTest(t, "good", hurried)
	inst, err := d.Open("", func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	p := inst.p
	p.mu.Lock() // no answer is taken until the call is given up
	p.next++
	id, c := p.next, &pending{inst, make(chan Outcome, 1)}
	p.pending[id] = c
	p.mu.Unlock()
	_ = inst.Close()
	if err := p.take(2, fmt.Appendf(nil, `{"id":%d,"ok":true}`, id)); err != nil {
		t.Errorf("a late answer: %v", err)
	}
	if err := p.take(3, fmt.Appendf(nil, `{"id":%d,"ok":true}`, id)); err == nil {
		t.Error("a second late answer is none")
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}

func TestMismatch(t *testing.T) {
	d := ofTest(t, "good", hurried)
	d.client = "got"
	if _, err := d.Hello(); err == nil || !strings.Contains(err.Error(), `it says that it is the client "drivertest", and "got" was asked for`) {
		t.Error(err)
	}
	if _, err := New("x", "", "", "no-such-program").Hello(); err == nil || !strings.Contains(err.Error(), "no-such-program") {
		t.Error(err)
	}
}

func TestHello(t *testing.T) {
	for line, want := range map[string]string{
		``:                                       "not a JSON object",
		`[]`:                                     "not a JSON object",
		`{"client":"x"}`:                         "no field protocol",
		`{"protocol":"v2"}`:                      `speaks "v2"`,
		`{"protocol":1}`:                         "the field protocol is a number",
		hello(``):                                "",
		hello(`,"new":[1,2]`):                    "",
		hello(`,"declared":{"jitter":"ful"}`):    `did you mean "full"`,
		hello(`,"declared":{"max_attempts":-1}`): "declared.max_attempts is -1",
		hello(`,"declared":{"max_delay_ms":1e300}`):                        "declared.max_delay_ms",
		hello(`,"declared":{"base_delay_ms":0.5,"jitter":"proportional"}`): "",
	} {
		_, err := ParseHello([]byte(line))
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
	h, _ := ParseHello([]byte(hello(`,"declared":{"base_delay_ms":1.5,"process":true}`)))
	if d := h.Declared.History(); d.BaseDelay != 1500*time.Microsecond || !d.Remote || !d.Process {
		t.Errorf("%+v", d)
	}
}

func hello(more string) string {
	return fmt.Sprintf(`{"protocol":%q,"client":"x"%s}`, Protocol, more)
}

// FuzzAnswer: no line crashes the parser, and what it accepts is sane.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{`{"id":1,"ok":true,"status":200,"body":"{}"}`, `{"pong":1}`, `{"id":1,"ok":false,"error":"x","kind":"reset"}`,
		`{"id":1,"pong":1}`, `{"id":1e99,"ok":true}`, `{"ID":1,"OK":true}`, "\xff{}", `{"id":1,"ok":false}`, `{"id":null,"ok":null}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		a, err := parseAnswer(line)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one line: %q", err)
			}
			return
		}
		if o := a.outcome; o != nil && (o.OK && o.Error != "" || !o.OK && o.Error == "" && o.Status == 0 || o.Attempts < 0) {
			t.Errorf("accepted: %+v", o)
		}
		_, _ = ParseHello(line)
	})
}
