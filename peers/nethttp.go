package peers

import (
	"net/http"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
)

// NetHTTP is Go's http.Client as it comes. It never retries, but its transport resends on a reused connection.
func NetHTTP() harness.Client {
	c := harness.HTTPClient("net-http", func(base http.RoundTripper) *http.Client { return &http.Client{Transport: base} })
	c.Declared = history.Declared{MaxAttempts: 1}
	return c
}
