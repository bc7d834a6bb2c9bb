package serve

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/harness/history"
)

// TestNeeds: a test that does what a run needs gets to the end of it, with what the run tells it and nothing else.
func TestNeeds(t *testing.T) {
	const head = "family: f\nscenarios:\n  - name: s\n    summary: s.\n    rule: effects.once\n    source: RFC 9110\n"
	for _, tt := range []struct {
		name, scenario, need string
		client               func(t *testing.T, r runInfo, transport *http.Transport, header http.Header)
		seen                 func(h *history.History) bool
	}{
		{"tls", "    server: {tls: true}\n", needTrust, func(t *testing.T, r runInfo, transport *http.Transport, _ http.Header) {
			pool := x509.NewCertPool()
			if !pool.AppendCertsFromPEM([]byte(r.CA)) || !strings.HasPrefix(r.BaseURL, "https://127.0.0.1:") {
				t.Fatalf("%s %q", r.BaseURL, r.CA)
			}
			transport.TLSClientConfig = &tls.Config{RootCAs: pool}
		}, nil},
		{"http2", "    server: {protocol: h2}\n", needHTTP2, func(_ *testing.T, _ runInfo, transport *http.Transport, _ http.Header) {
			transport.Protocols = new(http.Protocols)
			transport.Protocols.SetUnencryptedHTTP2(true)
		}, nil},
		{"token", "    server: {token: expired}\n", needToken, func(t *testing.T, r runInfo, transport *http.Transport, header http.Header) {
			if got := header.Get("Authorization"); got != "Bearer stale" {
				t.Errorf("Authorization: %s", got)
			}
			resp, err := (&http.Client{Transport: transport}).Post(r.TokenURL, "", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			var got struct{ Token string }
			if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
				t.Fatal(err)
			}
			header.Set("Authorization", "Bearer "+got.Token)
		}, func(h *history.History) bool { return h.Refreshes == 1 }},
		{"warm", "    connection: reused\n", needWarm, func(t *testing.T, r runInfo, transport *http.Transport, _ http.Header) {
			resp, err := (&http.Client{Transport: transport}).Get(r.WarmURL)
			if err != nil || resp.StatusCode != http.StatusNoContent {
				t.Fatal(resp, err)
			}
			resp.Body.Close()
		}, func(h *history.History) bool { return h.Calls[0].Attempts[0].Reused }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := newAPI(t, Config{})
			r := a.run(file(t, head+tt.scenario, ""))
			told := false
			for _, n := range r.Needs {
				told = told || n.Code == tt.need
			}
			if !told {
				t.Errorf("needs %v, not %s", r.Needs, tt.need)
			}
			c := r.Calls[0]
			transport := &http.Transport{}
			defer transport.CloseIdleConnections()
			header := http.Header(c.Headers).Clone()
			tt.client(t, r, transport, header)
			status := 0
			for n := 0; n < 2 && status != http.StatusOK; n++ {
				req, err := http.NewRequest(c.Method, c.URL, strings.NewReader(*c.Body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header = header
				resp, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(req)
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				status = resp.StatusCode
			}
			a.report(r.ID, `{"call": "c1", "ok": true, "status": 200}`)
			v := a.verdict(r.ID)
			if status != http.StatusOK || v.Status != check.Pass {
				t.Errorf("status %d, %s: %s", status, v.Status, v.Text)
			}
			if h, _ := a.h.find(r.ID).complete(); tt.seen != nil && !tt.seen(h) {
				t.Errorf("%+v", h.Calls[0].Attempts[0])
			}
			// The connection is still open: the end of the run must not wait for it.
			if got := a.send("DELETE", "/runs/"+r.ID, "", ""); got.status != http.StatusNoContent {
				t.Errorf("%d", got.status)
			}
		})
	}
}
