package faults_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/retrychaos/retrychaos/scenarios"
)

// A ruling says what holds a rule of testdata/status-code-rules.json: scenarios, by pattern, for what a client
// does; proofs on the wire, as texts of the proofs table, or tests by name for what the server does; or why it
// cannot be tested.
type ruling struct {
	client []string
	server []string
	why    string
}

// rulings are by the rule's status. The table of rules was put together from the specifications that it names
// in "sources" (RFC 9110, 9112, 6585, 8470, draft-ietf-httpapi-idempotency-key-header).
func rulings() map[string]ruling {
	return map[string]ruling{
		"1xx":               {client: []string{"response-head/interim-*"}},
		"3xx + Retry-After": {client: []string{"redirects/307-with-retry-after"}},
		"401":               {client: []string{"auth/*", "permanent/401-*"}},
		"408":               {client: []string{"recovery/408-*"}, server: []string{"status code=408 end=fin"}},
		"409":               {client: []string{"permanent/409-*"}},
		"412":               {client: []string{"permanent/412-after-a-lost-answer"}},
		"413":               {client: []string{"request-side/early-413-*"}, server: []string{"early_response end=normal"}},
		"417":               {client: []string{"request-side/continue-417-*"}},
		"421":               {client: []string{"recovery/421-*"}, why: "what a proxy must not do: the fake server is none"},
		"422":               {client: []string{"permanent/422-*"}},
		"425":               {client: []string{"recovery/425-*"}, why: "sent where a scenario says so, although no early data was: that is the case that clients get wrong"},
		"428":               {client: []string{"permanent/428-put"}},
		"429":               {client: []string{"rate-limits/*"}, server: []string{"rate_limit quota=1 window=3s", "connection_reset"}},
		"500":               {client: []string{"duplicates/post-unkeyed-500-*"}},
		"501":               {client: []string{"permanent/501-*"}},
		"502":               {client: []string{"duplicates/post-unkeyed-502-*"}},
		"503":               {client: []string{"rate-limits/503-*"}, why: "refusing connections is a fault of its own, connect_refused, before any request"},
		"504":               {client: []string{"duplicates/post-unkeyed-504-*", "duplicates/*late*"}},
		"truncated body": {client: []string{"response-body/broken-stream-*", "response-body/missing-final-chunk-*", "response-body/content-length-long-*",
			"recovery/truncated-*", "response-body/slow-close"}},
		"cut in header section": {client: []string{"response-head/cut-*"}},
		"close + pipelined":     {server: []string{"TestNothingBehindAClosingAnswer"}, why: "clients of net/http do not pipeline"},
	}
}

// TestStatusRulesAreHeld maps each rule to what holds it, and fails where there is a rule too many or too few
// or where what holds it is gone.
func TestStatusRulesAreHeld(t *testing.T) {
	data, err := os.ReadFile("testdata/status-code-rules.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Rules []struct {
			Status     any     `json:"status"`
			ServerRule *string `json:"server_rule"`
		}
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	library, err := scenarios.Library()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{"TestNothingBehindAClosingAnswer": true}
	for _, p := range proofs() {
		shown[p.text] = true
	}
	left := rulings()
	for _, rule := range doc.Rules {
		status := fmt.Sprint(rule.Status)
		r, ok := left[status]
		if !ok {
			t.Errorf("nothing holds the rule of %s", status)
			continue
		}
		delete(left, status)
		if len(r.client) == 0 && r.why == "" {
			t.Errorf("%s: no scenario holds what the client does", status)
		}
		if rule.ServerRule != nil && len(r.server) == 0 && r.why == "" {
			t.Errorf("%s: no proof holds what the server does (%s)", status, *rule.ServerRule)
		}
		for _, pattern := range r.client {
			if _, err := scenarios.Match(library, pattern); err != nil {
				t.Errorf("%s: %v", status, err)
			}
		}
		for _, name := range r.server {
			if !shown[name] {
				t.Errorf("%s: no proof of %q", status, name)
			}
		}
	}
	if len(doc.Rules) < 20 || len(left) > 0 {
		t.Errorf("%d rules; held, and not among them: %v", len(doc.Rules), left)
	}
}
