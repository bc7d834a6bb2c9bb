package peers

import (
	"net/http"

	"github.com/sethgrid/pester"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
)

// Pester is sethgrid/pester with its defaults: three attempts, a second between them.
func Pester() harness.Client {
	c := harness.DoFunc("pester", func(base http.RoundTripper) func(*http.Request) (*http.Response, error) {
		return func(req *http.Request) (*http.Response, error) {
			// A pester.Client keeps counters of its last request, so that each call has its own.
			p := pester.New()
			p.Transport = base
			return p.Do(req)
		}
	})
	c.Version = version("github.com/sethgrid/pester")
	c.Declared = history.Declared{MaxAttempts: pester.DefaultClient.MaxRetries, Jitter: history.JitterNone}
	return c
}
