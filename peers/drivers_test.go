package peers_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/driver"
	"github.com/retrychaos/retrychaos/harness/world"
	"github.com/retrychaos/retrychaos/peers"
	"github.com/retrychaos/retrychaos/scenarios"
)

// maxDriver is how many lines a driver may have: more is a sign that it does what is the harness's to do.
const maxDriver = 60

// shown are rules that a client breaks by what it does each time, each in one scenario that takes a moment.
var shown = map[string][2]string{
	"axios-retry": {"duplicates/post-unkeyed-empty-response-fresh", "effects.once"},
	"curl":        {"duplicates/post-unkeyed-503-fresh", "effects.once"},
	"httpx":       {"recovery/one-503-get", "liveness.recovers"},
	"p-retry":     {"duplicates/post-unkeyed-503-fresh", "effects.once"},
	"tenacity":    {"duplicates/post-unkeyed-503-fresh", "effects.once"},
	"undici":      {"bodies/put-429-fresh", "liveness.recovers"},
	"urllib3":     {"recovery/one-503-get", "liveness.recovers"},
	"wget":        {"recovery/one-503-get", "liveness.recovers"},
}

// TestDrivers runs each driver whose client is installed through a few quick scenarios: it has no fault, says who it
// is, its calls arrive, and what is known of its client is found.
func TestDrivers(t *testing.T) {
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	manifests, err := driver.Load(peers.DriverFolder())
	if err != nil {
		t.Fatal(err)
	}
	quick := []string{"recovery/one-503-get", "recovery/one-503-put", "bodies/text-that-is-not-ascii", "cancellation/before-the-first-answer", "tls/lost-answer-reset-keyed-post-fresh"}
	for _, m := range manifests {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			c, err := harness.DriverOf(m).Meet()
			if err != nil {
				t.Fatal(err)
			}
			if c.Missing != "" {
				t.Skip(c.Missing)
			}
			if c.Version == "" || c.Policy == "" || c.Declared.MaxAttempts == 0 || !c.Declared.Remote {
				t.Errorf("the hello says too little: %+v", c)
			}
			names := quick
			if s, ok := shown[m.Name]; ok {
				names = append(names[:len(names):len(names)], s[0])
			}
			list, err := scenarios.Match(library, names...)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range list {
				res := harness.Runner{World: world.Loopback, Seed: seed}.One(nil, c, s)
				for _, f := range res.Findings {
					t.Errorf("%s: a finding of the harness itself: %s: %s", s.Name, f.Kind, f.Text)
				}
				if res.Status == check.Skipped {
					continue
				}
				for _, call := range res.History.Calls {
					if len(call.Attempts) == 0 && call.CancelAt == 0 {
						t.Errorf("%s: call %s never arrived: %s", s.Name, call.ID, call.Outcome.Error)
					}
				}
				if known := shown[m.Name]; known[0] == s.Name && !breaks(res, known[1]) {
					t.Errorf("%s: %s is not broken any more: %s", s.Name, known[1], res.Explain(check.May))
				}
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func breaks(res *harness.Result, id string) bool {
	for _, v := range res.Verdicts {
		if v.Check == id && v.Status == check.Fail {
			return true
		}
	}
	return false
}

// TestDriverFolders: every driver is short, installs what it needs in pinned versions, and names no registry.
func TestDriverFolders(t *testing.T) {
	folder := peers.DriverFolder()
	manifests, err := driver.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	if len(manifests) < 11 {
		t.Errorf("%d drivers", len(manifests))
	}
	sources, err := filepath.Glob(filepath.Join(folder, "*", "driver.*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range sources {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if n := bytes.Count(text, []byte("\n")); n > maxDriver {
			t.Errorf("%s has %d lines, at most %d", file, n, maxDriver)
		}
	}
	floating := regexp.MustCompile(`"[\^~><*]|"latest"`)
	for _, m := range manifests {
		info, err := os.Stat(filepath.Join(m.Dir(), m.Install))
		if err != nil {
			t.Error(err)
		} else if info.Mode()&0o111 == 0 {
			t.Errorf("%s/%s cannot be run", m.Name, m.Install)
		}
		pack, err := os.ReadFile(filepath.Join(m.Dir(), "package.json"))
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if floating.Match(bytes.ReplaceAll(pack, []byte(`">=20"`), nil)) {
			t.Errorf("%s: a version is not pinned", m.Name)
		}
		lock, err := os.ReadFile(filepath.Join(m.Dir(), "package-lock.json"))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(lock, []byte(`"resolved"`)) || bytes.Contains(lock, []byte("registry")) {
			t.Errorf("%s: the lock file names a registry", m.Name)
		}
	}
}
