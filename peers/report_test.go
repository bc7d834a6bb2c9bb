package peers_test

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/peers"
	"github.com/retrychaos/retrychaos/reports"
	"github.com/retrychaos/retrychaos/scenarios"
)

// TestReportFinds: a report of the peers names by itself, with evidence, the clients that do what people fear most. Here
// stands only that somebody is named, and of go-retryablehttp what its own issues say.
func TestReportFinds(t *testing.T) {
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	list, err := scenarios.Match(library, "rate-limits/429-retry-after-overflow-hostile", "duplicates/post-unkeyed-connection-reset-fresh",
		"resources/retried-answers-are-drained", "cancellation/before-the-first-answer", "streams/put-503", "tls/certificate-untrusted-get", "herd/resets-together")
	if err != nil {
		t.Fatal(err)
	}
	var results []harness.Result
	var clients []reports.ClientInfo
	for _, c := range peers.All() {
		clients = append(clients, reports.ClientInfo{Name: c.Name, Version: c.Version, Declared: c.Declared})
		for _, s := range list {
			results = append(results, *harness.Runner{Seed: seed}.One(t, c, s))
		}
	}
	var page bytes.Buffer
	if err := reports.WriteFindings(&page, reports.New(reports.Run{Started: time.Unix(0, 0), Seed: seed, World: "virtual", Clients: clients}, results)); err != nil {
		t.Fatal(err)
	}
	for title, who := range map[string]string{
		"Repeats a POST after its answer was lost":            "go-retryablehttp",
		"Repeats at once after a Retry-After too large":       "go-retryablehttp",
		"Leaves connections or bodies behind when it retries": "",
		"Sleeps on, or sends again, after cancellation":       "",
		"Sends another body, or none, when it retries":        "",
		"Retries a certificate that it does not trust":        "",
		"Has no jitter on its first retry":                    "",
	} {
		_, section, ok := strings.Cut(page.String(), "\n## "+title)
		if !ok {
			t.Errorf("the page has no section %q", title)
			continue
		}
		section, _, _ = strings.Cut(section, "\n## ")
		if !strings.Contains(section, "\n- **"+who) || !strings.Contains(section, "run --client ") {
			t.Errorf("%q names nobody, or not %q:\n%s", title, who, section)
		}
	}
}
