package peers

import (
	"bytes"
	"context"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
)

// Azcore is the pipeline of the Azure SDK for Go with its default retry policy: four attempts, 800 ms times
// 2^n-1 up to 60 s, times 0.8 to 1.3.
func Azcore() harness.Client {
	return harness.Client{
		Name:    "azcore",
		Version: version("github.com/Azure/azure-sdk-for-go/sdk/azcore"),
		Declared: history.Declared{MaxAttempts: 4, Jitter: history.JitterProportional, JitterRatio: 0.5,
			BaseDelay: 800 * time.Millisecond, Multiplier: 2, MaxDelay: time.Minute},
		New: func(env harness.Env) (harness.Caller, error) {
			pipeline := runtime.NewPipeline("retrychaos", "v0", runtime.PipelineOptions{}, &policy.ClientOptions{
				Transport: &http.Client{Transport: env.Transport},
				Telemetry: policy.TelemetryOptions{Disabled: true},
			})
			return harness.CallerFunc(func(ctx context.Context, call harness.Call) harness.Outcome {
				req, err := runtime.NewRequest(ctx, call.Method, call.URL)
				if err != nil {
					return harness.Outcome{Err: err}
				}
				for k, v := range call.Header {
					req.Raw().Header[k] = v
				}
				if call.Key != "" {
					req.Raw().Header.Set("Idempotency-Key", call.Key)
				}
				if call.Body != nil {
					body := streaming.NopCloser(bytes.NewReader(call.Body))
					if err := req.SetBody(body, call.Header.Get("Content-Type")); err != nil {
						return harness.Outcome{Err: err}
					}
				}
				resp, err := pipeline.Do(req)
				return harness.Receive(call, resp, err)
			}), nil
		},
	}
}
