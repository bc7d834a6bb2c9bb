// Package driver talks to clients of other languages. A driver is a process that reads calls as JSON lines on
// its standard input, performs them with the client under test, many at once, and writes what came of them as
// JSON lines on its standard output. It reports and never judges. docs/drivers.md is the protocol for those
// who write one; schema.json beside this file describes each line.
//
// One process serves many runs, because to start a runtime for each of a thousand scenarios would cost more than
// the scenarios: a client object of its own is made for each instance of a run, and the process is what they
// share. Whatever a driver does wrong is a Fault, never a finding about the client.
package driver
