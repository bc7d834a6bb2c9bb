package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/net/netutil"

	"github.com/retrychaos/retrychaos/harness/serve"
)

const (
	// controlConns is how many connections the control API has at once; those beyond wait.
	controlConns = 256
	// leaveTime is how long requests that are under way have when the server ends.
	leaveTime = 5 * time.Second
)

type serveFlags struct {
	listen      string
	addressFile string
	remote      bool
	baseHost    string
	allowHosts  []string
	ttl         time.Duration
	maxRuns     int
	maxCalls    int
	maxBytes    int64
	maxConns    int
	attemptCap  int
}

func newServe() *cobra.Command {
	f := &serveFlags{}
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Serve scenarios to your own test suite, in any language",
		Long: `Serve scenarios to your own test suite, in any language.

A run is one scenario's fake server on a port of its own. Your test makes a run
(POST /runs), lets your client make the run's calls, reports what the client told it of each
(POST /runs/ID/outcomes), and reads the verdict (GET /runs/ID/verdict). GET /openapi.yaml
describes the API; docs/serve.md is the guide, with examples for pytest, JUnit and Vitest.

The address is printed on stdout as one line, http://127.0.0.1:8474, when the server is
ready. An interrupt (Ctrl-C) or SIGTERM ends it and all its runs.

Only this machine can reach it, unless --allow-remote is given: whoever reaches it can have
it open ports.

Exit status: 0 it was ended, 2 wrong usage or an address that cannot be had,
3 a fault of the server itself.`,
		Example: `  retrychaos serve
  retrychaos serve --listen 127.0.0.1:0 --address-file address.txt &
  retrychaos serve --listen 0.0.0.0:8474 --allow-remote --allow-host faults.internal
  curl http://127.0.0.1:8474/runs -H 'Content-Type: application/json' -d '{"library": "recovery/one-hang"}'
  curl http://127.0.0.1:8474/runs -H 'Content-Type: application/yaml' --data-binary @my-scenarios.yaml`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(); err != nil {
				return err
			}
			return f.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.listen, "listen", "127.0.0.1:8474", "`ADDRESS` of the API: an IP address and a port, 0 for any")
	fl.StringVar(&f.addressFile, "address-file", "", "`FILE` that the address is written to when the server is ready; it is removed at the end")
	fl.BoolVar(&f.remote, "allow-remote", false, "let --listen be an address that other machines reach")
	fl.StringVar(&f.baseHost, "base-host", "", "`HOST` in the URLs of runs (default: that of --listen, or of the request where that is all addresses)")
	fl.StringSliceVar(&f.allowHosts, "allow-host", nil, "`NAME` that requests may have as Host, beside localhost and IP addresses; repeatable")
	fl.DurationVar(&f.ttl, "run-ttl", 15*time.Minute, "`TIME` after which a run that nobody deleted is deleted")
	fl.IntVar(&f.maxRuns, "max-runs", 32, "`N` runs at once; further ones are refused with 503")
	fl.IntVar(&f.maxCalls, "max-calls", 1000, "`N` calls of a run; scenarios with more are refused")
	fl.Int64Var(&f.maxBytes, "max-bytes", 64<<20, "`N` bytes that the port of a run receives; then it takes no more")
	fl.IntVar(&f.maxConns, "max-conns", 1024, "`N` connections at once to the port of a run; further ones are reset")
	fl.IntVar(&f.attemptCap, "max-attempts", 64, "`N` attempts of a call; further ones hang")
	_ = cmd.MarkFlagFilename("address-file")
	return cmd
}

// check looks at the flags before anything is opened.
func (f *serveFlags) check() error {
	var errs []error
	host, _, err := net.SplitHostPort(f.listen)
	ip := net.ParseIP(host)
	if host == "localhost" {
		ip = net.IPv4(127, 0, 0, 1)
	}
	switch {
	case err != nil:
		errs = append(errs, fmt.Errorf("--listen %q: give an IP address and a port, like 127.0.0.1:8474", f.listen))
	case ip == nil:
		errs = append(errs, fmt.Errorf("--listen %q: %q is no IP address; 0.0.0.0 is all of IPv4", f.listen, host))
	case !ip.IsLoopback() && !f.remote:
		errs = append(errs, fmt.Errorf("--listen %q can be reached from other machines: add --allow-remote if that is meant", f.listen))
	}
	if f.ttl <= 0 {
		errs = append(errs, fmt.Errorf("--run-ttl %v: it must be positive", f.ttl))
	}
	for _, n := range []struct {
		flag  string
		value int64
	}{{"max-runs", int64(f.maxRuns)}, {"max-calls", int64(f.maxCalls)}, {"max-bytes", f.maxBytes}, {"max-conns", int64(f.maxConns)}, {"max-attempts", int64(f.attemptCap)}} {
		if n.value <= 0 {
			errs = append(errs, fmt.Errorf("--%s %d: it must be positive", n.flag, n.value))
		}
	}
	return errors.Join(errs...)
}

// run serves until ctx ends.
func (f *serveFlags) run(ctx context.Context, out, errOut io.Writer) error {
	l, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	host, _, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return failure{errors.Join(err, l.Close())}
	}
	if ip := net.ParseIP(host); ip != nil && !ip.IsLoopback() {
		fmt.Fprintf(errOut, "retrychaos: warning: %s can be reached from other machines, and so can the ports of runs; there is no password\n", l.Addr())
	}
	handler := serve.New(serve.Config{
		Host: host, BaseHost: f.baseHost, AllowHosts: f.allowHosts, MaxRuns: f.maxRuns, TTL: f.ttl, MaxCalls: f.maxCalls,
		MaxBytes: f.maxBytes, MaxConns: f.maxConns, AttemptCap: f.attemptCap, Version: version(),
	})
	defer handler.Close()
	server := &http.Server{
		Handler: handler, ErrorLog: log.New(io.Discard, "", 0), MaxHeaderBytes: 64 << 10,
		// Whoever is slow to ask or to listen has this long.
		ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(netutil.LimitListener(l, controlConns)) }()

	address := "http://" + l.Addr().String()
	if f.addressFile != "" {
		if err := writeWhole(f.addressFile, address+"\n"); err != nil {
			return errors.Join(fmt.Errorf("--address-file: %w", err), server.Close())
		}
		defer os.Remove(f.addressFile)
	}
	if _, err := fmt.Fprintln(out, address); err != nil {
		return failure{errors.Join(err, server.Close())}
	}
	select {
	case err := <-served:
		return failure{fmt.Errorf("serving: %w", err)}
	case <-ctx.Done():
	}
	fmt.Fprintln(errOut, "retrychaos: ended; its runs are closed")
	leave, cancel := context.WithTimeout(context.WithoutCancel(ctx), leaveTime)
	defer cancel()
	handler.Close()
	if err := server.Shutdown(leave); err != nil {
		_ = server.Close()
	}
	return nil
}

// writeWhole writes a file that is there only when it is whole: whoever waits for it must not read a half of it.
func writeWhole(name, text string) error {
	tmp, err := os.CreateTemp(filepath.Dir(name), ".address-*")
	if err != nil {
		return err
	}
	_, err = tmp.WriteString(text)
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), name)
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
	}
	return err
}
