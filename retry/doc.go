/*
Package retry sends HTTP requests again when that is safe, and only then.

Most of the time a Client is all you need:

	client, err := retry.NewClient(retry.Policy{})
	...
	resp, err := client.Do(req)

The zero [Policy] makes up to 4 attempts of at most 10 s each, with waits drawn
at random from up to 1, 2 and 4 s. Every number can be set; print a policy to
see what it comes to.

Five uses have an example each: a request whose response you read yourself
([Client.Do]), a POST with an idempotency key ([WithIdempotencyKey]), a response
that is decoded ([Fetch]), code that wants an *http.Client ([NewTransport]), and
an operation that is not HTTP ([Do]). [WithTokenRefresh] has one more.

# What is repeated

A failed attempt has one of three outcomes.

  - [NotProcessed]: nothing was sent (no connection, no address, no TLS), or the
    server says that it did nothing (408, 425, 429, a refused HTTP/2 stream).
    Any request is repeated.
  - [Unknown]: the request was sent, and no one can tell what the server has
    done with it (a timeout, a reset, a response that breaks off, 500, 502, 503,
    504). It is repeated only if it may happen twice.
  - [Final]: another try would end the same way (most of 4xx, 501, an unknown
    certificate authority, an error that this package does not know, a
    cancellation). It is not repeated.

A request may happen twice if its method is idempotent (GET, HEAD, OPTIONS,
TRACE, PUT, DELETE, QUERY …), if it carries an idempotency key that the server
honours, or if you say so by [Idempotent]. A plain POST is none of these: after
a lost response the caller gets the failure, and not a second charge.

[Classify] makes this decision, by the types of errors and by what was seen on
the wire, and gives its reason.

# A POST that may be repeated

If the server honours idempotency keys, ask for one:

	ctx = retry.WithIdempotencyKey(ctx)
	req, err := http.NewRequestWithContext(ctx, "POST", url, body)

The key is made once for the call, and is the same in each attempt. A key that
you set in the header yourself is kept; that the server honours it has to be
said by [WithHonouredKey] or [Policy.HonouredKeys], because many servers do not.

# Waiting

Each wait is drawn at random (see [Jitter]), so that clients that failed
together do not come back together. A Retry-After of the server lifts the least
wait, and the random part comes on top. When the server asks for more than
[Policy.MaxRetryAfter], or when the next attempt would come after the deadline,
the call ends at once, with what there is: no one waits for nothing. The end of
the context ends a wait, too.

# The budget

Retries of all calls of a client come out of one [Budget]: 100 at first, and then
one for each ten calls that succeed. While a server answers nobody they come to an
end, so that it gets the load that it would have without them, and can recover;
back-off alone only spreads the load. A call that the budget refuses a retry
ends at once with what there is, and [Explain] finds a [*BudgetError]. Clients of
one server should share a bucket, by [WithBucket]. [Policy.Budget] chooses
another budget: [GRPCBudget], [FinagleBudget], [RequestBudget], [AWSBudget],
[AdaptiveBudget] or [NoBudget].

# Tokens that expire, networks that go away

[WithTokenRefresh] answers a 401 by asking for a new token and sending the request
once more. [WithConnectivity] waits for the network while it is down, instead of
using up the attempts. Neither counts as a retry.

# Hedging

With [Policy.HedgeDelay] a call that only reads gets a second attempt when the
first is slow, and the first good response wins. It is off by default, costs what
a retry costs, and there is never one for a call that changes something.

# What comes back

[Client.Do] treats a status as http.Client does: the last response comes back
open, whatever its status, with a nil error. [Explain] tells why there was no
further attempt. Anything else is an [*Error], which lists the attempts and
unwraps to the last real failure.

[Fetch] goes one step further, and is the better choice where you decode the
response anyway: a response that breaks off while you read it is repeated too, a
bad status is an error, and a response that does not decode is a [*DecodeError],
which is never repeated.

[Do] repeats any operation, and [Transport] is for code that wants an
*http.Client of its own.

# Deadlines

The deadline of the context, or [Policy.CallTimeout], is for the call and ends
it. [Policy.AttemptTimeout] is for one attempt, its body included; its expiry is
a failure like any other. The Timeout of a wrapped http.Client is one attempt's
as well.

# Requests that net/http sends again

http.Transport sends some requests a second time without telling, when a reused
connection turns out to be dead. This package keeps it from doing so where the
first request may have been processed, by giving the request a form that
net/http takes for unrepeatable; on HTTP/1 the bytes sent are the same, on HTTP/2
a request without a body ends with an empty data frame. What net/http still
sends again (streams that were refused, for one) is counted, [Wire] shows it, and
it uses up attempts. So one attempt really is one: MaxAttempts 1 also gives up
where a bare http.Client would try a second connection.

A RoundTripper that wraps an http.Transport, to watch it, say, should have a method
Unwrap() http.RoundTripper that returns it, and pass on each request once, with
nothing changed but header fields of its own added. Otherwise a keyed POST without a
body may be replayed below it.

# Watching

[WithLogger] makes each retry a line in log/slog: the call (its method and its URL
without the query), the attempt, the reason, the outcome and the wait. [WithHook] is
called after each attempt with all that is known of it. Package otelretry makes
OpenTelemetry spans of calls and of their requests; it is a module of its own.

# Beyond the process

Package outbox keeps calls in a file, and repeats them over restarts and kill -9.

# Layers

Retriers of this package that are stacked share one count of retries, held in the
context, and an error that one of them has given up on is not retried by
another. Layers add up and do not multiply.
*/
package retry
