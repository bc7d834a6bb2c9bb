package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/retrychaos/retrychaos/reports"
)

// An interrupt ends what keeps nothing, before the next run of a sweep.
func TestInterruptedHerd(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, args := range []string{"herd --size 10 --policy none", "herd tables"} {
		var out, errs bytes.Buffer
		if code := Execute(ctx, strings.Fields(args), &out, &errs); code != reports.ExitUndecided {
			t.Errorf("%s: exit status %d, want %d", args, code, reports.ExitUndecided)
		}
		if !strings.Contains(errs.String(), "retrychaos: interrupted") || out.Len() > 0 {
			t.Errorf("%s: stdout %q, stderr %q", args, &out, &errs)
		}
	}
}
