package cli

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/kballard/go-shellquote"
	"github.com/spf13/cobra"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/driver"
	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/reports"
)

// worldAuto is the virtual world for every client that can enter it, and loopback for the others.
const worldAuto = "auto"

// What --histories can keep.
const (
	historiesAll    = "all"
	historiesFailed = "failed"
)

// Sets of clients for --clients.
const (
	setAll     = "all"
	setGo      = "go"
	setDrivers = "drivers"
)

// Drivers returns the clients behind the drivers of a folder, each in a folder of its own with a driver.json.
// Nothing is started; one that is not installed is skipped, with its reason, when it is to be run.
func Drivers(dir string) ([]NamedClient, error) {
	manifests, err := driver.Load(dir)
	if err != nil {
		return nil, fmt.Errorf("drivers: %w", err)
	}
	list := make([]NamedClient, len(manifests))
	for i, m := range manifests {
		list[i] = NamedClient{Client: harness.DriverOf(m), Doc: m.Doc}
	}
	return list, nil
}

func (f *runFlags) driverFlags(cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringArrayVar(&f.drivers, "driver", nil, "`COMMAND` of a driver to test, repeatable: one process for all calls, JSON lines in and out (docs/drivers.md)")
	fl.StringVar(&f.set, "clients", "", "`SET` of clients to test: all (the default one and those that this command adds), go or drivers (the part of all that is in Go, or behind drivers); the world is then auto")
	complete(cmd, "clients", setAll, setGo, setDrivers)
	fl.StringVar(&f.histories, "histories", historiesAll, "`WHICH` histories to keep: all, or failed (of what did not pass; the report is then smaller, and what passed cannot be judged again)")
	complete(cmd, "histories", historiesAll, historiesFailed)
}

// resolveDrivers adds the clients of --driver and --clients.
func (f *runFlags) resolveDrivers(cmd *cobra.Command) error {
	errs := []error{oneOf("histories", f.histories, historiesAll, historiesFailed)}
	for _, line := range f.drivers {
		words, err := shellquote.Split(line)
		if err != nil {
			errs = append(errs, fmt.Errorf("--driver %q: %w", line, err))
			continue
		}
		c, err := harness.Driver("", words...)
		if err != nil {
			errs = append(errs, fmt.Errorf("--driver: %w", err))
			continue
		}
		f.tested = append(f.tested, testedClient{c, invocation() + " run --driver " + reports.ShellQuote(line)})
	}
	if cmd.Flags().Changed("clients") {
		errs = append(errs, f.resolveSet(cmd))
	}
	if f.world == string(world.Virtual) && slices.ContainsFunc(f.tested, func(c testedClient) bool { return c.Outside() }) {
		errs = append(errs, errors.New("a driver is a process, and cannot enter the virtual world; --world auto leaves it outside"))
	}
	return errors.Join(errs...)
}

func (f *runFlags) resolveSet(cmd *cobra.Command) error {
	if err := oneOf("clients", f.set, setAll, setGo, setDrivers); err != nil {
		return err
	}
	if len(f.clients) > 0 {
		return errors.New("--clients and --client: one of the two")
	}
	if !cmd.Flags().Changed("world") {
		f.world = worldAuto
	}
	own := builtIn()
	n := len(f.tested)
	for _, k := range f.known {
		added := !slices.ContainsFunc(own, func(o NamedClient) bool { return o.Name == k.Name })
		if (added || k.Name == defaultClient) && (f.set == setAll || (f.set == setDrivers) == k.Outside()) {
			f.tested = append(f.tested, testedClient{k.Client, invocation() + " run --client " + reports.ShellQuote(k.Name)})
		}
	}
	if len(f.tested) == n {
		return fmt.Errorf("--clients %s: this command has none; `cd peers && go run ./cmd/peers run --clients %s` has", f.set, f.set)
	}
	return nil
}

// meet starts the drivers and takes down what they say of themselves. What is wrong with one of them is told with
// its results, and keeps no other client from being run.
func (f *runFlags) meet() error {
	var wg sync.WaitGroup
	for i := range f.tested {
		wg.Go(func() {
			c := &f.tested[i]
			met, err := c.Meet()
			if err != nil && met.Name == "" {
				met.Name = "driver:" + unnamed(c.repro)
			}
			c.Client = met
		})
	}
	wg.Wait()
	seen := map[string]bool{}
	for _, c := range f.tested {
		if seen[c.Name] {
			return fmt.Errorf("two clients are called %q: their results could not be told apart", c.Name)
		}
		seen[c.Name] = true
	}
	return nil
}

// unnamed names a driver that has not said who it is by the last word of its command.
func unnamed(repro string) string {
	words, err := shellquote.Split(repro)
	if err != nil || len(words) == 0 {
		return "unknown"
	}
	fields := strings.Fields(words[len(words)-1])
	return filepath.Base(fields[len(fields)-1])
}

// hangUp ends the drivers, whatever became of the run.
func (f *runFlags) hangUp() {
	for _, c := range f.tested {
		_ = c.Close()
	}
}

// hangUp ends the drivers and writes what they did wrong, and no result tells, into the last one of each.
func (r *results) hangUp(tested []testedClient) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range tested {
		err := c.Close()
		if err == nil {
			continue
		}
		for i := len(r.list) - 1; i >= 0; i-- {
			if res := &r.list[i]; res.Client == c.Name && res.History != nil {
				res.Fault(err, r.runner.Level)
				break
			}
		}
	}
}

// kept is a result as it is kept.
func (r *results) kept(res harness.Result) harness.Result {
	if r.lean && res.Status == check.Pass {
		res.History, res.Decisions = nil, nil
	}
	return res
}

// worldOf is the world in which a client is run.
func (f *runFlags) worldOf(c harness.Client) world.Kind {
	switch {
	case f.world != worldAuto:
		return world.Kind(f.world)
	case c.Outside():
		return world.Loopback
	}
	return world.Virtual
}

// worlds names the world of the run for its report, or both of them.
func (f *runFlags) worlds() string {
	var list []string
	for _, c := range f.tested {
		if w := string(f.worldOf(c.Client)); !slices.Contains(list, w) {
			list = append(list, w)
		}
	}
	slices.Sort(list)
	return strings.Join(list, " and ")
}
