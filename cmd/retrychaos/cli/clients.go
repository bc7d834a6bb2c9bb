package cli

import (
	"fmt"
	"net/http"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/controls"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/internal/nearest"
	"github.com/retrychaos/retrychaos/retry"
)

// defaultClient is what run tests when it is told nothing.
const defaultClient = "retry"

// builtIn returns the clients that need nothing beyond this module.
func builtIn() []NamedClient {
	list := []NamedClient{
		{harness.Bundled(defaultClient, retry.Policy{}), "the bundled client with its defaults: " + retry.Policy{}.String()},
		{harness.Bundled("retry-equal", retry.Policy{Jitter: retry.EqualJitter}), "the bundled client with equal jitter"},
		{harness.Bundled("retry-decorrelated", retry.Policy{Jitter: retry.DecorrelatedJitter}), "the bundled client with decorrelated jitter"},
		{harness.Bundled("retry-additive", retry.AdditivePreset()), "the bundled client: 1, 2, 4 s plus 0 to 0.5 s"},
		{plainClient(), "Go's http.Client as it comes: no retries but the transport's own"},
	}
	for _, c := range controls.All() {
		list = append(list, NamedClient{c.Client, "wrong on purpose: " + c.Doc})
	}
	return list
}

func plainClient() harness.Client {
	c := harness.HTTPClient("net/http", func(base http.RoundTripper) *http.Client { return &http.Client{Transport: base} })
	c.Declared = history.Declared{MaxAttempts: 1}
	return c
}

// findClient returns the client of that name, or an error with the nearest one.
func findClient(known []NamedClient, name string) (harness.Client, error) {
	names := make([]string, len(known))
	for i, k := range known {
		if k.Name == name {
			return k.Client, nil
		}
		names[i] = k.Name
	}
	return harness.Client{}, fmt.Errorf("unknown client %q%s; `retrychaos list clients` names them all", name, nearest.Hint(name, names))
}
