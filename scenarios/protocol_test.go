package scenarios

import (
	"strings"
	"testing"

	"github.com/retrychaos/retrychaos/faults"
)

// A fault that the scenario's server cannot do is told where it stands, wherever it stands, and so is one that a
// server must not do.
func TestFaultsFitTheProtocol(t *testing.T) {
	const head = "family: fam\nscenarios:\n- name: one\n  summary: A test.\n  rule: effects.once\n  source: here\n"
	for _, c := range []struct{ body, want string }{
		{"  server: {protocol: h2}\n  faults: [\"503\", connection_reset]\n", "x.yaml:8:19: connection_reset is done over http/1.1, and this server speaks h2"},
		{"  faults: [ok, h2_goaway]\n", "x.yaml:7:16: h2_goaway is done over h2, and this server speaks http/1.1"},
		{"  server: {protocol: http/1.1}\n  calls:\n  - faults: [h2_rst_stream]\n", "x.yaml:9:14: h2_rst_stream is done over h2"},
		{"  storms:\n  - {from: 0s, to: 2s, fault: h2_connection_closed}\n", "x.yaml:8:31: h2_connection_closed is done over h2"},
		{"  server: {protocol: h2}\n  draw: {p: 0.5, faults: [\"503\", truncated_body]}\n", "x.yaml:8:34: truncated_body is done over http/1.1"},
		{"  server: {protocol: h2}\n  faults: ['503 header=\"Connection: close\"']\n", "x.yaml:8:12: the field Connection does not exist in HTTP/2 (RFC 9113 §8.2.2)"},
		{"  server: {protocol: h2, tls: true}\n", "x.yaml:7:31: h2 is spoken without TLS here"},
		{"  server: {protocol: http2}\n", "x.yaml:7:22: unknown protocol \"http2\"; want http/1.1 or h2"},
		{"  server: {protocol: h2}\n  faults: [h2_rst_stream@after_commit code=REFUSED_STREAM]\n", "x.yaml:8:26: REFUSED_STREAM says that the request was not processed"},
		{"  server: {protocol: h2}\n  faults: [h2_rst_stream@commit_late code=REFUSED_STREAM]\n", "x.yaml:8:26: REFUSED_STREAM says that the request was not processed"},
		{"  server: {protocol: h2}\n  faults: [h2_goaway@after_commit]\n", "x.yaml:8:22: last=below says that the request was not processed"},
		{"  server: {protocol: h2}\n  faults: [h2_goaway last=max code=INTERNAL_ERROR]\n", "x.yaml:8:36: the graceful notice of last=max has code NO_ERROR"},
		{"  server: {protocol: h2}\n  faults: [h2_goaway last=bellow]\n", "x.yaml:8:27: unknown last \"bellow\" (one of: below, at, above, max, twice_lower, raised); did you mean \"below\"?"},
		{"  server: {protocol: h2}\n  faults: [h2_settings_never_acked on=reused]\n", "x.yaml:8:39: on a reused connection the SETTINGS have been acknowledged long ago"},
	} {
		_, err := Load("x.yaml", []byte(head+c.body))
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s\nerror: %v\nwant:  %s", c.body, err, c.want)
		}
	}
	list, err := Load("x.yaml", []byte(head+"  server: {protocol: h2}\n  faults: [h2_goaway, \"503\", hang, latency delay=1s, malformed_json]\n"))
	if err != nil || list[0].Server.Protocol != faults.HTTP2 {
		t.Errorf("%+v, %v", list, err)
	}
	s := list[0]
	text, err := Format(s)
	if err != nil || !strings.Contains(string(text), "protocol: h2") {
		t.Errorf("%s\n%v", text, err)
	}
}
