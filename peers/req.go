package peers

import (
	"context"

	"github.com/imroc/req/v3"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
)

// reqRetries is how many retries req is given; it makes none unless told.
const reqRetries = 3

// Req is imroc/req with three retries and else its defaults: errors only, 100 ms apart. It brings a transport
// of its own, so that the harness sees its connections and not its use of them.
func Req() harness.Client {
	return harness.Client{
		Name:     "req",
		Version:  version("github.com/imroc/req/v3"),
		Declared: history.Declared{MaxAttempts: reqRetries + 1, Jitter: history.JitterNone},
		New: func(env harness.Env) (harness.Caller, error) {
			c := req.C().SetCommonRetryCount(reqRetries).SetLogger(nil)
			c.GetTransport().SetDial(env.DialContext)
			c.GetTransport().SetProxy(nil)
			if env.Protocol == faults.HTTP2 {
				c.EnableH2C().EnableForceHTTP2()
				c.GetTransport().DialTLSContext = env.DialContext // without TLS, whatever its name: EnableH2C would go to the real network
			}
			if env.TLS != nil {
				c.SetTLSClientConfig(env.TLS)
			}
			return &reqClient{c}, nil
		},
	}
}

type reqClient struct{ client *req.Client }

func (c *reqClient) Call(ctx context.Context, call harness.Call) harness.Outcome {
	r := c.client.R().SetContext(ctx)
	r.Headers = call.Header.Clone()
	if call.Key != "" {
		r.SetHeader("Idempotency-Key", call.Key)
	}
	if call.Body != nil {
		r.SetBodyBytes(call.Body)
	}
	resp, err := r.Send(call.Method, call.URL)
	if err != nil {
		return harness.Receive(call, nil, err)
	}
	return received(call, resp.GetStatusCode(), resp.Bytes())
}

func (c *reqClient) Close() error {
	c.client.GetTransport().CloseIdleConnections()
	return nil
}
