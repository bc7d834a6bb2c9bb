package harness_test

import (
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
)

func TestDoubtful(t *testing.T) {
	late := &history.History{Lateness: 101 * time.Millisecond}
	for _, tc := range []struct {
		status check.Status
		h      *history.History
		want   bool
	}{
		{check.Fail, late, true},
		{check.Unknown, late, true},
		{check.Pass, late, false},
		{check.Skipped, late, false},
		{check.Fail, &history.History{Lateness: 100 * time.Millisecond}, false},
		{check.Unknown, nil, false},
	} {
		if got := (&harness.Result{Status: tc.status, History: tc.h}).Doubtful(); got != tc.want {
			t.Errorf("%s, %+v: %v", tc.status, tc.h, got)
		}
	}
}
