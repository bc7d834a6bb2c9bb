package harness_test

import (
	"context"
	"io"
	"testing"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/scenarios"
)

// The body of a stream comes once, from whichever copy of the call it is read, and cannot be had again.
func TestStreamIsReadOnce(t *testing.T) {
	list, err := scenarios.Load("s.yaml", []byte(`family: once
scenarios:
  - name: put
    summary: a body that can be read once
    rule: body.intact
    source: x
    calls: [{method: PUT, stream: true, body: whole}]
    faults: [ok]
`))
	if err != nil {
		t.Fatal(err)
	}
	res := harness.Runner{Seed: 1}.One(t, harness.Client{Name: "reader", New: func(env harness.Env) (harness.Caller, error) {
		return harness.CallerFunc(func(ctx context.Context, call harness.Call) harness.Outcome {
			req, err := call.Request(ctx)
			if err != nil || req.GetBody != nil || req.ContentLength > 0 || !call.Stream {
				t.Errorf("GetBody %v, length %d, error %v", req.GetBody != nil, req.ContentLength, err)
			}
			first, _ := io.ReadAll(req.Body)
			again, err := call.Request(ctx)
			if err != nil {
				t.Error(err)
			}
			rest, _ := io.ReadAll(again.Body)
			if string(first) != "whole" || len(rest) != 0 {
				t.Errorf("%q, then %q", first, rest)
			}
			resp, err := env.Transport.RoundTrip(again)
			return harness.Receive(call, resp, err)
		}), nil
	}}, list[0])
	for _, v := range res.Verdicts {
		if v.Check == "body.intact" && v.Status != check.Fail {
			t.Errorf("an attempt without its body: %s, %s", v.Status, v.Reason)
		}
	}
}
