package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrychaos/retrychaos/retry/outbox"
)

func TestDelivery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := outcomes(503)
		opts := steady(f)
		opts.MaxAnswer = 3
		opts.Prepare = func(_ context.Context, id outbox.ID, req *http.Request) error {
			req.Header.Set("Authorization", fmt.Sprint("token for ", id))
			return nil
		}
		var got []outbox.Delivery
		opts.Delivered = func(d outbox.Delivery) { got = append(got, d) }
		path := filePath(t)
		o := open(t, path, opts)
		c := charge("x")
		c.Header = http.Header{"x-tag": {"a", "b"}}
		id := enqueue(t, o, c)
		if s := o.Stats(); s.Waiting != 1 || s.Delivered != 0 || s.Next.After(time.Now()) {
			t.Errorf("%+v", s)
		}
		drain(t, o)
		for _, r := range f.requests() {
			if r.body != "x" || fmt.Sprint(r.req.Header["X-Tag"]) != "[a b]" || r.req.Header.Get("Authorization") != "token for "+id.String() {
				t.Errorf("sent %q with %v", r.body, r.req.Header)
			}
		}
		if len(got) != 1 || got[0].ID != id || got[0].Attempts != 2 || got[0].Status != 200 || string(got[0].Body) != "don" || !got[0].Cut ||
			string(got[0].Call.Body) != "x" || got[0].Call.Header.Get("Authorization") != "" || got[0].Call.Key != f.requests()[0].key {
			t.Errorf("delivered %+v", got)
		}
		if s := o.Stats(); s != (outbox.Stats{Delivered: 1}) {
			t.Errorf("%+v", s)
		}
		closeIt(t, o)
		if s := open(t, path, opts).Stats(); s != (outbox.Stats{}) {
			t.Errorf("after reopening: %+v", s)
		}
	})
}

// The back-off, the number of attempts and the key outlive a restart.
func TestRestartWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := outcomes(503, 503, 503)
		opts := steady(f)
		opts.Policy.MaxAttempts = 3
		path := filePath(t)
		start := time.Now()
		for range 3 {
			o := open(t, path, opts)
			if time.Since(start) < time.Second {
				enqueue(t, o, charge("x"))
			}
			ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
			if err := o.Run(ctx); err != nil {
				t.Fatal(err)
			}
			cancel()
			closeIt(t, o)
		}
		o := open(t, path, opts)
		drain(t, o)
		r := f.requests()
		if len(r) != 3 {
			t.Fatalf("%d attempts", len(r))
		}
		about(t, "attempt 2", r[1].at.Sub(start), time.Minute)
		about(t, "attempt 3", r[2].at.Sub(start), 3*time.Minute)
		if r[0].key == "" || r[1].key != r[0].key || r[2].key != r[0].key {
			t.Errorf("keys %q %q %q", r[0].key, r[1].key, r[2].key)
		}
		d := onlyLetter(t, o)
		if d.Reason != outbox.ReasonAttempts || d.Attempts != 3 || d.Status != 503 || string(d.Answer) != "no" {
			t.Errorf("%+v", d)
		}
	})
}

// A process that is killed in an attempt has counted it and keeps its back-off,
// and takes a 409 for the attempt that is still at work.
func TestKilledInAnAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		f := &fakeNet{}
		f.answer = func(s seen) (*http.Response, error) {
			switch s.n {
			case 1:
				<-hang
				return nil, errors.New("too late")
			case 2:
				return response(409, ""), nil
			}
			return response(200, ""), nil
		}
		opts := steady(f)
		path := filePath(t)
		o := open(t, path, opts)
		start := time.Now()
		enqueue(t, o, charge("x"))
		go o.Run(t.Context())
		time.Sleep(time.Second)
		killed := image(t, path)

		var got outbox.Delivery
		opts.Delivered = func(d outbox.Delivery) { got = d }
		o2 := open(t, killed, opts)
		if s := o2.Stats(); s.Waiting != 1 || s.Next.Sub(start) < time.Minute {
			t.Errorf("%+v", s)
		}
		drain(t, o2)
		close(hang)
		r := f.requests()
		if len(r) != 3 || got.Attempts != 3 {
			t.Fatalf("%d requests, %d attempts", len(r), got.Attempts)
		}
		about(t, "attempt 2", r[1].at.Sub(start), time.Minute)
		about(t, "attempt 3", r[2].at.Sub(start), 3*time.Minute)
		if r[0].key == "" || r[1].key != r[0].key || r[2].key != r[0].key {
			t.Errorf("keys %q %q %q", r[0].key, r[1].key, r[2].key)
		}
	})
}

