package peers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/retrychaos/retrychaos/harness"
)

// Libraries that retry any function know nothing of HTTP. What follows is the glue that their own examples
// show: one attempt is one request with a body of its own; a status of 429 or 500 and above, and every
// error, is to be tried again, whatever the method. Results are of the library and this glue together.

// statusError is a response that the glue takes for a failure.
type statusError struct{ status int }

func (e *statusError) Error() string   { return fmt.Sprintf("status %d", e.status) }
func (e *statusError) HTTPStatus() int { return e.status }

// errPermanent marks what the glue does not want tried again.
var errPermanent = errors.New("permanent")

// attempt makes one request of a call and reads the whole response.
func attempt(ctx context.Context, hc *http.Client, call harness.Call) (*http.Response, error) {
	req, err := call.Request(ctx)
	if err != nil {
		return nil, errors.Join(errPermanent, err)
	}
	resp, err := hc.Do(req)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode >= 500:
		return nil, &statusError{resp.StatusCode}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// glued makes a client of a function that retries another one.
func glued(name string, do func(ctx context.Context, once func(context.Context) (*http.Response, error)) (*http.Response, error)) harness.Client {
	return harness.Client{
		Name: name,
		New: func(env harness.Env) (harness.Caller, error) {
			hc := &http.Client{Transport: env.Transport}
			return harness.CallerFunc(func(ctx context.Context, call harness.Call) harness.Outcome {
				resp, err := do(ctx, func(ctx context.Context) (*http.Response, error) { return attempt(ctx, hc, call) })
				return harness.Receive(call, resp, err)
			}), nil
		},
	}
}
