// Package peers adapts third-party HTTP clients, each with its defaults, so that the scenarios judge what
// their users really get. It is a module of its own: what these clients depend on never reaches a user of
// retrychaos.
package peers

import (
	"runtime/debug"

	"github.com/retrychaos/retrychaos/harness"
)

// All returns every adapted client.
func All() []harness.Client {
	return []harness.Client{
		AWS(), Azcore(), Backoff(), FailsafeHTTP(), Gax(), GoRetry(), GoRetryableHTTP(), Heimdall(), NetHTTP(),
		Pester(), Rehttp(), Req(), Resty2(), Resty3(), RetryGo(),
	}
}

// version returns the version of a module in this build.
func version(module string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	for _, d := range info.Deps {
		if d.Path == module {
			return d.Version
		}
	}
	return ""
}
