package serve_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/retrychaos/retrychaos/harness/serve"
)

// A Go test has harness.Run, which sees more. Embedding the server is for what is not written in Go and is tested from
// Go: a program, or a sidecar.
func ExampleNew() {
	h := serve.New(serve.Config{MaxRuns: 4})
	defer h.Close()
	api := httptest.NewServer(h)
	defer api.Close()

	post := func(path, body string, into any) {
		resp, err := http.Post(api.URL+path, "application/json", strings.NewReader(body))
		if err != nil {
			fmt.Println(err)
			return
		}
		defer resp.Body.Close()
		_ = json.NewDecoder(resp.Body).Decode(into)
	}
	var run struct {
		ID    string
		Calls []struct{ ID, URL, Body string }
	}
	post("/runs", `{"library": "duplicates/post-unkeyed-honour-empty-response", "client": {"max_attempts": 2}}`, &run)

	// The client under test: it sends the POST again, whatever happened to it.
	call := run.Calls[0]
	for range 2 {
		resp, err := http.Post(call.URL, "application/json", strings.NewReader(call.Body))
		if err == nil {
			resp.Body.Close()
		}
	}
	var left struct{ Missing []string }
	post("/runs/"+run.ID+"/outcomes", fmt.Sprintf(`{"call": %q, "ok": true, "status": 200, "attempts": 2}`, call.ID), &left)

	resp, err := http.Get(api.URL + "/runs/" + run.ID + "/verdict")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer resp.Body.Close()
	var verdict struct {
		Status   string
		Verdicts []struct{ Check, Status, Reason string }
	}
	_ = json.NewDecoder(resp.Body).Decode(&verdict)
	fmt.Println(verdict.Status)
	for _, v := range verdict.Verdicts {
		if v.Check == "effects.once" {
			fmt.Println(v.Status, v.Reason)
		}
	}
	// Output:
	// fail
	// fail call c1 (POST) had 2 effects, by attempts 1, 2
}