// A call whose attempts kill the process is given up in the end.
func TestPoison(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := make(chan struct{})
		f := &fakeNet{answer: func(seen) (*http.Response, error) { <-hang; return nil, errors.New("too late") }}
		opts := steady(f)
		opts.Policy.MaxAttempts = 2
		path := filePath(t)
		o := open(t, path, opts)
		enqueue(t, o, charge("x"))
		go o.Run(t.Context())
		for range 2 { // two processes are killed
			time.Sleep(5 * time.Second)
			path = image(t, path)
			o = open(t, path, opts)
			go o.Run(t.Context())
			time.Sleep(time.Hour)
		}
		if d := onlyLetter(t, o); d.Reason != outbox.ReasonAttempts || d.Attempts != 2 || d.Status != 0 || d.Error == "" || len(f.requests()) != 2 {
			t.Errorf("%+v after %d requests", d, len(f.requests()))
		}
		close(hang)
	})
}

func TestGrace(t *testing.T) {
	for _, tt := range []struct {
		grace, takes time.Duration
		attempts     int
	}{
		{0, 5 * time.Second, 2},
		{4 * time.Second, 5 * time.Second, 2},
		{6 * time.Second, 5 * time.Second, 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := &fakeNet{}
			f.answer = func(s seen) (*http.Response, error) {
				if s.n > 1 {
					return response(200, ""), nil
				}
				select {
				case <-time.After(tt.takes):
					return response(200, ""), nil
				case <-s.req.Context().Done():
					return nil, s.req.Context().Err()
				}
			}
			opts := steady(f)
			opts.Grace = tt.grace
			o := open(t, filePath(t), opts)
			enqueue(t, o, charge("x"))
			ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond*100)
			defer cancel()
			start := time.Now()
			if err := o.Run(ctx); err != nil {
				t.Fatal(err)
			}
			about(t, "the end of Run", time.Since(start), min(tt.grace+100*time.Millisecond, tt.takes))
			drain(t, o) // what was cut off is due at once
			about(t, "the end of Drain", time.Since(start), min(tt.grace+100*time.Millisecond, tt.takes))
			if n := len(f.requests()); n != tt.attempts {
				t.Errorf("grace %v: %d attempts, want %d", tt.grace, n, tt.attempts)
			}
		})
	}
}

