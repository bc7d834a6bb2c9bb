// Package peers adapts third-party HTTP clients, each with its defaults, so that the scenarios judge what
// their users really get. It is a module of its own: what these clients depend on never reaches a user of
// retrychaos.
package peers

import (
	_ "embed"
	"runtime/debug"

	"golang.org/x/mod/modfile"

	"github.com/retrychaos/retrychaos/harness"
)

// All returns every adapted client.
func All() []harness.Client {
	return []harness.Client{
		AWS(), Azcore(), Backoff(), FailsafeHTTP(), Gax(), GoRetry(), GoRetryableHTTP(), Heimdall(), NetHTTP(),
		Pester(), Rehttp(), Req(), Resty2(), Resty3(), RetryGo(),
	}
}

//go:embed go.mod
var goMod []byte

// version returns the version of a module that is built in. A binary knows it; a test binary carries no such
// information, so there go.mod is read.
func version(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == module {
				return m.Version
			}
		}
	}
	f, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return ""
	}
	for _, r := range f.Require {
		if r.Mod.Path == module {
			return r.Mod.Version
		}
	}
	return ""
}
