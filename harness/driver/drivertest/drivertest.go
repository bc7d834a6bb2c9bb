// Package drivertest is a driver in Go, for tests: a good one, and ones that break the protocol on purpose.
package drivertest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/retrychaos/retrychaos/harness/driver"
)

// Env makes a test binary a driver, in the mode that is its value. Main looks at it.
const Env = "RETRYCHAOS_TEST_DRIVER"

// Good is the mode without a fault.
const Good = "good"

// Modes are the ways to break the protocol that show while calls are made, before the first line, or at the end.
var Modes = map[string]string{
	"garbage":       "its output: it is not a JSON object",
	"broken-json":   "its output: it is not JSON",
	"two-on-a-line": "something behind the JSON object",
	"no-ok":         "the outcome has no field ok",
	"contradiction": "it says ok and has an error",
	"unknown-kind":  `kind is "timeuot"; did you mean "timeout"?`,
	"wrong-type":    "the field status is a string",
	"twice":         "is answered twice",
	"unknown-call":  "call 4711 was never asked for",
	"pong":          "a pong for a ping",
	"too-long":      "longer than 16777216 bytes",
	"half-a-line":   "ends in the middle of line",
	"dies":          "it ended before its input did: exit status 7",
	"exits":         "it ended before its input did: exit status 0",
	"hangs":         "it hangs: no answer to a ping",
	"closes-output": "it closed its standard output and did not exit",

	"silent":        "it said nothing for",
	"talks-first":   "this is no hello",
	"wrong-version": `it speaks "retrychaos.driver/v9"`,
	"no-client":     "the field client is missing",
	"dies-at-once":  "exit status 7",

	"bad-exit":    "at the end of its input it exited badly: exit status 3",
	"never-exits": "it did not exit within",
}

// AtStart and AtEnd tell the modes apart that do not show with a call.
var (
	AtStart = []string{"silent", "talks-first", "wrong-version", "no-client", "dies-at-once"}
	AtEnd   = []string{"bad-exit", "never-exits"}
)

// Main is a driver in the mode of Env, and never returns then. Without Env it returns at once.
func Main() {
	mode := os.Getenv(Env)
	if mode == "" {
		return
	}
	os.Exit(run(mode, os.Stdin, os.Stdout))
}

type request struct {
	driver.Request
	Ping, Close, Cancel *int64
}

func run(mode string, in io.Reader, stdout io.Writer) int {
	var mu sync.Mutex
	say := func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(stdout, format, args...)
	}
	fmt.Fprintln(os.Stderr, "this is what a driver says to people")
	switch mode {
	case "silent":
		select {}
	case "talks-first":
		say("Welcome!\n")
	case "wrong-version":
		say(`{"protocol":"retrychaos.driver/v9","client":"x"}` + "\n")
	case "no-client":
		say(`{"protocol":%q}`+"\n", driver.Protocol)
	case "dies-at-once":
		return 7
	}
	say(`{"protocol":%q,"client":"drivertest","version":"1.2.3","policy":"three attempts, it says","declared":{"max_attempts":3},"tls":true,"cancels":true,"new":1}`+"\n", driver.Protocol)
	if mode == "hangs" {
		select {}
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, driver.MaxLine+1)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 2
		}
		switch {
		case r.Ping != nil:
			say("{\"pong\":%d}\n", *r.Ping)
		case r.ID != 0 && !misbehave(mode, r.ID, say, stdout):
			go func() {
				out, _ := json.Marshal(perform(r.Request))
				say("%s\n", out)
			}()
		}
	}
	switch mode {
	case "bad-exit":
		return 3
	case "never-exits":
		time.Sleep(time.Hour)
	}
	return 0
}

// misbehave breaks the protocol for a call, and reports whether the call is thereby done.
func misbehave(mode string, id int64, say func(string, ...any), stdout io.Writer) bool {
	if mode == Good || slices.Contains(AtEnd, mode) {
		return false
	}
	switch mode {
	case "garbage":
		say("Traceback: what a library printed\n")
	case "broken-json":
		say("{\"id\": %d, \"ok\n", id)
	case "two-on-a-line":
		say("{\"id\":%d,\"ok\":true}{\"id\":%d,\"ok\":true}\n", id, id)
	case "no-ok":
		say("{\"id\":%d}\n", id)
	case "contradiction":
		say("{\"id\":%d,\"ok\":true,\"error\":\"no\"}\n", id)
	case "unknown-kind":
		say("{\"id\":%d,\"ok\":false,\"error\":\"no\",\"kind\":\"timeuot\"}\n", id)
	case "wrong-type":
		say("{\"id\":%d,\"ok\":true,\"status\":\"200\"}\n", id)
	case "twice":
		say("{\"id\":%d,\"ok\":false,\"status\":500}\n{\"id\":%d,\"ok\":false,\"status\":500}\n", id, id)
	case "unknown-call":
		say("{\"id\":4711,\"ok\":true}\n")
	case "pong":
		say("{\"pong\":4711}\n")
	case "too-long":
		say("{\"id\":%d,\"ok\":true,\"body\":\"%s\"}\n", id, strings.Repeat("x", driver.MaxLine))
	case "half-a-line":
		say("{\"id\":%d", id)
		os.Exit(0)
	case "dies":
		os.Exit(7)
	case "exits":
		os.Exit(0)
	case "closes-output":
		stdout.(io.Closer).Close()
	}
	return true
}

// perform makes the call with net/http, once, whatever its hello declares.
func perform(r driver.Request) driver.Outcome {
	out := driver.Outcome{ID: r.ID}
	fail := func(err error) driver.Outcome {
		out.Error = err.Error()
		return out
	}
	var body io.Reader
	switch {
	case r.Body != nil:
		body = strings.NewReader(*r.Body)
	case r.BodyBase64 != nil:
		body = bytes.NewReader(r.BodyBase64)
	}
	req, err := http.NewRequest(r.Method, r.URL, body)
	if err != nil {
		return fail(err)
	}
	for k, v := range r.Headers {
		req.Header.Set(k, v)
	}
	if r.Key != "" {
		req.Header.Set("Idempotency-Key", r.Key)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	if r.CACert != "" {
		pem, err := os.ReadFile(r.CACert)
		if err != nil {
			return fail(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	c := &http.Client{Transport: transport, Timeout: time.Duration(r.DeadlineMS) * time.Millisecond}
	resp, err := c.Do(req)
	if err != nil {
		return fail(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return fail(err)
	}
	reply := string(text)
	out.OK, out.Status, out.Body, out.Attempts = resp.StatusCode < 300, resp.StatusCode, &reply, 1
	return out
}
