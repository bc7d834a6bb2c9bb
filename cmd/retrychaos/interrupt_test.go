package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/retrychaos/retrychaos/cmd/retrychaos/cli"
	"github.com/retrychaos/retrychaos/harness"
)

// interrupted is the command line with clients that send the process an interrupt in their first call, and go on
// when the command line has said that it has seen it: client "well" then does its calls well, "badly" says that
// all is well and does nothing, and "again" interrupts until that ends the process. See
// testdata/script/interrupt.txtar.
func interrupted() {
	seen := make(chan struct{})
	stderr := os.Stderr
	r, w, err := os.Pipe()
	if err != nil {
		fmt.Fprintln(stderr, err)
		os.Exit(9)
	}
	os.Stderr = w
	go func() {
		// cli.Main ends the process, so what is said after the interrupt need not arrive.
		for in := bufio.NewScanner(r); in.Scan(); {
			fmt.Fprintln(stderr, in.Text())
			if strings.HasPrefix(in.Text(), "interrupted:") {
				close(seen)
			}
		}
	}()
	interrupt := sync.OnceValue(func() error {
		self, err := os.FindProcess(os.Getpid())
		if err != nil {
			return err
		}
		if err := self.Signal(os.Interrupt); err != nil {
			return err
		}
		<-seen
		return nil
	})
	client := func(name string, then func(*http.Client, *http.Request, harness.Call) harness.Outcome) cli.NamedClient {
		return cli.NamedClient{Doc: "interrupts the run", Client: harness.Client{Name: name, New: func(env harness.Env) (harness.Caller, error) {
			hc := &http.Client{Transport: env.Transport}
			return harness.CallerFunc(func(ctx context.Context, call harness.Call) harness.Outcome {
				req, err := call.Request(ctx)
				if err := errors.Join(err, interrupt()); err != nil {
					return harness.Outcome{Err: err}
				}
				return then(hc, req, call)
			}), nil
		}}}
	}
	cli.Main(
		client("well", func(hc *http.Client, req *http.Request, call harness.Call) harness.Outcome {
			resp, err := hc.Do(req)
			return harness.Receive(call, resp, err)
		}),
		client("badly", func(_ *http.Client, req *http.Request, _ harness.Call) harness.Outcome {
			if req.Body != nil {
				_, _ = io.Copy(io.Discard, req.Body)
			}
			return harness.Outcome{OK: true}
		}),
		client("again", func(*http.Client, *http.Request, harness.Call) harness.Outcome {
			self, err := os.FindProcess(os.Getpid())
			for n := 0; err == nil && n < 500; n++ {
				err = self.Signal(os.Interrupt)
				time.Sleep(10 * time.Millisecond) // a signal takes its time
			}
			return harness.Outcome{Err: errors.Join(err, errors.New("still here"))}
		}))
}
