package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// file makes a file of one scenario, whose lines after the first four are given.
func file(lines ...string) string {
	return "family: fam\nscenarios:\n  - name: one\n" +
		"    summary: What happens.\n    rule: key.stable\n    source: RFC 9110\n" + strings.Join(lines, "\n") + "\n"
}

func TestLoadRefuses(t *testing.T) {
	const head = "family: fam\nscenarios:\n"
	one := func(name string) string {
		return "  - {name: " + name + ", summary: s, rule: key.stable, source: x}\n"
	}
	for _, c := range []struct {
		name, text string
		want       []string // whole lines, "x.yaml" in front left out
	}{
		{"empty", "", []string{":1:1: the file is empty: it needs family and scenarios"}},
		{"only a comment", "# nothing\n", []string{":1:1: the file is empty: it needs family and scenarios"}},
		{"null", "~\n", []string{":1:1: the file is empty: it needs family and scenarios"}},
		{"a text", "hello\n", []string{`:1:1: want a mapping with fields like "family:", not "hello"`}},
		{"a list", "- a\n", []string{`:1:1: want a mapping with fields like "family:", not a list`}},
		{"no scenarios", "family: a\n", []string{":1:1: there is no list of scenarios"}},
		{"no family", "scenarios:\n" + one("a"), []string{":1:1: there is no family: give the name that comes before the slash"}},
		{"a bad family", "family: A b\nscenarios:\n" + one("a"), []string{`:1:9: the family "A b" is no word of lower-case letters, digits and '-'`}},
		{"empty list", "family: a\nscenarios: []\n", []string{":2:12: the list of scenarios is empty"}},
		{"list without value", "family: a\nscenarios:\n", []string{":2:11: the list of scenarios is empty"}},
		{"no list", "family: a\nscenarios: {a: b}\n", []string{":2:12: scenarios wants a list, not a mapping"}},
		{"scenario that is a text", head + "  - hello\n", []string{`:3:5: want a mapping with fields like "name:", not "hello"`}},
		{"unknown field at the top", "famly: a\nfamily: a\nscenarios:\n" + one("a"),
			[]string{`:1:1: there is no field "famly" here; the fields are family, about, scenarios; did you mean "family"?`}},
		{"missing things", head + "  - name: one\n    faults: [ok]\n", []string{
			":3:5: there is no summary: say in one sentence what happens and what a good client does",
			":3:5: there is no rule: name the check that the scenario is about, like effects.once",
			":3:5: there is no source: name the RFC section, draft, paper or thread that it is drawn from"}},
		{"no name", head + "  - {summary: s, rule: key.stable, source: x}\n", []string{":3:5: there is no name"}},
		{"a bad name", head + one("a_b"), []string{`:3:12: the name "fam/a_b" is not like family/words-of-the-name: letters, digits, '-' between them, one '/'`}},
		{"unknown field", file("    fauts: [ok]"), []string{
			`:7:5: there is no field "fauts" here; the fields are name, matrix, summary, rule, source, labels, worlds, why, connection, server, calls, faults, storms, draw, expect, settle; did you mean "faults"?`}},
		{"unknown field of a call", file("    calls: [{metod: PUT}]"), []string{
			`:7:14: there is no field "metod" here; the fields are name, method, path, resource, count, key, key_untrusted, key_text, idempotent, body, body_size, stream, header, deadline, cancel_after, start, every, arrivals, after, fleet, same_instant, faults; did you mean "method"?`}},
		{"wrong types", file("    labels: core", "    settle: [1s]", "    connection: 3", "    calls: [{key: yes, count: two, body: 7, deadline: 30}]"), []string{
			`:7:13: want a list, like [a, b], not "core"`,
			":8:13: want a duration like 250ms or 2m, not a list",
			":9:17: want a text, and YAML takes 3 for the number 3: put it in quotes",
			`:10:19: want true or false, not "yes"`,
			`:10:31: want a whole number, not "two"`,
			":10:42: want a text, and YAML takes 7 for the number 7: put it in quotes",
			`:10:55: the duration 30 has no unit; did you mean "30s"?`}},
		{"no value", file("    faults:"), []string{":7:12: there is no value: give one or take the line out"}},
		{"a fault of TLS where there is none", file("    faults: [ok, tls_handshake_hang]"), []string{
			`:7:18: "tls_handshake_hang" breaks a TLS handshake, and this server makes none: set server: {tls: true}`}},
		{"a refused connection after the commit", file("    faults: [connect_refused@after_commit]"), []string{
			`:7:30: connect_refused cannot strike at after_commit; did you mean "before_commit"?`}},
		{"a refused connection on a reused one", file(`    faults: ["connect_refused on=reused"]`), []string{
			":7:34: connect_refused strikes while a connection is made: an attempt on a reused one cannot meet it"}},
		{"unknown fault, plain", file("    faults: [ok, latncy]"), []string{`:7:18: unknown fault "latncy"; did you mean "latency"?`}},
		{"unknown fault, double quotes", file(`    faults: ["503", "hang@afer_commit"]`),
			[]string{`:7:27: unknown phase "afer_commit" (one of: before_commit, after_commit, commit_late); did you mean "after_commit"?`}},
		{"bad parameter behind escapes", file(`    faults: ["503 body=\"a\\u00e9\" tims=3"]`),
			[]string{`:7:37: unknown parameter "tims" (status takes: code, retry-after, header, body, stored, end, on, times, late); did you mean "times"?`}},
		{"bad parameter in single quotes", file(`    faults: ['503 body="it''s" tims=3']`),
			[]string{`:7:32: unknown parameter "tims" (status takes: code, retry-after, header, body, stored, end, on, times, late); did you mean "times"?`}},
		{"fault in a phase that it cannot have", file("    faults: [429@after_commit]"), []string{
			":7:18: 429 at after_commit: a server that commits must not say that it refused"}},
		{"fault that is a list", file("    faults: [[ok]]"), []string{`:7:14: want a fault like "503" or connection_reset@after_commit, not a list`}},
		{"fault behind forever", file(`    faults: ["503 times=forever", ok]`), []string{`:7:35: nothing comes after "503 times=forever", which takes all further attempts`}},
		{"unknown method", file("    calls: [{method: PSOT}, {name: b, method: get}, {name: c, method: FROBNICATE}, {name: d, method: CONNECT}]"), []string{
			`:7:22: unknown method "PSOT": want a registered one, in capitals; did you mean "POST"?`,
			`:7:47: unknown method "get": want a registered one, in capitals; did you mean "GET"?`,
			`:7:71: unknown method "FROBNICATE": want a registered one, in capitals`,
			`:7:102: the method CONNECT is no call of an application`}},
		{"unknown words", file("    worlds: [virtal]", "    why: w", "    server: {keys: honor}", "    connection: resued", "    expect: {error: decodin}"), []string{
			`:7:14: unknown world "virtal"; want virtual or loopback; did you mean "virtual"?`,
			`:9:20: unknown key mode "honor"; want honour, ignore or require; did you mean "honour"?`,
			`:10:17: unknown connection "resued"; want fresh or reused; did you mean "reused"?`,
			`:11:21: unknown trait "decodin"; want canceled, certificate, deadline, decoding, dns, eof, not_sent, refused, reset, timeout, tls or unexpected_eof; did you mean "decoding"?`}},
		{"how the server keeps keys", file("    server: {keys: require, profile: stirpe, expiry: -1s}"), []string{
			`:7:38: unknown profile "stirpe"; want plain, ietf or stripe; did you mean "stripe"?`,
			":7:54: the duration -1s is negative"}},
		{"a store that ignores keys", file("    server: {keys: ignore, profile: ietf, expiry: 1h}"), []string{
			":7:37: the server ignores keys, so that it keeps none by any book: take profile out, or set keys: honour",
			":7:51: the server ignores keys, so that it keeps none for any time: take expiry out, or set keys: honour"}},
		{"for ever and a day", file("    server: {expiry: 10000h}"), []string{":7:22: 10000h is more than 8760h, the most that a scenario can have here"}},
		{"key texts", file("    calls: [{key_text: a}, {name: b, key: true, key_text: a, count: 2}, {name: c, key: true, key_text: 'é'}, {name: d, key: true, key_text: '{call}{call}'}]"), []string{
			":7:24: key_text is the text of a key, and there is none: set key: true as well",
			`:7:59: the 2 calls of the group would share the key "a": put {call} into it`,
			`:7:104: the key "é" is no text of visible ASCII, which is all that a key can hold (RFC 9651 §3.3.3)`,
			`:7:141: the key "{call}{call}" holds {call} more than once`}},
		{"nothing to store with", file("    server: {keys: ignore}", "    faults: [ok, 500 stored=true]"), []string{
			":8:18: stored=true says that the answer is kept with its key, and the server ignores keys: take it out, or set keys: honour"}},
		{"no key to store with", file("    calls: [{faults: [500 stored=true]}, {name: b, key: true, faults: [500 stored=true]}]"), []string{
			":7:23: stored=true says that the answer is kept with its key, and the calls have none: set key: true"}},
		{"not stored at all", file("    calls: [{key: true}]", "    faults: [500 stored=yes]"), []string{
			`:8:25: unknown value of stored "yes" (one of: true)`}},
		{"worlds without why", file("    worlds: [virtual]"), []string{":7:13: worlds is set and why is not: say why it cannot run elsewhere, or take worlds out"}},
		{"why without worlds", file("    why: because"), []string{":7:10: why is set and worlds is not: name the worlds, or take why out"}},
		{"doubles", head + one("a") + one("b") + one("a"), []string{":5:12: the name fam/a is used twice: it is already at x.yaml:3:12"}},
		{"double keys", file("    settle: 1s", "    settle: 2s"), []string{`:8:5: "settle" is here twice: it is already at 7:5`}},
		{"path", file("    calls: [{path: /a}, {name: b, path: 'x/{call}'}, {name: c, path: '/{call}/{call}'}, {name: d, path: '/a b/{call}'}, {name: e, path: '/a/../{call}'}]"), []string{
			`:7:20: the path "/a" must hold {call} once: it is how the server tells calls apart`,
			`:7:41: the path "x/{call}" does not begin with '/'`,
			`:7:70: the path "/{call}/{call}" must hold {call} once: it is how the server tells calls apart`,
			`:7:105: the path "/a b/{call}" is no plain path: want words with '/' between them, and {call}`,
			`:7:137: the path "/a/../{call}" is not clean: servers would read it as "/c1"`}},
		{"counts", file("    calls: [{count: 0}, {name: b, count: -1}, {name: c, count: 100001}, {name: d, count: 1e3}]"), []string{
			":7:21: a count of 0 makes no call: want 1 to 100000",
			":7:42: a count of -1 makes no call: want 1 to 100000",
			":7:64: a count of 100001 is more than 100000, the most calls that a scenario can have",
			":7:90: want a whole number, not the number 1e3"}},
		{"too many together", file("    calls: [{count: 60000}, {name: b, count: 60000}]"), []string{
			":7:46: the groups together make more than 100000 calls, the most that a scenario can have"}},
		{"never ends: blocks", file("    calls: [{deadline: none}]", "    faults: [hang]"), []string{
			`:7:24: the call can never finish: it has neither deadline nor cancel_after, and "hang" blocks until the client goes`}},
		{"never ends: endless", file("    calls: [{deadline: none}]", `    faults: ["503 times=forever"]`), []string{
			`:7:24: the call can never finish: it has neither deadline nor cancel_after, and "503 times=forever" meets every attempt`}},
		{"never ends: of its own", file("    calls: [{deadline: none, faults: [stall_body]}]"), []string{
			`:7:24: the call can never finish: it has neither deadline nor cancel_after, and "stall_body" blocks until the client goes`}},
		{"never ends: storm", file("    calls: [{deadline: none}]", "    storms: [{to: 1s, fault: hang}]"), []string{
			`:7:24: the call can never finish: it has neither deadline nor cancel_after, and "hang" blocks until the client goes`}},
		{"never ends: draw", file("    calls: [{deadline: none}]", `    draw: {p: 1, faults: ["503"]}`), []string{
			`:7:24: the call can never finish: it has neither deadline nor cancel_after, and the draw has a fault for every attempt`}},
		{"after nobody", file("    calls: [{name: first}, {name: second, after: frist}]"), []string{
			`:7:50: there is no group "frist" to wait for: there is first or second; did you mean "first"?`}},
		{"after in a circle", file("    calls: [{name: a, after: b}, {name: b, after: a}]"), []string{
			":7:30: the group a waits for itself, and would never start",
			":7:51: the group b waits for itself, and would never start"}},
		{"storms", file(`    storms: [{from: 2s, to: 2s, fault: "503"}, {to: 1s, fault: ok}, {to: 5s, fault: "502"}, {from: 1s, to: 3s, fault: "503 times=2"}]`), []string{
			":7:14: the storm is over before it begins: from 2s is not before to 2s",
			":7:64: a storm of ok is no storm: name a fault",
			":7:93: no attempt meets this storm: storms[2] covers its whole window, and the first one wins",
			":7:119: times= counts attempts of a sequence and has no meaning here: take it out"}},
		{"draw", file(`    draw: {p: 1.5, faults: [ok]}`), []string{
			":7:15: a chance of 1.5: want 0 to 1",
			":7:29: ok in a draw only makes faults rarer: lower p instead"}},
		{"route of nobody", file(`    draw: {p: 0.1, faults: ["503"], route: "/chargs/{call}"}`), []string{
			`:7:44: no call has the path "/chargs/{call}"; there is /charges/{call}; did you mean "/charges/{call}"?`}},
		{"body twice", file("    calls: [{body: x, body_size: 1KiB}]"), []string{
			":7:34: body_size stands in place of a body: take one of them out"}},
		{"body sizes", file("    calls: [{body_size: 3}, {name: b, body_size: 1GiB}, {name: c, body_size: 33MiB}]"), []string{
			":7:25: a body of 3: want 11 bytes to 32MiB",
			`:7:50: want bytes like 1000, 64KiB or 4MiB, not "1GiB"`,
			":7:78: a body of 33MiB: want 11 bytes to 32MiB"}},
		{"Expect", file("    calls: [{header: {Expect: 200-ok}}, {name: b, method: GET, header: {Expect: 100-continue}}]"), []string{
			":7:23: Expect has one value that means something: 100-continue",
			":7:73: there is no body to wait with for a 100: give one, or take Expect out"}},
		{"token", file("    server: {token: expird}"), []string{
			`:7:21: unknown token mode "expird"; want expired, revoked or locked; did you mean "expired"?`}},
		{"too long", file("    calls: [{start: 25h}]"), []string{":7:21: 25h is more than 24h, the most that a scenario can have here"}},
		{"too long on loopback", file("    calls: [{deadline: 1h}]"), []string{
			":7:24: the run can take 1h, and on loopback, where time is real, at most 5m: shorten it, or set worlds: [virtual] and why"}},
		{"negative", file("    calls: [{deadline: -5s}]"), []string{":7:24: the duration -5s is negative"}},
		{"no time", file("    calls: [{deadline: 0s}]"), []string{":7:24: a deadline of 0 leaves no time at all: give a duration like 30s, or none"}},
		{"cancelled too late", file("    calls: [{deadline: 2s, cancel_after: 3s}]"), []string{
			":7:42: the call is cancelled after 3s and over by its deadline of 2s: cancel earlier, or give a later deadline"}},
		{"key_untrusted alone", file("    calls: [{key_untrusted: true}]"), []string{
			":7:29: key_untrusted says something of a key, and there is none: set key: true as well"}},
		{"headers", file("    calls: [{header: {idempotency-key: k, Host: h, 'a b': c, X-Ok: \"a\\nb\"}}]"), []string{
			":7:23: a key in the header would be the same for every call: set key: true",
			":7:43: Host belongs to the transport and cannot be set here",
			`:7:52: "a b" is no name of a header field`,
			`:7:62: the value "a\nb" cannot be sent as it is: want ASCII without control characters and outer spaces`}},
		{"expectations", file("    calls: [{method: GET}]", "    expect: {ok: true, attempts: 4..2, effects: 1, status: 503, error: reset}"), []string{
			":8:34: from 4 to 2 attempts is no range: the first number is the least",
			":8:49: the calls ask for nothing that has an effect: their methods are safe (RFC 9110 §9.2.1)",
			":8:60: a call that succeeds does not end with 503: change status, or set ok: false",
			":8:72: a call that succeeds has no error: take error out, or set ok: false"}},
		{"range", file("    expect: {attempts: 1-3, effects: -1}"), []string{
			`:7:24: want a number or a range like 2, 2..4, 2.. or ..4, not "1-3"`,
			":7:38: want a number or a range like 2, 2..4, 2.. or ..4, not the number -1"}},
		{"alias", "family: fam\nscenarios:\n  - &a {name: one, summary: s, rule: key.stable, source: x}\n  - *a\n", []string{
			":3:5: the anchor &a: anchors are not used here; write it out, or use a matrix",
			":4:5: the alias *a: aliases are not used here; write it out, or use a matrix"}},
		{"tag", file("    settle: !!str 1s"), []string{":7:13: the tag !!str: tags are not used here; take it out"}},
		{"merge key", file("    <<: {settle: 1s}"), []string{":7:5: a key must be a plain word; merge keys and complex keys are not used here"}},
		{"two documents", file() + "---\nfamily: b\n", []string{":8:1: a second document starts here: put it into a file of its own"}},
		{"tab", "family: fam\nscenarios:\n\t- a\n", []string{":3:1: there is a tab where YAML wants spaces: indent with spaces"}},
		{"no YAML", "family: [a\nscenarios: b\n", nil},
		{"not UTF-8", "family: fam\nscenarios: \"\xff\"\n", []string{":2:13: the byte 0xff is no UTF-8: save the file as UTF-8"}},
		{"UTF-16", "\xff\xfef\x00", []string{":1:1: the file is UTF-16: save it as UTF-8"}},
		{"control character", "family: fam\x00\n", []string{":1:12: the control character U+0000 does not belong here"}},
		{"deep", "family: " + strings.Repeat("[", 40) + strings.Repeat("]", 40), []string{":1:41: this is nested deeper than 32 levels"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			list, err := Load("x.yaml", []byte(c.text))
			var le *LoadError
			if !errors.As(err, &le) {
				t.Fatalf("got %d scenarios and %v, want a *LoadError", len(list), err)
			}
			if list != nil {
				t.Error("scenarios came with the error")
			}
			if c.want == nil {
				if le.Problems[0].Line == 0 {
					t.Errorf("no position: %v", err)
				}
				return
			}
			want := "x.yaml" + strings.Join(c.want, "\nx.yaml")
			if got := err.Error(); got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

func TestLoadFillsInDefaults(t *testing.T) {
	list, err := Load("x.yaml", []byte(file(`    faults: [503, "429 retry-after=2s"]`, "    calls:", "      - {}", "      - {method: GET, header: {x-a: [b, c]}}")))
	if err != nil {
		t.Fatal(err)
	}
	s := list[0]
	if s.Name != "fam/one" || s.Server.Keys != Honour || s.Origin != "x.yaml:3" || len(s.Faults) != 2 || s.Faults[0].Status != 503 {
		t.Errorf("got %+v", s)
	}
	g := s.Calls[0]
	if g.Name != "calls" || g.Method != "POST" || g.Path != "/charges/{call}" || g.Count != 1 || g.Deadline != 30*time.Second || g.Body != DefaultBody {
		t.Errorf("got %+v", g)
	}
	g = s.Calls[1]
	if g.Name != "calls2" || g.Body != "" || fmt.Sprint(g.Header) != "map[X-A:[b c]]" {
		t.Errorf("got %+v", g)
	}
}

func TestLoadSizes(t *testing.T) {
	big := bytes.Repeat([]byte("# filling\n"), 1<<20) // 10 MB
	for _, load := range map[string]func() error{
		"Load": func() error { _, err := Load("big.yaml", big); return err },
		"LoadFS": func() error {
			_, err := LoadFS(fstest.MapFS{"big.yaml": {Data: big}})
			return err
		},
		"LoadFile": func() error {
			name := filepath.Join(t.TempDir(), "big.yaml")
			if err := os.WriteFile(name, big, 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := LoadFile(name)
			return err
		},
	} {
		var err error
		_, bytes := spent(func() { err = load() })
		var le *LoadError
		if !errors.As(err, &le) || !strings.Contains(err.Error(), "over 1 MiB") {
			t.Errorf("got %v", err)
		}
		if bytes > 16<<20 {
			t.Errorf("%.0f bytes were allocated for it", bytes)
		}
	}
}

// A billion laughs: each line has the last one ten times.
func TestLoadBombs(t *testing.T) {
	var b strings.Builder
	b.WriteString("family: fam\na: &a [x,x,x,x,x,x,x,x,x,x]\n")
	for c := 'b'; c <= 'z'; c++ {
		fmt.Fprintf(&b, "%c: &%c [%s*%c]\n", c, c, strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), c-1)
	}
	var err error
	objects, bytes := spent(func() { _, err = Load("bomb.yaml", []byte(b.String())) })
	if err == nil || !strings.Contains(err.Error(), "bomb.yaml:2:4: the anchor &a: anchors are not used here") {
		t.Errorf("got %v", err)
	}
	if objects > 100_000 || bytes > 16<<20 {
		t.Errorf("%.0f objects and %.0f bytes were allocated for it", objects, bytes)
	}
}

func TestLoadTellsAHundredProblemsAtMost(t *testing.T) {
	_, err := Load("x.yaml", []byte(file("    faults: ["+strings.Repeat("nonsense, ", 150)+"]")))
	var le *LoadError
	if !errors.As(err, &le) || len(le.Problems) != 100 || le.Omitted != 50 || !strings.HasSuffix(err.Error(), "… and 50 more") {
		t.Errorf("got %d problems, %d omitted", len(le.Problems), le.Omitted)
	}
}

func TestLoadFolder(t *testing.T) {
	one := func(family, name string) *fstest.MapFile {
		return &fstest.MapFile{Data: []byte("family: " + family + "\nscenarios:\n  - {name: " + name + ", summary: s, rule: key.stable, source: x}\n")}
	}
	list, err := LoadFS(fstest.MapFS{"b.yaml": one("b", "x"), "a.yaml": one("c", "x"), "note.txt": {Data: []byte("no")}})
	if err != nil || len(list) != 2 || list[0].Name != "b/x" || list[1].Name != "c/x" || list[1].Origin != "a.yaml:3" {
		t.Errorf("got %+v, %v", list, err)
	}
	_, err = LoadFS(fstest.MapFS{"b.yaml": one("a", "x"), "a.yaml": one("a", "x"), "c.yaml": {Data: []byte("family: c\n")}})
	want := "c.yaml:1:1: there is no list of scenarios\nb.yaml:3:12: the name a/x is used twice: it is already at a.yaml:3:12"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	dir := t.TempDir()
	if _, err := LoadDir(dir); err == nil || !strings.Contains(err.Error(), "there is no *.yaml file here") {
		t.Errorf("an empty folder: %v", err)
	}
	if _, err := LoadDir(filepath.Join(dir, "absent")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no folder: %v", err)
	}
	if _, err := LoadFile(filepath.Join(dir, "absent.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	name := filepath.Join(dir, "a.yaml")
	if err := os.WriteFile(name, one("a", "x").Data, 0o600); err != nil {
		t.Fatal(err)
	}
	if list, err := LoadDir(dir); err != nil || len(list) != 1 || list[0].Origin != name+":3" {
		t.Errorf("got %+v, %v", list, err)
	}
	if list, err := LoadFile(name); err != nil || len(list) != 1 {
		t.Errorf("got %+v, %v", list, err)
	}
}
