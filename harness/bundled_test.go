package harness_test

import (
	"testing"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/scenarios"
)

// The standard mode of the AWS SDKs, as a preset of the bundled client, keeps every rule where servers
// answer 5xx and 429, drop connections and hang.
func TestAWSStandardPreset(t *testing.T) {
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	list, err := scenarios.Match(library, "recovery/*", "bounded/*", "back-off/*", "duplicates/put-*", "duplicates/post-keyed-*", "permanent/*", "herd/three-waves")
	if err != nil {
		t.Fatal(err)
	}
	client := harness.Bundled("retry-aws", retry.AWSStandardPreset())
	passed := 0
	for _, s := range list {
		res := harness.Runner{Seed: 1}.One(t, client, s)
		switch res.Status {
		case check.Pass:
			passed++
		case check.Skipped:
		default:
			t.Errorf("%s: %s", s.Name, res.Explain(check.Should))
		}
	}
	t.Logf("%d of %d passed", passed, len(list))
	if passed < len(list)*9/10 {
		t.Errorf("only %d of %d scenarios apply", passed, len(list))
	}
}
