package outbox

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/retrychaos/retrychaos/retry"
)

// Defaults that the zero fields of [Options] take, and those fields of its
// Policy that mean something else for a call that nobody waits for.
const (
	DefaultMaxAttempts = 100       // of Policy.MaxAttempts
	DefaultMaxDelay    = time.Hour // of Policy.MaxDelay
	DefaultMaxAge      = 24 * time.Hour
	DefaultKeyLifetime = 24 * time.Hour
	DefaultWorkers     = 4
	DefaultMaxBody     = 16 << 20
	DefaultMaxAnswer   = 64 << 10
	DefaultLockTimeout = time.Second
)

// Options say how an Outbox delivers. The zero value is ready to use. They are
// not written to the file: another run may have others.
type Options struct {
	// Policy says how attempts and waits are made. MaxAttempts (default 100)
	// counts the attempts of a call over all restarts; an attempt counts when
	// it begins, since a process that is killed cannot say how it ended.
	// MaxDelay is 1h by default, MaxRetryAfter is MaxAge, and a longer
	// Retry-After makes a dead letter. CallTimeout must be
	// zero: MaxAge is in its place. KeyHeader and BareKeys count when a call
	// is enqueued.
	Policy retry.Policy

	// MaxAge is the time from Enqueue (or Requeue) within which attempts are
	// begun. Default 24h.
	MaxAge time.Duration

	// KeyLifetime is how long the server remembers a key after it has first
	// seen it; ask its documentation. A call that only its key keeps from
	// happening twice is not tried again after that time, unless it is known
	// that the server has never seen the key. Default 24h, which is what
	// several services document.
	KeyLifetime time.Duration

	// Workers is the most attempts that are made at the same time. Default 4.
	Workers int

	// WorkersPerHost is the most of them to one scheme and host, so that a
	// server that hangs does not hold up calls to others. Default: Workers.
	// In any case the host with the fewest attempts in flight comes first,
	// and there the call that has been due for longest.
	WorkersPerHost int

	// Grace is how long attempts in flight may go on when Run's context has
	// ended. Those that do not end in time are cut off, and made again by the
	// next Run. Default 0.
	Grace time.Duration

	// MaxBody is the most bytes that a call's body may have. Default 16 MiB.
	MaxBody int

	// Prepare, if not nil, is called with the request of each attempt before
	// it is sent, to add what must not be in the file, or would be out of date:
	// credentials, above all. It must not touch the body or the key. Its error
	// is a failed attempt of which nothing was sent. It may be called
	// concurrently.
	Prepare func(ctx context.Context, id ID, req *http.Request) error

	// Delivered, if not nil, is called when the server has answered a call
	// with a status from 200 to 299, and before the call is removed from the
	// file: at least once for each call that is delivered, therefore, and
	// again if the process ends in between. It may be called concurrently,
	// and must not call Close.
	Delivered func(Delivery)

	// MaxAnswer is the most bytes of an answer that Delivered is given.
	// Default 64 KiB.
	MaxAnswer int

	// Client are further options of the retry.Client that sends the attempts,
	// such as retry.WithTransport. To that client each attempt is a call of
	// its own, so a retry.WithLogger has nothing to say: see Logger.
	Client []retry.Option

	// Logger gets a line at level Info for each retry (call, method, URL
	// without its query, attempt, reason, category, outcome, delay), and one
	// at level Warn for each dead letter. Default: nothing is logged.
	Logger *slog.Logger

	// LockTimeout is how long Open waits for another process to close the
	// file. Default 1s.
	LockTimeout time.Duration
}

// A Delivery is a call that has had its answer.
type Delivery struct {
	ID       ID
	Call     Call // the key is in its Header and, in the same form, in Key
	Enqueued time.Time
	Attempts int // over all restarts
	Status   int
	Header   http.Header
	Body     []byte // at most Options.MaxAnswer bytes
	Cut      bool   // the answer was longer
}

func (o Options) withDefaults() Options {
	setDefault(&o.MaxAge, DefaultMaxAge)
	setDefault(&o.KeyLifetime, DefaultKeyLifetime)
	setDefault(&o.Workers, DefaultWorkers)
	setDefault(&o.WorkersPerHost, o.Workers)
	setDefault(&o.MaxBody, DefaultMaxBody)
	setDefault(&o.MaxAnswer, DefaultMaxAnswer)
	setDefault(&o.LockTimeout, DefaultLockTimeout)
	setDefault(&o.Policy.MaxAttempts, DefaultMaxAttempts)
	// A base delay above the default cap is a wish for a higher cap.
	setDefault(&o.Policy.MaxDelay, max(DefaultMaxDelay, o.Policy.BaseDelay))
	setDefault(&o.Policy.MaxRetryAfter, o.MaxAge)
	o.Policy = o.Policy.WithDefaults()
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// validate reports the first field that makes no sense, those of the policy last:
// some of its defaults come from the others. o has its defaults.
func (o Options) validate() error {
	for _, f := range []struct {
		name  string
		wrong bool
		value any
	}{
		{"MaxAge", o.MaxAge < 0, o.MaxAge},
		{"KeyLifetime", o.KeyLifetime < 0, o.KeyLifetime},
		{"Workers", o.Workers < 0, o.Workers},
		{"WorkersPerHost", o.WorkersPerHost < 0, o.WorkersPerHost},
		{"Grace", o.Grace < 0, o.Grace},
		{"MaxBody", o.MaxBody < 0, o.MaxBody},
		{"MaxAnswer", o.MaxAnswer < 0, o.MaxAnswer},
		{"LockTimeout", o.LockTimeout < 0, o.LockTimeout},
	} {
		if f.wrong {
			return &OptionError{f.name, fmt.Sprintf("is %v; it must not be negative", f.value)}
		}
	}
	if err := o.Policy.Validate(); err != nil {
		return fmt.Errorf("outbox: Options.Policy: %w", err)
	}
	if o.Policy.CallTimeout != 0 {
		return &OptionError{"Policy", "has a CallTimeout; the age of a call is bounded by MaxAge"}
	}
	return nil
}
