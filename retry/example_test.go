package retry_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/retry"
)

// flaky answers the first n requests with status, and then with body.
func flaky(n, status int, body string, header ...string) *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n--; n >= 0 {
			for i := 0; i+1 < len(header); i += 2 {
				w.Header().Set(header[i], header[i+1])
			}
			w.WriteHeader(status)
			return
		}
		io.WriteString(w, body)
	}))
}

// quick keeps the examples from waiting.
var quick = retry.Policy{BaseDelay: time.Millisecond, MaxDelay: time.Millisecond}

func ExampleClient_Do() {
	server := flaky(2, http.StatusServiceUnavailable, "hello")
	defer server.Close()

	client, err := retry.NewClient(quick)
	if err != nil {
		panic(err) // the policy makes no sense
	}
	req, _ := http.NewRequest("GET", server.URL, nil)
	resp, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(body), err)
	// Output: 200 hello <nil>
}

// A POST is repeated after a failure that leaves its effect unknown only if it
// carries a key that the server honours.
func ExampleWithIdempotencyKey() {
	server := flaky(1, http.StatusBadGateway, "charged")
	defer server.Close()
	client, _ := retry.NewClient(quick)

	post := func(ctx context.Context) {
		req, _ := http.NewRequestWithContext(ctx, "POST", server.URL, strings.NewReader("amount=1"))
		resp, err := client.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		defer resp.Body.Close()
		fmt.Println(resp.StatusCode)
		if why := retry.Explain(resp); why != nil {
			fmt.Println(why.Reason)
		}
	}
	post(context.Background())
	post(retry.WithIdempotencyKey(context.Background()))
	// Output:
	// 502
	// 502 Bad Gateway, and the call may not be repeated: it could happen twice
	// 200
}

func ExampleFetch() {
	server := flaky(1, http.StatusServiceUnavailable, `{"name": "c17"}`)
	defer server.Close()
	client, _ := retry.NewClient(quick)

	type charge struct{ Name string }
	req, _ := http.NewRequest("GET", server.URL, nil)
	c, err := retry.Fetch(client, req, func(resp *http.Response) (c charge, err error) {
		return c, json.NewDecoder(resp.Body).Decode(&c)
	})
	fmt.Println(c.Name, err)
	// Output: c17 <nil>
}

func ExampleDo() {
	attempts := 0
	answer, err := retry.Do(context.Background(), quick, func(ctx context.Context) (int, error) {
		if attempts++; attempts < 3 {
			// The database says that it has rolled back.
			return 0, retry.WithOutcome(errors.New("serialization failure"), retry.NotProcessed)
		}
		return 42, nil
	})
	fmt.Println(answer, err, attempts)
	// Output: 42 <nil> 3
}

// Code that wants an *http.Client gets one.
func ExampleNewTransport() {
	server := flaky(1, http.StatusTooManyRequests, "hello")
	defer server.Close()

	transport, err := retry.NewTransport(quick, http.DefaultTransport)
	if err != nil {
		panic(err)
	}
	client := &http.Client{Transport: transport}
	resp, err := client.Get(server.URL)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode)
	// Output: 200
}

// When the server asks for a long wait, its response comes back at once, and
// the caller decides.
func ExampleExplain() {
	server := flaky(1, http.StatusTooManyRequests, "", "Retry-After", "3600")
	defer server.Close()
	client, _ := retry.NewClient(retry.Policy{})

	req, _ := http.NewRequest("GET", server.URL, nil)
	resp, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	fmt.Println(resp.StatusCode)
	if later, ok := errors.AsType[*retry.RetryAfterError](retry.Explain(resp)); ok {
		fmt.Println("come back in", later.Wait)
	}
	// Output:
	// 429
	// come back in 1h0m0s
}

func ExampleWithLogger() {
	server := flaky(1, http.StatusServiceUnavailable, "")
	defer server.Close()
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey || a.Key == "url" { // these differ from run to run
				return slog.Attr{}
			}
			return a
		},
	}))
	policy := quick
	policy.Jitter = retry.NoJitter
	client, _ := retry.NewClient(policy, retry.WithLogger(log))
	req, _ := http.NewRequest("GET", server.URL, nil)
	if resp, err := client.Do(req); err == nil {
		resp.Body.Close()
	}
	// Output:
	// level=INFO msg=retrying method=GET attempt=1 reason="503 Service Unavailable" category=status outcome=unknown delay=1ms wire=1
}

func ExamplePolicy_String() {
	fmt.Println(retry.AdditivePreset())
	// Output: 4 attempts, 1s ×2 up to 30s, additive jitter of 500ms, attempt timeout 10s, Retry-After up to 2m0s, budget of 100, 1 a retry, 0.1 back a success
}

func ExampleWithTokenRefresh() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer fresh" {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "got %s", body)
	}))
	defer server.Close()

	client, err := retry.NewClient(quick, retry.WithTokenRefresh(func(context.Context) (string, error) {
		return "fresh", nil // from the token endpoint
	}))
	if err != nil {
		panic(err)
	}
	req, _ := http.NewRequest("POST", server.URL, strings.NewReader("amount=1"))
	req.Header.Set("Authorization", "Bearer stale")
	resp, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	fmt.Println(resp.StatusCode, string(body), err)
	// Output: 200 got amount=1 <nil>
}

// Two clients of one server have one budget. When it is used up, calls end after
// their first attempt.
func ExampleWithBucket() {
	server := flaky(100, http.StatusServiceUnavailable, "")
	defer server.Close()
	bucket, err := retry.NewBucket(retry.Budget{Capacity: 5, Cost: 1, PerSuccess: 0.1})
	if err != nil {
		panic(err) // the budget makes no sense
	}
	for range 2 {
		client, _ := retry.NewClient(quick, retry.WithBucket(bucket))
		req, _ := http.NewRequest("GET", server.URL, nil)
		resp, err := client.Do(req)
		if err != nil {
			fmt.Println(err)
			return
		}
		resp.Body.Close()
		why := retry.Explain(resp)
		_, refused := errors.AsType[*retry.BudgetError](why)
		fmt.Println(len(why.Attempts), "attempts, refused by the budget:", refused)
	}
	// Output:
	// 4 attempts, refused by the budget: false
	// 3 attempts, refused by the budget: true
}

// An AWS service names the error in a header.
func ExampleWithClassifier() {
	server := flaky(1, http.StatusBadRequest, "done", "X-Amzn-ErrorType", "ThrottlingException")
	defer server.Close()
	policy := retry.AWSStandardPreset()
	policy.ThrottledDelay = time.Millisecond // not to keep the example waiting
	client, err := retry.NewClient(policy, retry.WithClassifier(
		func(status int, h http.Header, err error, d retry.Decision) retry.Decision {
			if h.Get("X-Amzn-ErrorType") == "ThrottlingException" {
				d.Outcome, d.Throttled = retry.NotProcessed, true
			}
			return d
		}))
	if err != nil {
		panic(err)
	}
	req, _ := http.NewRequest("POST", server.URL, strings.NewReader("{}"))
	resp, err := client.Do(req)
	if err != nil {
		fmt.Println(err)
		return
	}
	resp.Body.Close()
	fmt.Println(resp.StatusCode)
	// Output: 200
}
