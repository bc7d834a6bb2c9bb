package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/kballard/go-shellquote"

	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/internal/procgroup"
)

// placeholders that a command line may hold.
var placeholders = []string{"method", "url", "key", "body", "call", "cacert"}

var placeholder = regexp.MustCompile(`\{([a-z_]+)\}`)

// killDelay is how long a cancelled process has to end after SIGKILL before its pipes are closed.
const killDelay = 2 * time.Second

// maxStderr bounds what is kept of a process's complaints.
const maxStderr = 4 << 10

// Exec adapts a command: one process a call. line is split as a POSIX shell splits words (quotes and
// backslashes, no variables, no pipes; nothing is run by a shell); then in each word the placeholders
// {method} {url} {key} {body} {call} {cacert} are filled in. {key} and {body} are empty where a call has none;
// {cacert} is a PEM file with the certificate authority of the run, and a line without it is not run where the
// server speaks TLS. Exit status 0 means that the call succeeded.
//
// Exec returns an error if the line cannot be split, has no {url}, holds an unknown placeholder, or names
// a program that is not there.
func Exec(name, line string) (Client, error) {
	words, err := shellquote.Split(line)
	if err != nil {
		return Client{}, fmt.Errorf("command %q: %w", line, err)
	}
	if len(words) == 0 {
		return Client{}, errors.New("the command is empty")
	}
	for _, w := range words {
		for _, m := range placeholder.FindAllStringSubmatch(w, -1) {
			if !slices.Contains(placeholders, m[1]) {
				return Client{}, fmt.Errorf("command %q: unknown placeholder %s; there are {%s}", line, m[0], strings.Join(placeholders, "} {"))
			}
		}
	}
	if !strings.Contains(line, "{url}") {
		return Client{}, fmt.Errorf("command %q: it holds no {url}, so it cannot reach the server", line)
	}
	program, err := exec.LookPath(words[0])
	if err != nil {
		return Client{}, fmt.Errorf("command %q: %w", line, err)
	}
	words[0] = program
	trusts := strings.Contains(line, "{cacert}")
	return Client{
		Name:     name,
		Declared: history.Declared{Process: true},
		trusts:   trusts,
		New: func(env Env) (Caller, error) {
			if !trusts {
				return &command{words: words}, nil
			}
			ca, err := writeCA(env.CA)
			return &command{words, ca}, err
		},
	}, nil
}

// command is one instance of a client that is a process a call.
type command struct {
	words []string
	cacert
}

// Call runs the command once.
func (c *command) Call(ctx context.Context, call Call) Outcome {
	values := map[string]string{
		"method": call.Method, "url": call.URL, "key": call.Key, "body": string(call.Body), "call": call.ID, "cacert": string(c.cacert),
	}
	words := c.words
	args := make([]string, len(words))
	for i, w := range words {
		args[i] = placeholder.ReplaceAllStringFunc(w, func(m string) string { return values[m[1:len(m)-1]] })
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = killDelay
	procgroup.Isolate(cmd)
	var stderr bytes.Buffer
	cmd.Stderr = &limited{&stderr, maxStderr}
	err := cmd.Run()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		// With ErrWaitDelay the process has ended well, and a child that it left behind holds its stderr.
		return Outcome{OK: true}
	}
	if cause := ctx.Err(); cause != nil {
		return Outcome{Err: fmt.Errorf("%w (the process was killed)", cause)}
	}
	if said := strings.TrimSpace(stderr.String()); said != "" {
		err = fmt.Errorf("%w: %s", err, said)
	}
	return Outcome{Err: err}
}

// limited keeps the first n bytes and swallows the rest.
type limited struct {
	buf *bytes.Buffer
	n   int
}

func (l *limited) Write(p []byte) (int, error) {
	if room := l.n - l.buf.Len(); room > 0 {
		l.buf.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}
