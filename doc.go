// Package retrychaos is a chaos-testing harness for the retry behaviour of HTTP clients.
//
// A fake server breaks on purpose, at a chosen point of a request's life, and keeps a ledger of what really
// happened. A client runs scenarios against it; checks read the recorded history and give verdicts: no
// duplicate side effects, bounded attempts, waits that spread, and a dozen rules more.
//
//   - [github.com/retrychaos/retrychaos/harness] runs a client through scenarios, in go test or elsewhere.
//   - [github.com/retrychaos/retrychaos/scenarios] holds the scenarios: the library, and yours in YAML.
//   - [github.com/retrychaos/retrychaos/faults] is the vocabulary of what can go wrong on the wire.
//   - [github.com/retrychaos/retrychaos/harness/check] holds the rules, one file each.
//   - [github.com/retrychaos/retrychaos/harness/matchers] has the same rules as Gomega matchers.
//   - [github.com/retrychaos/retrychaos/harness/controls] has clients that are wrong on purpose.
//   - [github.com/retrychaos/retrychaos/retry] is a retry client that passes them all.
//   - [github.com/retrychaos/retrychaos/retry/outbox] repeats calls over restarts of the process.
//   - [github.com/retrychaos/retrychaos/reports] writes the results for people and for machines.
//   - cmd/retrychaos is the command line.
package retrychaos
