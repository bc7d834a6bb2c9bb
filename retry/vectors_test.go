package retry_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/retrychaos/retrychaos/retry"
)

// vectors reads a file of cases that other implementations are held to as well; each file names its sources.
func vectors[T any](t *testing.T, file string) T {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// A call whose outcome is unknown is repeated if the registry says that its method is idempotent, and never
// otherwise.
func TestMethodsOfTheRegistry(t *testing.T) {
	type file struct {
		Methods []struct {
			Method     string
			Idempotent bool
		}
	}
	cases := vectors[file](t, "testdata/idempotent-methods.json").Methods
	if len(cases) < 40 {
		t.Fatalf("%d methods", len(cases))
	}
	for _, m := range cases {
		for _, failure := range []any{500, errReset} {
			want := 1
			if m.Idempotent {
				want = 2
			}
			a := &answers{outcomes: []any{failure, 200}}
			if resp, err := newClient(t, instant, a).Do(request(t, t.Context(), m.Method, "http://server/", nil)); err == nil {
				resp.Body.Close()
			}
			if a.calls != want {
				t.Errorf("%s after %v: %d attempts, want %d", m.Method, failure, a.calls, want)
			}
		}
		// A word of the caller's is enough for any.
		a := &answers{outcomes: []any{500, 200}}
		resp, err := newClient(t, instant, a).Do(request(t, retry.Idempotent(t.Context()), m.Method, "http://server/", nil))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if a.calls != 2 {
			t.Errorf("%s, said to be idempotent: %d attempts", m.Method, a.calls)
		}
	}
	for _, method := range []string{"FROB", "get", "Put"} {
		a := &answers{outcomes: []any{500, 200}}
		if resp, err := newClient(t, instant, a).Do(request(t, t.Context(), method, "http://server/", nil)); err == nil {
			resp.Body.Close()
		}
		if a.calls != 1 {
			t.Errorf("%s is not known, and was sent %d times", method, a.calls)
		}
	}
}

// Every key of the vectors that a structured-field string can hold is written as the vectors have it; the
// others are refused before anything is sent. A bare key goes out as it is.
func TestKeysOfTheVectors(t *testing.T) {
	type file struct {
		Cases []struct {
			ID      string
			Lines   []string `json:"field_lines"`
			Want    string
			WantKey string `json:"want_key"`
		} `json:"syntax_vectors"`
	}
	quoted, refused := 0, 0
	bare := instant
	bare.BareKeys = true
	for _, v := range vectors[file](t, "../harness/server/testdata/idempotency-key.json").Cases {
		switch {
		case v.Want == "valid" && v.WantKey != "":
			quoted++
			want := strings.TrimSpace(strings.Join(v.Lines, ", "))
			if got := sent(t, instant, v.WantKey); got != want {
				t.Errorf("%s: %q is sent as %s, want %s", v.ID, v.WantKey, got, want)
			}
			if got := sent(t, bare, v.WantKey); got != v.WantKey {
				t.Errorf("%s: bare, %q is sent as %s", v.ID, v.WantKey, got)
			}
		case v.ID == "sf-non-ascii-string" || v.ID == "sf-tab-in-string" || v.ID == "sf-newline-in-string":
			refused++
			key := strings.Trim(v.Lines[0], `"`)
			a := &answers{outcomes: []any{200}}
			_, err := newClient(t, instant, a).Do(request(t, retry.WithKey(t.Context(), key), "POST", "http://server/", nil))
			var bad *retry.KeyError
			if !errors.As(err, &bad) || a.calls != 0 {
				t.Errorf("%s: %v after %d attempts, want a KeyError and none", v.ID, err, a.calls)
			}
		}
	}
	if quoted < 7 || refused != 3 {
		t.Errorf("%d keys written, %d refused: the vectors have changed", quoted, refused)
	}
	a := &answers{outcomes: []any{200}}
	_, err := newClient(t, bare, a).Do(request(t, retry.WithKey(t.Context(), "a\nb"), "POST", "http://server/", nil))
	if !errors.As(err, new(*retry.KeyError)) || a.calls != 0 {
		t.Errorf("a line break in a bare key: %v after %d attempts", err, a.calls)
	}
}

// sent returns the field of a call with that key.
func sent(t *testing.T, p retry.Policy, key string) string {
	t.Helper()
	a := &answers{outcomes: []any{503, 200}}
	resp, err := newClient(t, p, a).Do(request(t, retry.WithKey(t.Context(), key), "POST", "http://server/", nil))
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if len(a.keys) != 2 || a.keys[0] != a.keys[1] {
		t.Errorf("the attempts carry %q", a.keys)
	}
	return a.keys[0]
}
