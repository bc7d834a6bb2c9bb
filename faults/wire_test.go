package faults_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/cmd/retrychaos/cli"
	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/world"
)

const (
	before = faults.BeforeCommit
	after  = faults.AfterCommit
	late   = faults.CommitLate
)

// A proof says what a raw client finds on the wire for one effect, in each of the phases.
type proof struct {
	text   string // the fault without its phase
	phases []faults.Phase
	line   string // status line; "" where no byte comes
	length int    // Content-Length announced
	body   string // the bytes that come; # is the number of the effect at the time of the answer
	end    string // byFIN, byRST, silence, or keep
	closes bool   // at commit_late the answer says Connection: close and is followed by FIN
	pause  time.Duration

	send    []string // what the client sends, with a silence between the pieces; rawRequest unless said
	prefix  string   // what comes before the answer, byte for byte
	raw     string   // an answer without a head, byte for byte
	fields  []string // further fields
	ctype   string   // application/json unless said
	noType  bool     // no Content-Type
	unfixed bool     // no Content-Length
	untold  bool     // Answered is not called, because there is no status to speak of
}

// keep is an answer after which the connection takes the next request.
const keep = "keep"

var (
	every = []faults.Phase{before, after, late}
	okay  = "HTTP/1.1 200 OK"
	whole = len(goodBody)
	half  = goodBody[:whole/2]
)

// The delays in the proofs: on TCP they are real time, so they are short.
const (
	wireDelay = 60 * time.Millisecond
	wireLate  = 40 * time.Millisecond
)

func proofs() []proof {
	ps := []proof{
		{text: "latency delay=60ms", phases: every, line: okay, length: whole, body: goodBody, end: keep, pause: wireDelay},
		{text: "hang", phases: every, end: silence},
		{text: "empty_response", phases: every, end: byFIN},
		{text: "connection_reset", phases: every, end: byRST},
		{text: "truncated_body end=fin", phases: every, line: okay, length: whole, body: half, end: byFIN},
		{text: "truncated_body after=10 end=rst", phases: every, line: okay, length: whole, body: goodBody[:10], end: byRST},
		{text: "stall_body end=hang", phases: every, line: okay, length: whole, body: half, end: silence},
		{text: "stall_body after=0 delay=60ms end=fin", phases: every, line: okay, length: whole, body: "", end: byFIN, pause: wireDelay},
		{text: "stall_body after=0.9 delay=60ms end=rst", phases: every, line: okay, length: whole, body: goodBody[:whole*9/10], end: byRST, pause: wireDelay},
		{text: "stall_body after=3 delay=60ms end=normal", phases: []faults.Phase{after}, line: okay, length: whole, body: goodBody, end: keep, pause: wireDelay},
		{text: "status code=503", phases: every, line: "HTTP/1.1 503 Service Unavailable",
			body: `{"error":"Service Unavailable"}`, length: 31, end: keep, closes: true},
		{text: "status code=408 end=fin", phases: []faults.Phase{before}, line: "HTTP/1.1 408 Request Timeout",
			body: `{"error":"Request Timeout"}`, length: 27, end: byFIN, fields: []string{"Connection: close"}},
		{text: "status code=500 end=fin", phases: []faults.Phase{after, late}, line: "HTTP/1.1 500 Internal Server Error",
			body: `{"error":"Internal Server Error"}`, length: 33, end: byFIN, fields: []string{"Connection: close"}},
	}
	for variant, body := range malformedBodies() {
		p := proof{text: "malformed_json variant=" + variant, phases: every, line: okay,
			length: len(body), body: body, end: keep, closes: true}
		if variant == "json_as_html" {
			p.ctype = "text/html; charset=utf-8"
		}
		ps = append(ps, p)
	}
	return append(ps, http1Proofs()...)
}

