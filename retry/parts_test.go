package retry_test

import (
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/retry"
	"pgregory.net/rapid"
)

func TestDelay(t *testing.T) {
	p := retry.Policy{Jitter: retry.NoJitter}
	for n, want := range []time.Duration{1, 1, 2, 4, 8, 16, 30, 30} {
		if got := p.Delay(n, 0, 0); got != want*time.Second {
			t.Errorf("before retry %d: %v, want %ds", n, got, want)
		}
	}
	if got := p.Delay(1, 0, time.Hour); got != time.Hour {
		t.Errorf("with a floor: %v", got)
	}
	p.Jitter = retry.DecorrelatedJitter
	rapid.Check(t, func(r *rapid.T) {
		previous := time.Duration(rapid.Int64Range(0, int64(time.Minute)).Draw(r, "previous"))
		most := min(3*max(previous, time.Second), retry.DefaultMaxDelay)
		if d := p.Delay(5, previous, 0); d < time.Second || d > most {
			r.Fatalf("%v after %v", d, previous)
		}
	})
}

func TestKeyParts(t *testing.T) {
	a, b := retry.NewKey(), retry.NewKey()
	if a == b || !quotedUUID.MatchString(`"`+a+`"`) {
		t.Errorf("keys %q and %q", a, b)
	}
	if got := (retry.Policy{}).KeyValue(`a"b`); got != `"a\"b"` {
		t.Errorf("structured field %s", got)
	}
	if got := (retry.Policy{BareKeys: true}).KeyValue(`a"b`); got != `a"b` {
		t.Errorf("bare %s", got)
	}
	for method, want := range map[string]bool{"": true, "GET": true, "PUT": true, "QUERY": true, "POST": false, "get": false, "FOO": false} {
		if retry.IdempotentMethod(method) != want {
			t.Errorf("%q: %v", method, !want)
		}
	}
	if p := (retry.Policy{MaxAttempts: 7}).WithDefaults(); p.MaxAttempts != 7 || p.KeyHeader != "Idempotency-Key" || p.BaseDelay != time.Second {
		t.Errorf("%+v", p)
	}
}
