package harness_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/driver/drivertest"
	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/scenarios"
)

// fetchEnv makes the test binary a command line client: METHOD URL CACERT.
const fetchEnv = "RETRYCHAOS_TEST_FETCH"

func TestMain(m *testing.M) {
	drivertest.Main()
	if os.Getenv(fetchEnv) == "" {
		os.Exit(m.Run())
	}
	if err := fetch(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
}

func fetch(method, url, cacert string) error {
	pem, err := os.ReadFile(cacert)
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		return err
	}
	c := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 300 {
		return errors.New(resp.Status)
	}
	return nil
}

// TestExecThroughTLS: a command that takes {cacert} reaches a server that speaks TLS, and the file is gone
// afterwards. One that does not is not run there, and no command where the dial would be broken.
func TestExecThroughTLS(t *testing.T) {
	t.Setenv(fetchEnv, "1")
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	line := os.Args[0] + " {method} {url} "
	trusting, err := harness.Exec("fetch", line+"{cacert}")
	if err != nil {
		t.Fatal(err)
	}
	blind, err := harness.Exec("fetch", line)
	if err != nil {
		t.Fatal(err)
	}
	run := func(c harness.Client, s scenarios.Scenario) *harness.Result {
		return harness.Runner{World: world.Loopback}.One(nil, c, s)
	}
	g := scenarios.Group{Method: "GET", Count: 2}
	if res := run(trusting, secure(t, g)); res.Status != check.Pass || !res.History.Calls[0].Outcome.OK || !res.History.Calls[1].Outcome.OK {
		t.Error(res.Explain(check.May))
	}
	if res := run(trusting, scenario(t, g)); !res.History.Calls[0].Outcome.OK {
		t.Errorf("without TLS: %s", res.Explain(check.May))
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if res := run(blind, secure(t, g)); res.Status != check.Skipped || !strings.Contains(res.Reason, "{cacert}") {
		t.Errorf("%s: %s", res.Status, res.Reason)
	}
	for _, s := range []scenarios.Scenario{scenario(t, g, "connect_refused"), secure(t, g, "tls_bad_certificate")} {
		if res := run(trusting, s); res.Status != check.Skipped || !strings.Contains(res.Reason, "dials of a process") {
			t.Errorf("%s: %s", res.Status, res.Reason)
		}
	}
}
