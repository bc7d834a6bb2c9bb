// Package gockworld runs clients that have their host built in. Such a client is given no base URL, so it
// cannot be pointed at the fake server; github.com/h2non/gock catches what it sends to that host, and this
// package passes it on to the same server, with the same ledger, idempotency store, journal and checks:
//
//	world := gockworld.World{Origin: "https://api.example.com"}
//	client := harness.Client{Name: "vendored", New: func(env harness.Env) (harness.Caller, error) {
//		api := vendored.New(&http.Client{Transport: env.Transport}) // it posts to https://api.example.com
//		return harness.CallerFunc(func(ctx context.Context, call harness.Call) harness.Outcome {
//			resp, err := api.Charge(ctx, call.ID)
//			return harness.Receive(call, resp, err)
//		}), nil
//	}}
//	res, err := world.One(t, client, scenario)
//
// What is caught is Env.Transport, which is the client's alone. So a client that retries in a RoundTripper of
// its own is built on Env.Transport as its base, and every adapter of package harness works here as it does
// elsewhere; the calls' URLs begin with the origin.
//
// # What it cannot show
//
// The transport below the client is not the client's own. What a client makes of a broken connection depends on
// that transport (whether net/http resends, from which pool, over which protocol), so a verdict about it would
// be about somebody else: scenarios that need a wire are refused with a *NeedsWireError. What remains is
// statuses with all their header fields, slow answers, bodies that make no sense, and what the client decides
// on them.
//
// # Serial
//
// gock is one per process, and catching anything puts it in the place of http.DefaultTransport. While a run
// goes on, no other may, and nothing else in the process may use gock: both are refused with an error. Use it in
// Ginkgo specs that are Serial, and in tests that are not parallel. Requests of others through
// http.DefaultTransport go where they always went. Everything is undone when the run is over, however it ends:
// mocks, interception, networking, filters, the observer and http.DefaultTransport are as they are when nobody
// uses gock.
package gockworld
