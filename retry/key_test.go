package retry_test

import (
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/h2non/gock"
	"github.com/retrychaos/retrychaos/retry"
	"pgregory.net/rapid"
)

var quotedUUID = regexp.MustCompile(`^"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"$`)

// The attempts of a call carry one key, and no two calls share one, whatever
// happens to them.
func TestKeysAreStable(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		outcomes := rapid.SliceOfN(rapid.SampledFrom([]any{200, 429, 500, 503, errDial, errReset, io.EOF}), 1, 6).Draw(r, "outcomes")
		p := instant
		p.MaxAttempts = rapid.IntRange(1, 6).Draw(r, "attempts")
		p.BareKeys = rapid.Bool().Draw(r, "bare")
		seen := make(map[string]bool)
		// One context for all calls: the key belongs to the call.
		ctx := retry.WithIdempotencyKey(t.Context())
		a := &answers{outcomes: outcomes}
		c := newClient(t, p, a)
		for range 3 {
			a.calls, a.keys = 0, nil
			req := request(t, ctx, "POST", "http://server/", strings.NewReader("x"))
			if resp, err := c.Do(req); err == nil {
				resp.Body.Close()
			}
			key := a.keys[0]
			for _, k := range a.keys {
				if k != key {
					r.Fatalf("keys of one call: %q", a.keys)
				}
			}
			if quoted := `"` + strings.Trim(key, `"`) + `"`; !quotedUUID.MatchString(quoted) || (key == quoted) == p.BareKeys {
				r.Fatalf("key %q", key)
			}
			if seen[key] {
				r.Fatalf("two calls share the key %q", key)
			}
			seen[key] = true
			if req.Header.Get("Idempotency-Key") != "" {
				r.Fatal("the caller's header was changed")
			}
		}
	})
}

func TestWhoseKey(t *testing.T) {
	ctx := t.Context()
	for _, tt := range []struct {
		name   string
		policy retry.Policy
		req    *http.Request
		header string
		want   string
	}{
		{"given", retry.Policy{}, request(t, retry.WithKey(ctx, `a"b\c`), "POST", "http://server/", nil), "", `"a\"b\\c"`},
		{"given, bare", retry.Policy{BareKeys: true}, request(t, retry.WithKey(ctx, "abc"), "POST", "http://server/", nil), "", "abc"},
		{"the header wins", retry.Policy{}, request(t, retry.WithKey(ctx, "abc"), "POST", "http://server/", nil), "mine", "mine"},
		{"the header wins over a made key", retry.Policy{}, request(t, retry.WithIdempotencyKey(ctx), "POST", "http://server/", nil), "mine", "mine"},
		{"none", retry.Policy{HonouredKeys: true}, request(t, ctx, "POST", "http://server/", nil), "", ""},
		{"made after given", retry.Policy{BareKeys: true}, request(t, retry.WithKey(retry.WithIdempotencyKey(ctx), "abc"), "POST", "http://server/", nil), "", "abc"},
	} {
		a := &answers{outcomes: []any{200}}
		if tt.header != "" {
			tt.req.Header.Set("Idempotency-Key", tt.header)
		}
		resp, err := newClient(t, tt.policy, a).Do(tt.req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if a.keys[0] != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, a.keys[0], tt.want)
		}
	}
}

// A redirect under a plain http.Client is the same call.
func TestKeyOutlivesARedirect(t *testing.T) {
	a := &answers{outcomes: []any{response(307, "Location", "/b"), 200}}
	tr, err := retry.NewTransport(retry.Policy{}, a)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: tr}).Do(request(t, retry.WithIdempotencyKey(t.Context()), "POST", "http://server/a", strings.NewReader("x")))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if len(a.keys) != 2 || a.keys[0] != a.keys[1] || a.keys[0] == "" || a.bodies[1] != "x" {
		t.Errorf("keys %q, bodies %q", a.keys, a.bodies)
	}
}

// A client with a hard-coded host, and no wire.
func TestWithGock(t *testing.T) {
	defer func() {
		gock.OffAll()
		gock.DisableNetworking()
	}()
	hc := new(http.Client)
	gock.InterceptClient(hc)
	defer gock.RestoreClient(hc)
	gock.New("https://api.example").Post("^/charges$").MatchHeader("Idempotency-Key", "^k1$").Reply(503)
	gock.New("https://api.example").Post("^/charges$").MatchHeader("Idempotency-Key", "^k1$").BodyString("^amount=1$").
		Reply(201).SetHeader("Location", "/charges/c17")

	p := instant
	p.BareKeys = true
	c, err := retry.NewClient(p, retry.WithHTTPClient(hc))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(request(t, retry.WithKey(t.Context(), "k1"), "POST", "https://api.example/charges", strings.NewReader("amount=1")))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 201 || !gock.IsDone() {
		t.Errorf("%s; done: %v", resp.Status, gock.IsDone())
	}
}

// Cookies that http.Client adds to an attempt stay with that attempt.
func TestHeadersDoNotPileUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cookies []string
		n := 0
		rt := roundTripper(func(req *http.Request) (*http.Response, error) {
			n++
			cookies = append(cookies, req.Header.Get("Cookie"))
			return response(503), nil
		})
		c, err := retry.NewClient(retry.Policy{}, retry.WithHTTPClient(&http.Client{Transport: rt, Jar: oneCookie{}}))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := c.Do(request(t, t.Context(), "GET", "http://server/", nil))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if got := strings.Join(cookies, "|"); got != "a=1|a=1|a=1|a=1" {
			t.Errorf("cookies %s", got)
		}
	})
}
