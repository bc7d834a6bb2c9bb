package retry_test

import (
	"io"
	"net/http"
	"testing"
)

// A watcher is a RoundTripper around another, of the kind that tracing puts
// there.
type watcher struct{ http.RoundTripper }

// An openWatcher says so.
type openWatcher struct{ watcher }

func (w openWatcher) Unwrap() http.RoundTripper { return w.RoundTripper }

// A keyed POST without a body can be kept from being replayed only if there is
// known to be an http.Transport below: a wrapper that unwraps does not get in
// the way of that.
func TestReplayIsPreventedThroughAWrapper(t *testing.T) {
	for _, tt := range []struct {
		name string
		wrap func(http.RoundTripper) http.RoundTripper
		sent int
	}{
		{"closed", func(rt http.RoundTripper) http.RoundTripper { return watcher{rt} }, 2},
		{"open", func(rt http.RoundTripper) http.RoundTripper { return openWatcher{watcher{rt}} }, 1},
		{"open twice", func(rt http.RoundTripper) http.RoundTripper { return openWatcher{watcher{openWatcher{watcher{rt}}}} }, 1},
		{"open around a closed one", func(rt http.RoundTripper) http.RoundTripper { return openWatcher{watcher{watcher{rt}}} }, 2},
	} {
		s := &rawServer{answer: dropSecond}
		tr, url := s.tcp(t)
		p := instant
		p.MaxAttempts = 1
		c := newClient(t, p, tt.wrap(tr))
		warm, err := c.Do(request(t, t.Context(), "GET", url, nil))
		if err != nil {
			t.Fatal(err)
		}
		io.Copy(io.Discard, warm.Body)
		warm.Body.Close()
		req := request(t, t.Context(), "POST", url, nil)
		req.Header.Set("Idempotency-Key", "k")
		if resp, err := c.Do(req); err == nil {
			resp.Body.Close()
			t.Errorf("%s: the dropped request succeeded", tt.name)
		}
		if got := s.count() - 1; got != tt.sent {
			t.Errorf("%s: sent %d times, want %d", tt.name, got, tt.sent)
		}
	}
}
