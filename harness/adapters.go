package harness

import (
	"context"
	"net/http"
)

// HTTPClient adapts an *http.Client. build is called for each instance and must build the client on base,
// which reaches the fake server.
func HTTPClient(name string, build func(base http.RoundTripper) *http.Client) Client {
	return DoFunc(name, func(base http.RoundTripper) func(*http.Request) (*http.Response, error) {
		return build(base).Do
	})
}

// RoundTripper adapts an http.RoundTripper that wraps base. It is driven by a plain http.Client.
func RoundTripper(name string, wrap func(base http.RoundTripper) http.RoundTripper) Client {
	return HTTPClient(name, func(base http.RoundTripper) *http.Client {
		return &http.Client{Transport: wrap(base)}
	})
}

// DoFunc adapts a function with the shape of http.Client.Do, built on base.
func DoFunc(name string, build func(base http.RoundTripper) func(*http.Request) (*http.Response, error)) Client {
	return Client{
		Name: name,
		New: func(env Env) (Caller, error) {
			do := build(env.Transport)
			return CallerFunc(func(ctx context.Context, call Call) Outcome {
				req, err := call.Request(ctx)
				if err != nil {
					return Outcome{Err: err}
				}
				resp, err := do(req)
				return Receive(call, resp, err)
			}), nil
		},
	}
}
