package peers

import (
	"context"

	"resty.dev/v3"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
)

// Resty3 is resty 3 with three retries and else its defaults: idempotent methods, 100 ms doubled up to 2 s.
func Resty3() harness.Client {
	d := resty.New()
	defer d.Close()
	return harness.Client{
		Name:    "resty3",
		Version: version("resty.dev/v3"),
		Declared: history.Declared{MaxAttempts: restyRetries + 1, Jitter: history.JitterEqual,
			BaseDelay: d.RetryWaitTime(), Multiplier: 2, MaxDelay: d.RetryMaxWaitTime()},
		New: func(env harness.Env) (harness.Caller, error) {
			return &resty3{resty.New().SetTransport(env.Transport).SetRetryCount(restyRetries).SetLogger(silent{})}, nil
		},
	}
}

type resty3 struct{ client *resty.Client }

func (c *resty3) Call(ctx context.Context, call harness.Call) harness.Outcome {
	r := c.client.R().SetContext(ctx)
	r.Header = call.Header.Clone()
	if call.Key != "" {
		r.SetHeader("Idempotency-Key", call.Key)
	}
	switch {
	case call.Stream:
		r.SetBody(call.Reader())
	case call.Body != nil:
		r.SetBody(call.Body)
	}
	resp, err := r.Execute(call.Method, call.URL)
	if err != nil {
		return harness.Receive(call, nil, err)
	}
	return received(call, resp.StatusCode(), resp.Bytes())
}

func (c *resty3) Close() error { return c.client.Close() }