// Workers bound the attempts in flight; a server that hangs leaves room for
// others.
func TestWorkers(t *testing.T) {
	for _, perHost := range []int{0, 2} {
		synctest.Test(t, func(t *testing.T) {
			inFlight, most, mostSlow := 0, 0, 0
			slow := 0
			var done time.Time
			f := &fakeNet{}
			f.answer = func(s seen) (*http.Response, error) {
				f.mu.Lock()
				inFlight++
				most = max(most, inFlight)
				if s.req.URL.Host == "slow" {
					slow++
					mostSlow = max(mostSlow, slow)
				}
				f.mu.Unlock()
				if s.req.URL.Host == "slow" {
					time.Sleep(8 * time.Second)
				}
				f.mu.Lock()
				defer f.mu.Unlock()
				inFlight--
				if s.req.URL.Host == "slow" {
					slow--
				} else {
					done = time.Now()
				}
				return response(200, ""), nil
			}
			opts := steady(f)
			opts.Workers, opts.WorkersPerHost = 3, perHost
			o := open(t, filePath(t), opts)
			for range 12 {
				enqueue(t, o, outbox.Call{Method: "PUT", URL: "http://slow/x"})
			}
			enqueue(t, o, outbox.Call{Method: "PUT", URL: "http://fast/x"})
			start := time.Now()
			drain(t, o)
			want := opts.Workers
			if perHost > 0 {
				want = perHost
			}
			if most > opts.Workers || mostSlow != want {
				t.Errorf("per host %d: %d attempts at the same time, %d of them to the slow host", perHost, most, mostSlow)
			}
			// The other host's call does not wait for the twelve before it.
			if done.Sub(start) > time.Second {
				t.Errorf("per host %d: the fast call ended after %v", perHost, done.Sub(start))
			}
		})
	}
}

// Calls of one Order go one at a time, over restarts and past a dead letter.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeNet{}
		tries := map[string]int{}
		f.answer = func(s seen) (*http.Response, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			tries[s.body]++
			switch {
			case s.body == "1" && tries["1"] < 3:
				return response(503, ""), nil
			case s.body == "2":
				return response(400, ""), nil
			}
			return response(200, ""), nil
		}
		path := filePath(t)
		o := open(t, path, steady(f))
		for _, body := range []string{"1", "2", "3"} {
			enqueue(t, o, outbox.Call{Method: "PUT", URL: "http://server/x", Body: []byte(body), Order: "x"})
		}
		enqueue(t, o, outbox.Call{Method: "PUT", URL: "http://server/x", Body: []byte("free")})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := o.Run(ctx); err != nil {
			t.Fatal(err)
		}
		closeIt(t, o)
		o = open(t, path, steady(f))
		drain(t, o)
		var order []string
		for _, r := range f.requests() {
			if r.body != "free" {
				order = append(order, r.body)
			}
		}
		if got := fmt.Sprint(order); got != "[1 1 1 2 3]" || tries["free"] != 1 {
			t.Errorf("order %s, free %d", got, tries["free"])
		}
		if d := onlyLetter(t, o); string(d.Call.Body) != "2" {
			t.Errorf("%v", d)
		}
	})
}

func TestStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := outcomes(503)
		o := open(t, filePath(t), steady(f))
		enqueue(t, o, charge("x"))
		ended := make(chan error)
		go func() { ended <- o.Run(t.Context()) }()
		synctest.Wait()
		if err := o.Run(t.Context()); !errors.Is(err, outbox.ErrRunning) {
			t.Errorf("second Run: %v", err)
		}
		closeIt(t, o)
		if err := <-ended; err != nil {
			t.Errorf("Run after Close: %v", err)
		}
		closeIt(t, o)
		_, err := o.Enqueue(t.Context(), charge("x"))
		_, err2 := o.DeadLetters()
		for _, err := range []error{err, err2, o.Run(t.Context()), o.Drain(t.Context()), o.Requeue(1), o.Discard(1)} {
			if !errors.Is(err, outbox.ErrClosed) {
				t.Errorf("%v, want ErrClosed", err)
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		o := open(t, filePath(t), steady(outcomes(503)))
		enqueue(t, o, charge("x"))
		cause := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer cancel()
		if err := o.Drain(ctx); err != cause {
			t.Errorf("Drain: %v", err)
		}
		// A call that comes while Run waits wakes it.
		start := time.Now()
		go o.Run(t.Context())
		time.Sleep(time.Second)
		enqueue(t, o, charge("y"))
		time.Sleep(time.Second)
		if s := o.Stats(); s.Delivered != 1 || s.Waiting != 1 {
			t.Errorf("after %v: %+v", time.Since(start), s)
		}
		closeIt(t, o)
	})
}
