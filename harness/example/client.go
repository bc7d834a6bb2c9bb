// Package example shows how the author of a client library tests it with retrychaos. Client stands for the
// library; the tests are the example: gotest_test.go with plain go test, ginkgo_test.go with Ginkgo and the
// matchers of package matchers.
package example

import (
	"context"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// Client is a small HTTP client that retries: what the author of a library might have written.
type Client struct {
	HTTP *http.Client
	// Attempts is how often it tries, at most; 0 means 4.
	Attempts int
	// Careless makes it repeat whatever has failed, which is the usual mistake. It is here to be caught.
	Careless bool
}

type repeatable struct{}

// Repeatable returns a context whose requests may be repeated although their method is not idempotent: they
// carry an Idempotency-Key, and the server is known to honour it.
func Repeatable(ctx context.Context) context.Context {
	return context.WithValue(ctx, repeatable{}, true)
}

// Do sends a request, and sends it again after a failure that may pass: with exponential back-off and full
// jitter from 200 ms to 10 s, never before Retry-After, and never what could happen twice by it.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	attempts := c.Attempts
	if attempts == 0 {
		attempts = 4
	}
	for n := 1; ; n++ {
		sent, err := c.copyOf(req)
		if err != nil {
			return nil, err
		}
		resp, err := c.HTTP.Do(sent)
		if n == attempts || req.Context().Err() != nil || !c.again(req, resp, err) {
			return resp, err
		}
		wait := rand.N(min(200*time.Millisecond<<(n-1), 10*time.Second)) + time.Millisecond
		if resp != nil {
			wait += retryAfter(resp)
		}
		if deadline, limited := req.Context().Deadline(); limited && time.Until(deadline) <= wait {
			return resp, err // it would be over before there is an answer
		}
		if resp != nil {
			_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
			_ = resp.Body.Close()
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-req.Context().Done():
			timer.Stop()
			return nil, req.Context().Err()
		}
	}
}

// copyOf makes the request of one attempt, with a body of its own.
func (c *Client) copyOf(req *http.Request) (*http.Request, error) {
	out := req.Clone(req.Context())
	if req.GetBody != nil {
		body, err := req.GetBody()
		if err != nil {
			return nil, err
		}
		out.Body = body
	}
	if !c.mayRepeat(req) {
		// net/http itself resends a request on a broken connection if it can: to it, the mere presence of an
		// Idempotency-Key means that this does no harm.
		out.GetBody = nil
	}
	return out, nil
}

// again reports whether to try once more: after a failure that may pass by itself, if the request may be
// repeated. What was refused with 429 was not carried out, so that one may be repeated in any case.
func (c *Client) again(req *http.Request, resp *http.Response, err error) bool {
	if err != nil {
		return c.mayRepeat(req)
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return true
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return c.mayRepeat(req)
	}
	return false
}

// mayRepeat: idempotent methods by RFC 9110 §9.2.2, and what the application says.
func (c *Client) mayRepeat(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions, http.MethodTrace:
		return true
	}
	return c.Careless || req.Context().Value(repeatable{}) != nil
}

// retryAfter reads the field as seconds or as a date (RFC 9110 §10.2.3).
func retryAfter(resp *http.Response) time.Duration {
	text := resp.Header.Get("Retry-After")
	if n, err := strconv.Atoi(text); err == nil {
		return max(0, time.Duration(min(n, 3600))*time.Second)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(0, time.Until(at)), time.Hour)
	}
	return 0
}