func malformedBodies() map[string]string {
	return map[string]string{
		"empty":            "",
		"null":             "null",
		"truncated":        half,
		"trailing_garbage": goodBody + "}<!-- end -->",
		"wrong_type":       "[" + goodBody + "]",
		"wrong_field_type": `{"call":{},"ok":"yes","effect":"one"}`,
		"duplicate_keys":   `{"call":"c1","call":"another","ok":true,"effect":1}`,
		"nan":              `{"call":"c1","ok":true,"effect":NaN}`,
		"bom":              "\xef\xbb\xbf" + goodBody,
		"invalid_utf8":     "{\"call\":\"c1\xff\xfe\",\"ok\":true,\"effect\":1}",
		"deep_nesting":     `{"call":"c1","ok":true,"effect":1,"more":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + "}",
		"huge_number":      `{"call":"c1","ok":true,"effect":1e999}`,
		"json_as_html":     goodBody,
		"error_object":     `{"error":{"code":503,"message":"backend unavailable"}}`,
		"html":             "<!DOCTYPE html>\n<html><body><h1>It works!</h1></body></html>\n",
	}
}

// fault returns the proof's fault in a phase.
func (p proof) fault(t *testing.T, phase faults.Phase) faults.Fault {
	name, params, _ := strings.Cut(p.text, " ")
	text := name + "@" + string(phase) + " " + params
	if phase == late && name != "latency" {
		text += " late=" + wireLate.String()
	}
	return parse(t, text)
}

// TestWireProofsCoverCatalogue fails where the catalogue has an effect that no proof shows, and where a proof
// shows what the catalogue does not have.
func TestWireProofsCoverCatalogue(t *testing.T) {
	t.Run(faults.HTTP1, func(t *testing.T) { covered(t, faults.HTTP1, provenKeys(t)) })
	t.Run(faults.HTTP2, func(t *testing.T) { covered(t, faults.HTTP2, rowKeys(t, h2Rows())) })
}

func covered(t *testing.T, protocol string, proven []string) {
	var listed []string
	for _, e := range faults.Catalogue() {
		if !slices.Contains(e.Protocols, protocol) {
			continue
		}
		for _, f := range e.Combinations() {
			listed = append(listed, key(f))
		}
	}
	slices.Sort(listed)
	if !slices.Equal(listed, proven) {
		t.Errorf("listed and proven differ\nlisted: %q\nproven: %q", listed, proven)
	}
	if len(slices.Compact(listed)) != len(proven) {
		t.Error("a combination is listed twice")
	}
}

// provenKeys names every combination that has a self-proof.
func provenKeys(t *testing.T) []string {
	proven := append(rowKeys(t, proofs()), dialKeys(t)...)
	slices.Sort(proven)
	return proven
}

func rowKeys(t *testing.T, rows []proof) (proven []string) {
	for _, p := range rows {
		for _, phase := range p.phases {
			proven = append(proven, key(p.fault(t, phase)))
		}
	}
	slices.Sort(proven)
	return proven
}

// TestListedCombinationsAreProven holds what the command line lists, as its users see it, against the proofs.
func TestListedCombinationsAreProven(t *testing.T) {
	var out, errs bytes.Buffer
	if code := cli.Execute(t.Context(), []string{"list", "faults", "--json"}, &out, &errs); code != 0 {
		t.Fatalf("exit status %d: %s", code, &errs)
	}
	var items []struct{ Combinations []string }
	if err := json.Unmarshal(out.Bytes(), &items); err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, i := range items {
		for _, text := range i.Combinations {
			listed = append(listed, key(parse(t, text)))
		}
	}
	// What both protocols have is listed once.
	proven := append(provenKeys(t), rowKeys(t, h2Rows())...)
	slices.Sort(proven)
	proven = slices.Compact(proven)
	slices.Sort(listed)
	if !slices.Equal(listed, proven) {
		t.Errorf("listed and proven differ\nlisted: %q\nproven: %q", listed, proven)
	}
	t.Logf("%d combinations, each proven on TCP and in memory", len(proven))
}

func TestWire(t *testing.T) {
	for _, p := range proofs() {
		for _, phase := range p.phases {
			f := p.fault(t, phase)
			t.Run(key(f), func(t *testing.T) {
				inBoth(t, func(t *testing.T, n *world.Network) { p.prove(t, n, f) })
			})
		}
	}
}

func (p proof) prove(t *testing.T, n *world.Network, f faults.Fault) {
	r, stop := newRig(t, n, f)
	defer stop()
	c := r.dial()
	defer c.Close()
	wait := patience
	if p.end == silence {
		wait = quiet
	}
	got, end := p.talk(r, c, wait)
	rest, ok := bytes.CutPrefix(got, []byte(p.prefix))
	if !ok {
		t.Errorf("on the wire: %.300q\nwant first: %.300q", got, p.prefix)
	}
	got = rest

	effect := "0" // what the reply says before the commit
	if f.Phase == after || f.Category() == faults.None {
		effect = "1"
	}
	if p.raw != "" {
		if string(got) != p.raw || end != p.end {
			t.Errorf("on the wire: %.300q, then %s\nwant: %.300q, then %s", got, end, p.raw, p.end)
		}
		gone := time.Since(r.start)
		c.Close()
		p.account(t, r, f, gone)
		return
	}
	want := answer{line: p.line, body: strings.ReplaceAll(p.body, "#", effect)}
	wantEnd := p.end
	if p.line != "" {
		want.fields = slices.Clone(p.fields)
		if !p.unfixed {
			want.fields = append(want.fields, "Content-Length: "+strconv.Itoa(p.length))
		}
		if !p.noType {
			want.fields = append(want.fields, "Content-Type: "+cmp.Or(p.ctype, "application/json"))
		}
		if p.closes && f.Phase == late {
			want.fields = append(want.fields, "Connection: close")
			wantEnd = byFIN
		}
		slices.Sort(want.fields)
	}
	a := dissect(t, got)
	if a.line != want.line || !slices.Equal(a.fields, want.fields) || a.body != want.body {
		t.Errorf("on the wire: %.300q\nwant: %.300q", a, want)
	}
	if wantEnd == keep {
		if end != silence {
			t.Fatalf("the connection ends by %s, want it kept", end)
		}
		next, end := r.exchange(c, rawRequest, patience)
		if a := dissect(t, next); a.line != okay || end != silence {
			t.Errorf("the next request on the connection gets %q, then %s", next, end)
		}
	} else if end != wantEnd {
		t.Errorf("it ends by %s, want %s", end, wantEnd)
	}
	gone := time.Since(r.start)
	c.Close()
	p.account(t, r, f, gone)
}

// talk sends what the client has to say, and reads to the end of the exchange. Between two pieces it lets the
// server be silent.
func (p proof) talk(r *rig, c net.Conn, wait time.Duration) (got []byte, end string) {
	pieces := p.send
	if pieces == nil {
		pieces = []string{rawRequest}
	}
	for i, piece := range pieces {
		limit := wait
		if i+1 < len(pieces) {
			limit = quiet
		} else if isWhole(got) {
			limit = rest // the answer came before the last piece
		}
		var more []byte
		more, end = r.exchange(c, piece, limit)
		got = append(got, more...)
	}
	return got, end
}

// account compares what the fault told about itself with its phase. gone is when the client went.
func (p proof) account(t *testing.T, r *rig, f faults.Fault, gone time.Duration) {
	log := r.events()
	if r.result != nil {
		t.Errorf("Apply: %v", r.result)
	}
	commit, delivered, answered := find(t, log, "commit"), find(t, log, "delivered"), find(t, log, "answered")
	if delivered < 0 {
		t.Fatalf("not delivered: %+v", log)
	}
	if (answered >= 0) != (p.line != "" && !p.untold) {
		t.Errorf("answered: %v, status line: %q", answered >= 0, p.line)
	}
	if answered >= 0 && !strings.Contains(p.line, " "+strconv.Itoa(log[answered].status)+" ") {
		t.Errorf("answered with %d, on the wire: %s", log[answered].status, p.line)
	}
	if find(t, log, "applied") != len(log)-1 {
		t.Errorf("something happened after Apply returned: %+v", log)
	}
	if f.Name == "latency" {
		if commit < 0 || commit > answered {
			t.Errorf("latency must commit before it answers: %+v", log)
		}
		p.instant(t, r, "answer", log[answered].at, wireDelay)
		if f.Phase == after {
			p.instant(t, r, "commit", log[commit].at, 0)
		} else {
			p.instant(t, r, "commit", log[commit].at, wireDelay)
		}
		return
	}
	if f.Category() == faults.None && f.Phase == before {
		if commit < 0 || commit > answered {
			t.Errorf("a good answer without a commit before it: %+v", log)
		}
		p.instant(t, r, "commit", log[commit].at, p.pause)
		return
	}
	switch f.Phase {
	case before:
		if commit >= 0 {
			t.Errorf("committed: %+v", log)
		}
	case after:
		if commit != 0 {
			t.Errorf("the commit does not come first: %+v", log)
		}
	case late:
		if commit != len(log)-2 {
			t.Fatalf("the commit does not come last: %+v", log)
		}
		over := p.pause // when the wire effect was over
		if f.Blocks() {
			over = gone
		}
		if p.end == byFIN || p.closes {
			over = max(over, gone) // the half-closed connection waited for the client
		}
		p.instant(t, r, "late commit", log[commit].at, over+wireLate)
	}
}

// instant compares to the nanosecond in virtual time; in real time it only says that nothing was too early.
func (p proof) instant(t *testing.T, r *rig, what string, got, want time.Duration) {
	t.Helper()
	if r.exact && got != want || got < want-time.Millisecond {
		t.Errorf("%s after %v, want %v", what, got, want)
	}
}
