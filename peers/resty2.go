package peers

import (
	"context"
	"net/http"

	"github.com/go-resty/resty/v2"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
)

// restyRetries is how many retries the resty clients are given; they make none unless told.
const restyRetries = 3

// Resty2 is go-resty/resty 2 with three retries and else its defaults: errors only, 100 ms doubled up to 2 s.
func Resty2() harness.Client {
	d := resty.New()
	return harness.Client{
		Name:    "resty2",
		Version: version("github.com/go-resty/resty/v2"),
		Declared: history.Declared{MaxAttempts: restyRetries + 1, Jitter: history.JitterEqual,
			BaseDelay: d.RetryWaitTime, Multiplier: 2, MaxDelay: d.RetryMaxWaitTime},
		New: func(env harness.Env) (harness.Caller, error) {
			c := resty.New().SetTransport(env.Transport).SetRetryCount(restyRetries).SetLogger(silent{})
			return harness.CallerFunc(func(ctx context.Context, call harness.Call) harness.Outcome {
				r := c.R().SetContext(ctx)
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
				return received(call, resp.StatusCode(), resp.Body())
			}), nil
		},
	}
}

// silent swallows what a client logs.
type silent struct{}

func (silent) Errorf(string, ...any) {}
func (silent) Warnf(string, ...any)  {}
func (silent) Debugf(string, ...any) {}

// received is harness.Receive for clients that hand out status and body instead of a response.
func received(call harness.Call, status int, body []byte) harness.Outcome {
	if status >= http.StatusMultipleChoices {
		return harness.Outcome{Status: status}
	}
	if call.Method != http.MethodHead {
		if err := harness.DecodeReply(call, body); err != nil {
			return harness.Outcome{Err: err, Decoding: true}
		}
	}
	return harness.Outcome{OK: true, Status: status}
}
