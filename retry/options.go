package retry

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
)

// An Option sets what is not a number, and so no part of a Policy.
type Option func(*options)

type options struct {
	client    *http.Client
	transport http.RoundTripper
	logger    *slog.Logger
	random    func(int64) int64
	hook      func(context.Context, Attempt)

	classifier        func(int, http.Header, error, Decision) Decision
	bucket            *Bucket
	refresh           func(context.Context) (string, error)
	probe             *connectivity
	withoutAccounting bool
}

// WithHTTPClient makes a Client send its requests through hc, and keep to its
// CheckRedirect, Jar and Timeout, the latter for each attempt. hc is copied.
// By default http.DefaultTransport is used, with no jar.
func WithHTTPClient(hc *http.Client) Option { return func(o *options) { o.client = hc } }

// WithTransport makes a Client send its requests through rt. Together with
// WithHTTPClient it replaces that client's transport.
func WithTransport(rt http.RoundTripper) Option { return func(o *options) { o.transport = rt } }

// WithLogger makes each retry one line in logger, at level Info, with the
// method and the URL without its query (which often holds secrets), the
// number of the attempt that failed, the reason, the delay, and the number of
// requests seen on the wire. By default nothing is logged: whether a library
// speaks is for the program to say.
func WithLogger(logger *slog.Logger) Option { return func(o *options) { o.logger = logger } }

// WithRand draws the jitter from src, which needs not be safe for concurrent
// use. It is for tests that need the same delays each time. By default the
// jitter comes from the generator of math/rand/v2, which the runtime seeds.
func WithRand(src rand.Source) Option {
	return func(o *options) { o.random = sourceRandom(src) }
}

// WithHook calls hook after each attempt, the last one included, and before
// the wait. The hook runs on the calling goroutine; calls made side by side
// run it side by side.
func WithHook(hook func(context.Context, Attempt)) Option {
	return func(o *options) { o.hook = hook }
}

// WithBucket makes clients share one retry budget, in place of the policy's
// own: clients of one server, or operations given to Do, which otherwise begin
// with a full bucket each.
func WithBucket(b *Bucket) Option { return func(o *options) { o.bucket = b } }

// WithClassifier lets classify change what the end of an attempt is taken for.
// It gets the decision of this package, the status and header of the response,
// or the error, and returns the decision that counts. It is for services that
// say more than the status does, in a header: that a call was throttled, or is
// not worth another try. It is not asked where the caller has cancelled. It must
// not declare NotProcessed what may have been processed.
func WithClassifier(classify func(status int, header http.Header, err error, d Decision) Decision) Option {
	return func(o *options) { o.classifier = classify }
}

// WithoutAccounting keeps the package from watching the wire by
// net/http/httptrace, which saves five small allocations an attempt. Requests
// that may have been processed are still not sent again by net/http, but what
// it sends again for other reasons is not counted, Attempt.Wire is not Known,
// and a failure that has no type to tell that nothing was sent (an EOF in the
// TLS handshake, an idle connection that had closed) counts as Unknown, so that
// a plain POST is not repeated after it.
func WithoutAccounting() Option { return func(o *options) { o.withoutAccounting = true } }

// newEngine checks the policy and applies the options.
func newEngine(p Policy, opts []Option) (*engine, options, error) {
	o := options{logger: slog.New(slog.DiscardHandler), random: globalRandom}
	for _, opt := range opts {
		opt(&o)
	}
	if err := p.Validate(); err != nil {
		return nil, o, err
	}
	if o.logger == nil {
		return nil, o, errors.New("retry: WithLogger(nil)")
	}
	if err := o.probe.validate(); err != nil {
		return nil, o, err
	}
	p = p.withDefaults()
	if o.bucket == nil {
		var err error
		if o.bucket, err = NewBucket(p.Budget); err != nil {
			return nil, o, err
		}
	}
	p.Budget = o.bucket.Budget()
	var renewed *tokens
	if o.refresh != nil {
		renewed = &tokens{refresh: o.refresh, timeout: p.AttemptTimeout, by: make(map[string]*token)}
	}
	return &engine{
		policy:     p,
		random:     o.random,
		logger:     o.logger,
		hook:       o.hook,
		classifier: o.classifier,
		bucket:     o.bucket,
		tokens:     renewed,
		probe:      o.probe,
		accounting: !o.withoutAccounting,
		traceKey:   captureTraceKey(),
	}, o, nil
}
