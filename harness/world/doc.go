// Package world is the clock and the network that a scenario runs in.
//
// There are two worlds. In the virtual one, time is the fake clock of a
// [testing/synctest] bubble and the network is [Memory]: a ten-minute outage
// takes milliseconds and instants are exact. On loopback, time is real and the
// network is [TCP] on 127.0.0.1. Both networks give connections that satisfy
// [Conn] and that fail in the same way with the same errors, so neither a
// client nor a fault needs to know which of the two it is in.
//
// # The in-memory network
//
// It follows TCP as Linux implements it, including the parts that surprise:
// bytes that arrived before a reset can still be read after it; the reset is
// then reported once, by whichever of Read and Write comes first, and after
// that reads give io.EOF and writes EPIPE; a connection that had already been
// told the end of the stream reports a later reset as EPIPE. One table of
// tests runs over both networks and keeps this true.
//
// Everything in it that waits does so on a sync.Cond or on a channel made in
// the bubble, never while holding a mutex, so that a bubble sees it as durably
// blocked. There is no goroutine per connection. Because the runtime ends the
// process when something outside a bubble wakes a goroutine or stops a timer
// inside it, a memory network must be used, and closed, inside the bubble that
// first used it; [Network.Freeze] is the one method for the outside.
//
// # The bubble
//
// [Bubble] runs a function in a bubble and comes back even if the function
// panics, deadlocks, never returns or leaves goroutines behind, and says which.
package world
