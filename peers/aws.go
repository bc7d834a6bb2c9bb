package peers

import (
	"context"
	"errors"
	"net/http"
	"time"

	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
)

// AWS is the standard retryer of aws-sdk-go-v2 with its defaults, in a loop of ours that asks it as the SDK's
// middleware does: whether to retry, for a token of its quota, and how long to wait.
func AWS() harness.Client {
	return harness.Client{
		Name:    "aws-sdk-go-v2",
		Version: version("github.com/aws/aws-sdk-go-v2"),
		Declared: history.Declared{MaxAttempts: awsretry.DefaultMaxAttempts, Jitter: history.JitterFull,
			MaxDelay: awsretry.DefaultMaxBackoff},
		New: func(env harness.Env) (harness.Caller, error) {
			hc := &http.Client{Transport: env.Transport}
			retryer := awsretry.NewStandard()
			return harness.CallerFunc(func(ctx context.Context, call harness.Call) harness.Outcome {
				return awsCall(ctx, hc, retryer, call)
			}), nil
		},
	}
}

func awsCall(ctx context.Context, hc *http.Client, retryer *awsretry.Standard, call harness.Call) harness.Outcome {
	var resp *http.Response
	release := func(error) error { return nil }
	for n := 1; ; n++ {
		var err error
		resp, err = attempt(ctx, hc, call)
		_ = release(err)
		var status *statusError
		if errors.As(err, &status) {
			err = &smithyhttp.ResponseError{
				Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status.status}}, Err: err,
			}
		}
		if err == nil || n >= retryer.MaxAttempts() || !retryer.IsErrorRetryable(err) {
			return harness.Receive(call, resp, err)
		}
		if call.Stream {
			return harness.Receive(call, nil, err) // the SDK rewinds the body, and ends where it cannot
		}
		token, refused := retryer.GetRetryToken(ctx, err)
		if refused != nil {
			return harness.Receive(call, nil, err)
		}
		release = token
		wait, refused := retryer.RetryDelay(n, err)
		if refused != nil {
			return harness.Receive(call, nil, err)
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return harness.Receive(call, nil, errors.Join(ctx.Err(), err))
		}
	}
}
