package outbox_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/retrychaos/retrychaos/retry"
	"github.com/retrychaos/retrychaos/retry/outbox"
)

// A charge survives a server that is down, and the restart of its own process.
func Example() {
	var up atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !up.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	dir, err := os.MkdirTemp("", "outbox")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "outbox")
	opts := outbox.Options{Policy: retry.Policy{BaseDelay: 10 * time.Millisecond}}

	box, err := outbox.Open(path, opts)
	if err != nil {
		panic(err)
	}
	_, err = box.Enqueue(context.Background(), outbox.Call{
		Method: "POST", URL: server.URL + "/charges", Body: []byte("amount=17"),
		Key: "order-17", KeyHonoured: true,
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := box.Run(ctx); err != nil {
		panic(err)
	}
	fmt.Println("waiting:", box.Stats().Waiting)
	box.Close() // or kill -9

	up.Store(true)
	opts.Delivered = func(d outbox.Delivery) { fmt.Println("delivered:", d.Status, d.Call.Key, string(d.Call.Body)) }
	box, err = outbox.Open(path, opts)
	if err != nil {
		panic(err)
	}
	defer box.Close()
	if err := box.Drain(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println("waiting:", box.Stats().Waiting)
	// Output:
	// waiting: 1
	// delivered: 200 "order-17" amount=17
	// waiting: 0
}

func ExampleOutbox_DeadLetters() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "no such account", http.StatusUnprocessableEntity)
	}))
	defer server.Close()
	dir, err := os.MkdirTemp("", "outbox")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)

	box, err := outbox.Open(filepath.Join(dir, "outbox"), outbox.Options{})
	if err != nil {
		panic(err)
	}
	defer box.Close()
	ctx := context.Background()
	if _, err := box.Enqueue(ctx, outbox.Call{Method: "PUT", URL: server.URL + "/accounts/17", Body: []byte("x")}); err != nil {
		panic(err)
	}
	if err := box.Drain(ctx); err != nil {
		panic(err)
	}
	letters, err := box.DeadLetters()
	if err != nil {
		panic(err)
	}
	for _, d := range letters {
		fmt.Printf("%s: %d %s", d.Reason, d.Status, d.Answer)
		if err := box.Discard(d.ID); err != nil { // or box.Requeue(d.ID)
			panic(err)
		}
	}
	fmt.Println("left:", box.Stats().DeadLetters)
	// Output:
	// answer: 422 no such account
	// left: 0
}
