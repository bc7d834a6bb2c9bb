package harness_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/driver"
	"github.com/retrychaos/retrychaos/harness/driver/drivertest"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/scenarios"
)

// driven is this test binary as a driver.
func driven(t *testing.T, mode string) harness.Client {
	t.Helper()
	t.Setenv(drivertest.Env, mode)
	c, err := harness.Driver("", os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// TestDriver: a client behind a driver is judged by what it does; what it says of itself is taken down.
func TestDriver(t *testing.T) {
	c, err := driven(t, drivertest.Good).Meet()
	if err != nil {
		t.Fatal(err)
	}
	if c.Name != "drivertest" || c.Version != "1.2.3" || c.Policy != "three attempts, it says" || c.Declared != (history.Declared{MaxAttempts: 3, Remote: true}) || !c.Outside() {
		t.Errorf("%+v", c)
	}
	loopback := harness.Runner{World: world.Loopback}
	get := scenarios.Group{Method: "GET", Count: 3}
	res := loopback.One(nil, c, scenario(t, get, "truncated_body after=0.5"))
	for _, call := range res.History.Calls {
		if call.Outcome.OK || call.Outcome.Error == "" {
			t.Errorf("a body that breaks off: %+v", call.Outcome)
		}
	}
	res = loopback.One(nil, c, scenario(t, get, "malformed_json"))
	for _, call := range res.History.Calls {
		if call.Outcome.OK || !call.Outcome.Has(history.TraitDecoding) {
			t.Errorf("the reply is decoded by the harness: %+v", call.Outcome)
		}
	}
	res = loopback.One(nil, c, scenario(t, scenarios.Group{Method: "POST", Count: 2, Key: true, Body: `{"a":"ü"}`}))
	if res.Status != check.Pass || !res.History.Calls[1].Outcome.OK || res.History.Calls[0].Attempts[0].Key == "" {
		t.Error(res.Explain(check.May))
	}
	if res = loopback.One(nil, c, secure(t, get)); res.Status != check.Pass || !res.History.Calls[0].Outcome.OK {
		t.Errorf("through TLS: %s", res.Explain(check.May))
	}
	for why, s := range map[string]scenarios.Scenario{
		"dials of a process":       scenario(t, get, "connect_refused"),
		"more than this asks of a": scenario(t, scenarios.Group{Method: "GET", Count: 1000}),
	} {
		if res := loopback.One(nil, c, s); res.Status != check.Skipped || !strings.Contains(res.Reason, why) {
			t.Errorf("%s: %s", res.Status, res.Reason)
		}
	}
	if res := (harness.Runner{}).One(t, c, scenario(t, get)); res.Status != check.Skipped || !strings.Contains(res.Reason, "virtual world") {
		t.Errorf("%s: %s", res.Status, res.Reason)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}

// TestDriverFaults: what a driver does wrong leaves its run undecided, whatever the checks say, and is never the client's.
func TestDriverFaults(t *testing.T) {
	for _, mode := range []string{"garbage", "twice", "unknown-call", "dies", "talks-first", "wrong-version", "bad-exit"} {
		t.Run(mode, func(t *testing.T) {
			c := driven(t, mode)
			// It makes one attempt and declares three, so that the check of it fails unless the driver is at fault.
			s := scenario(t, scenarios.Group{Method: "GET", Count: 1}, "503")
			res := harness.Runner{World: world.Loopback}.One(nil, c, s)
			err := c.Close()
			if slices.Contains(drivertest.AtEnd, mode) {
				if err == nil {
					t.Fatal("Close tells nothing")
				}
				res.Fault(err, check.Should)
			} else if err != nil && mode != "twice" { // the second answer may come when the run is over
				t.Errorf("told again by Close: %v", err)
			} else if err != nil {
				res.Fault(err, check.Should)
			}
			if res.Status != check.Unknown || len(res.Findings) != 1 || res.Findings[0].Kind != history.FindingHarness ||
				!strings.Contains(res.Reason, drivertest.Modes[mode]) {
				t.Errorf("%s: %s: %v", res.Status, res.Reason, res.Findings)
			}
			for _, v := range res.Verdicts {
				if v.Status == check.Fail {
					t.Errorf("the client is blamed: %+v", v)
				}
			}
		})
	}
}

// TestMissingDriver: a client that is not installed is skipped, with what to do.
func TestMissingDriver(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, driver.ManifestFile), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := driver.Load(dir); err == nil || !strings.Contains(err.Error(), "holds no driver") {
		t.Error(err)
	}
	write("gone", `{"name":"gone","doc":"d","command":["no-such-program"],"check":["no-such-program","--version"],"install":"install.sh"}`)
	list, err := driver.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	res := harness.Runner{World: world.Loopback}.One(nil, harness.DriverOf(list[0]), scenario(t, scenarios.Group{Method: "GET", Count: 1}))
	want := "gone is not installed (there is no no-such-program): run " + filepath.Join(dir, "gone", "install.sh")
	if res.Status != check.Skipped || res.Reason != want {
		t.Errorf("%s: %s, want %s", res.Status, res.Reason, want)
	}
	write("twin", `{"name":"gone","doc":"d","command":["x"],"check":["x"],"install":"i"}`)
	write("part", `{"name":"part","doc":"d"}`)
	_, err = driver.Load(dir)
	for _, want := range []string{`two drivers called "gone"`, "missing: check, command, install"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in: %v", want, err)
		}
	}
}
