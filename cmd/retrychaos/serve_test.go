package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/cmd/retrychaos/cli"
)

// A served is a `retrychaos serve` in this process.
type served struct {
	url    string
	file   string
	stdout *io.PipeReader
	stderr bytes.Buffer
	stop   context.CancelFunc
	code   chan int
}

// startServe starts it and waits for its address.
func startServe(t *testing.T, flags ...string) *served {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	out, in := io.Pipe()
	s := &served{file: filepath.Join(t.TempDir(), "address"), stdout: out, stop: stop, code: make(chan int, 1)}
	args := append([]string{"serve", "--listen", "127.0.0.1:0", "--address-file", s.file}, flags...)
	go func() {
		code := cli.Execute(ctx, args, in, &s.stderr)
		in.Close()
		s.code <- code
	}()
	line := make([]byte, 200)
	n, err := out.Read(line)
	if err != nil {
		t.Fatalf("%v, exit status %d: %s", err, <-s.code, &s.stderr)
	}
	s.url = strings.TrimSuffix(string(line[:n]), "\n")
	go io.Copy(io.Discard, out)
	t.Cleanup(stop)
	return s
}

func TestServe(t *testing.T) {
	t.Parallel()
	s := startServe(t)
	if text, err := os.ReadFile(s.file); err != nil || string(text) != s.url+"\n" {
		t.Errorf("%q %v; the address is %s", text, err, s.url)
	}
	resp, err := http.Post(s.url+"/runs", "application/json", strings.NewReader(`{"library": "recovery/one-hang"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var run struct {
		BaseURL string `json:"base_url"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&run); err != nil || resp.StatusCode != http.StatusCreated {
		t.Fatal(resp.Status, err)
	}
	s.stop()
	if code := <-s.code; code != 0 {
		t.Errorf("exit status %d: %s", code, &s.stderr)
	}
	if _, err := os.Stat(s.file); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the address file is left: %v", err)
	}
	for _, address := range []string{s.url, run.BaseURL} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if c, err := net.Dial("tcp", u.Host); err == nil {
			c.Close()
			t.Errorf("%s still takes connections", address)
		}
	}
}

// TestServeSlowClients: whoever never finishes a request is let go, and does not hold up the end.
func TestServeSlowClients(t *testing.T) {
	t.Parallel()
	s := startServe(t)
	u, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	var conns []net.Conn
	for range 100 {
		c, err := net.Dial("tcp", u.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		fmt.Fprintf(c, "POST /runs HTTP/1.1\r\nHost: localhost\r\nContent-Ty")
		conns = append(conns, c)
	}
	resp, err := http.Get(s.url + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if _, err := io.Copy(io.Discard, conns[0]); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Logf("the connection ended with %v", err)
	}
	s.stop()
	if code := <-s.code; code != 0 {
		t.Errorf("exit status %d: %s", code, &s.stderr)
	}
}

const serveExamples = "../../docs/examples/serve"

// TestServeExamples runs the examples of the guide, where their runtimes are there.
func TestServeExamples(t *testing.T) {
	t.Run("pytest", func(t *testing.T) {
		t.Parallel()
		python := ""
		for _, name := range []string{"python3", "/usr/bin/python3", "python"} {
			if exec.Command(name, "-c", "import pytest").Run() == nil {
				python = name
				break
			}
		}
		if python == "" {
			t.Skip("no Python with pytest is here (Debian: apt-get install python3-pytest)")
		}
		example(t, "pytest", "5 passed", python, "-B", "-m", "pytest", "-p", "no:cacheprovider", "--color=no")
	})
	t.Run("junit", func(t *testing.T) {
		t.Parallel()
		classpath := []string{t.TempDir()}
		for _, jar := range []string{"junit-jupiter-api", "junit-jupiter-engine", "junit-jupiter-params", "junit-platform-commons", "junit-platform-engine",
			"junit-platform-launcher", "junit-platform-reporting", "junit-platform-console", "opentest4j", "apiguardian-api", "picocli", "univocity-parsers"} {
			path := filepath.Join("/usr/share/java", jar+".jar")
			if _, err := os.Stat(path); err != nil {
				t.Skipf("no JUnit 5 is here (Debian: apt-get install junit5): %v", err)
			}
			classpath = append(classpath, path)
		}
		javac, err := exec.LookPath("javac")
		if err != nil {
			t.Skipf("no Java compiler is here (Debian: apt-get install openjdk-17-jdk-headless): %v", err)
		}
		list := strings.Join(classpath, string(os.PathListSeparator))
		sources, err := filepath.Glob(filepath.Join(serveExamples, "junit", "*.java"))
		if err != nil || len(sources) != 3 {
			t.Fatal(sources, err)
		}
		if out, err := exec.Command(javac, append([]string{"-d", classpath[0], "-cp", list, "-encoding", "UTF-8", "-Werror"}, sources...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		example(t, "junit", "5 tests successful", "java", "-cp", list, "org.junit.platform.console.ConsoleLauncher", "--scan-classpath", classpath[0], "--disable-ansi-colors")
	})
	t.Run("vitest", func(t *testing.T) {
		t.Parallel()
		if _, err := exec.LookPath("node"); err != nil {
			t.Skipf("no Node is here: %v", err)
		}
		vitest := "node_modules/vitest/vitest.mjs"
		if _, err := os.Stat(filepath.Join(serveExamples, "vitest", vitest)); err != nil {
			t.Skip("no Vitest is here: npm ci in docs/examples/serve/vitest installs it")
		}
		example(t, "vitest", "5 passed", "node", vitest, "run")
	})
}

// example runs a command in the folder of an example, with a server of its own.
func example(t *testing.T, dir, want string, command ...string) {
	t.Helper()
	s := startServe(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = filepath.Join(serveExamples, dir)
	cmd.Env = append(os.Environ(), "RETRYCHAOS_URL="+s.url, "NO_COLOR=1", "LC_ALL=C.UTF-8")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%v; want %q in\n%s", err, want, out)
	}
}
