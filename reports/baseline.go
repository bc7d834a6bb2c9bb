package reports

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
)

// WriteBaseline writes the failures of a report as a file of known failures, to begin with where a client breaks
// more than can be mended today: what it does now is accepted, and what it does from now on is news. The reason of
// each is what was found, to be replaced by why it is accepted. What could not be judged is not among them.
func WriteBaseline(w io.Writer, r *Report) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "# What failed in a run with seed %d. Say of each why it is accepted, or mend it and take it out:\n", r.Seed)
	fmt.Fprintf(b, "# what is listed here must fail. A failure that comes and goes with jitter does not belong here.\n")
	n := 0
	for i := range r.Results {
		res := &r.Results[i]
		for _, v := range res.Verdicts {
			if v.Status != check.Fail || v.Check == harness.KnownID || !v.Level.AtLeast(r.Level) {
				continue
			}
			if n++; n == 1 {
				b.WriteString("known_failing:\n")
			}
			fmt.Fprintf(b, "  - client: %s\n    scenario: %s\n    check: %s\n    reason: %s\n",
				scalar(res.Client), scalar(res.Scenario), scalar(v.Check), scalar("not yet said; found: "+clip(v.Reason, 120)))
		}
	}
	if n == 0 {
		b.WriteString("# Nothing failed: there is nothing to accept.\n")
	}
	return b.Flush()
}

// scalar writes a text so that YAML reads it as that text, whatever is in it: the double-quoted form of YAML takes
// what JSON writes.
func scalar(s string) string {
	text, err := json.Marshal(plain(s))
	if err != nil {
		return `""` // a string can always be written
	}
	return string(text)
}
