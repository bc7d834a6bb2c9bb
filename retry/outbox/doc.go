/*
Package outbox delivers HTTP requests that must not be lost when the process
ends: it writes them to a file first, and sends them from there, again and again
where that is safe, over restarts and kill -9.

	box, err := outbox.Open("/var/lib/shop/outbox", outbox.Options{})
	...
	id, err := box.Enqueue(ctx, outbox.Call{
		Method: "POST", URL: "https://api.example/charges", Body: body,
		KeyHonoured: true,
	})
	...
	err = box.Run(ctx) // in a goroutine: delivers until ctx ends

The file is a bbolt database that one process at a time has open. Each attempt
is made by a retry.Client, which also says what its outcome means; the waits
between attempts and the count of attempts are in the file.

# What is guaranteed

As long as the file and what fsync has written to it are there:

  - A call whose Enqueue returned nil is in the end either delivered (a server
    answered it with a status from 200 to 299, and the answer could be read
    whole) or a dead letter. No third thing happens to it, at whatever instant
    the process is killed. "In the end" means: if Run or Drain is called again
    and again.
  - A call whose Enqueue returned an error of another kind than those of the file
    system is not in the file. After an error of the file system, or when the
    process is killed before Enqueue returns, it may be there or not. Enqueueing
    it again with the same Key adds nothing to one that is there.
  - A call is sent at least once before it counts as delivered, and may be sent
    more often. Every time it has the same method, URL, header, body and key, to
    the byte, except for what Options.Prepare adds.
  - The effect happens once, if the server honours the key as the caller has
    declared: it carries out one of the requests with a key, answers the others
    by the first one's answer or by 409 while that is at work, and remembers the
    key for Options.KeyLifetime. No attempt of a call that needs its key is begun
    after that time, unless it is certain that no server has acted on the call.
  - An attempt is written down before anything is sent. So at most
    Policy.MaxAttempts are begun, counted over all restarts (and from the last
    Requeue), and the back-off
    after an attempt is kept even when the process dies in it: a call that brings
    the process down does not do so in a loop.
  - A file that is damaged or of a newer version is refused and not changed. A
    call whose bytes have changed in the file is not sent; it becomes a dead
    letter.

# What is not

  - No order, except among calls with the same Order, from one process's
    sequence of Enqueue. And an Order ends at a dead letter: those behind it go
    on without it.
  - No exactly-once without the server. A server that ignores keys, or forgets
    them early, has each attempt's effect. For a call with an idempotent method
    the effect may happen more than once, and late: an old PUT or DELETE that is
    tried again hours later meets what others have written meanwhile. Use Order
    against your own, and a precondition (If-Match) against theirs.
  - No bound on the time of delivery but MaxAge and MaxAttempts, and those end in
    a dead letter. Someone has to read the dead letters.
  - A dead letter is not a call that has had no effect. Its last attempts may
    have had one whose answer was lost.
  - Ages and waits are measured by the system's clock. One that jumps ahead makes
    calls due, and old, early; one that is set back makes them wait no longer
    than they would have.
  - Nothing is encrypted. The file (mode 0600) holds URLs, headers and bodies as
    they are. Keep credentials out of it by Options.Prepare.
  - The file does not shrink; the space of delivered calls is used again. Calls
    that wait have their place in a queue in memory; their headers and bodies stay
    in the file.
  - fsync is as good as the disk's word. On a network file system neither the
    lock nor fsync may hold.

A delivery costs three transactions of the file, with their fsyncs: Enqueue, the
begin of the attempt, and its result; calls at the same time share them.

# What may be enqueued

Only what may be repeated: a call with an idempotent method, a call with a key
that the caller says is honoured, or one that the caller says is harmless.
Everything else is an [*UnsafeError]: after a lost response, which a kill -9
always is, there would be no right thing to do.

# What ends an attempt

An answer that is final (most of 4xx, 501, 3xx that is not followed) makes a dead
letter at once, except for a 409 after an earlier attempt with the same key, which
is taken for that attempt still being at work. All else is tried again: statuses
as package retry says, and every failure on the way, even those that retry calls
final. A certificate that has expired, or a name that does not resolve, can be
mended while the call waits. Retry-After is a floor under the wait, up to
Policy.MaxRetryAfter.

# Watching

Options.Logger gets a line for each retry, with the call's ID, the attempt, the
reason and the delay, and one for each dead letter. [Outbox.Stats] has the
numbers for a gauge. For a span an attempt put the
Transport of package otelretry into Options.Client.

# Tests

Time is package time's alone, so that everything but the lock of the file can be
tested in a testing/synctest bubble.
*/
package outbox
