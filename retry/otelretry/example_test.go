package otelretry_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/retry/otelretry"
)

func Example() {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if requests.Add(1) == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))

	tracing, err := otelretry.New(otelretry.Options{TracerProvider: provider})
	if err != nil {
		panic(err)
	}
	client, err := retry.NewClient(retry.Policy{BaseDelay: time.Millisecond},
		retry.WithTransport(tracing.Transport(nil)), retry.WithHook(tracing.Hook))
	if err != nil {
		panic(err)
	}
	req, err := http.NewRequest("GET", server.URL, nil)
	if err != nil {
		panic(err)
	}
	resp, err := tracing.Do(client, req)
	if err != nil {
		panic(err)
	}
	resp.Body.Close()
	for _, span := range exporter.GetSpans() {
		fmt.Print(span.Name, ":")
		for _, a := range span.Attributes {
			switch a.Key {
			case "http.response.status_code", "http.request.resend_count", "retry.reason", "retry.attempts":
				fmt.Printf(" %s=%s", a.Key, a.Value.Emit())
			}
		}
		fmt.Println()
	}
	// Output:
	// GET: http.response.status_code=503
	// GET: http.request.resend_count=1 retry.reason=503 Service Unavailable http.response.status_code=200
	// retry GET: retry.attempts=2 http.response.status_code=200
}
