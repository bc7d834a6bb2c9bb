package faults_test

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/world"
)

// What a connection begins with, and what acknowledges the client's SETTINGS.
var (
	h2Start = []string{"SETTINGS MAX_CONCURRENT_STREAMS=250", "WINDOW_UPDATE 0 16711681"}
	h2Ack   = "SETTINGS ACK"
)

// h2Proof is a row of the proofs over HTTP/2: the frames on the wire, with # for the request's stream, < and >
// for the streams below and above it, and § for the number of the effect at the time of the answer.
type h2Proof struct {
	proof
	frames []string
	unread bool // the fault strikes while the body is on its way: it is held back
	noAck  bool
}

// The frames of the good answer.
var (
	h2Head  = fmt.Sprintf("HEADERS # :status=200 content-length=%d content-type=application/json", whole)
	h2Half  = "DATA # " + half
	h2Whole = "DATA # " + strings.ReplaceAll(goodBody, "#", "§") + " END_STREAM"
)

func h2Proofs() []h2Proof {
	var ps []h2Proof
	row := func(text string, phases []faults.Phase, end string, frames ...string) *h2Proof {
		line := ""
		if slices.Contains(frames, h2Head) {
			line = okay
		}
		ps = append(ps, h2Proof{proof: proof{text: text, phases: phases, end: end, line: line}, frames: frames})
		return &ps[len(ps)-1]
	}
	only := func(p faults.Phase) []faults.Phase { return []faults.Phase{p} }

	// What the two protocols share.
	for _, p := range proofs() {
		f, err := faults.Parse(p.text)
		if err != nil || f.Fits(faults.HTTP2) != "" {
			continue
		}
		var frames []string
		if p.line != "" {
			frames = []string{fmt.Sprintf("HEADERS # :status=%s content-length=%d content-type=%s", strings.Fields(p.line)[1], p.length, cmp.Or(p.ctype, "application/json"))}
			body := strings.ReplaceAll(p.body, "#", "§")
			switch {
			case body == "":
				frames[0] += " END_STREAM"
			case len(body) > 16384:
				frames = append(frames, "DATA # "+body[:16384], "DATA # "+body[16384:32768], "DATA # "+body[32768:]+" END_STREAM")
			default:
				frames = append(frames, "DATA # "+body+" END_STREAM")
			}
		}
		p.closes = false // streams do not wait for each other: see respond
		ps = append(ps, h2Proof{proof: p, frames: frames})
	}

	for _, code := range []string{"NO_ERROR", "INTERNAL_ERROR", "ENHANCE_YOUR_CALM", "PROTOCOL_ERROR"} {
		goaway := func(last string) string { return "GOAWAY " + last + " " + code }
		text := func(last, then string) string { return "h2_goaway last=" + last + " code=" + code + " then=" + then }
		for then, end := range map[string]string{"close": byFIN, "open": silence} {
			row(text("below", then), only(before), end, goaway("<"))
			row(text("twice_lower", then), only(before), end, "GOAWAY 2147483647 NO_ERROR", "PING", goaway("<"))
			row(text("raised", then), only(before), end, goaway("<"), goaway("#"))
		}
		row(text("at", "close"), every, byFIN, goaway("#"))
		row(text("above", "close"), every, byFIN, goaway(">"))
		row(text("at", "open"), only(after), silence, goaway("#"), h2Head, h2Whole)
		row(text("above", "open"), only(after), silence, goaway(">"), h2Head, h2Whole)
	}
	row("h2_goaway last=max then=close", every, byFIN, "GOAWAY 2147483647 NO_ERROR")
	row("h2_goaway last=max then=open", only(after), silence, "GOAWAY 2147483647 NO_ERROR", h2Head, h2Whole)

	for _, code := range []string{"INTERNAL_ERROR", "CANCEL", "ENHANCE_YOUR_CALM", "PROTOCOL_ERROR"} {
		reset := "RST_STREAM # " + code
		row("h2_rst_stream at=start code="+code, every, keep, reset)
		row("h2_rst_stream at=headers code="+code, every, keep, h2Head, reset)
		row("h2_rst_stream at=body code="+code, every, keep, h2Head, h2Half, reset)
	}
	row("h2_rst_stream at=start code=REFUSED_STREAM", only(before), keep, "RST_STREAM # REFUSED_STREAM")
	row("h2_rst_stream at=headers code=REFUSED_STREAM", only(before), keep, h2Head, "RST_STREAM # REFUSED_STREAM")
	row("h2_rst_stream at=answer code=NO_ERROR", only(after), keep, h2Head, h2Whole, "RST_STREAM # NO_ERROR").unread = true

	row("h2_settings_never_acked end=hang", every, silence).noAck = true
	row("h2_settings_never_acked end=normal", only(after), keep, h2Head, h2Whole).noAck = true

	row("h2_flow_control_stall variant=request", only(before), silence).unread = true
	row("h2_flow_control_stall variant=response", every, silence, h2Head)

	for end, by := range map[string]string{"fin": byFIN, "rst": byRST} {
		row("h2_connection_closed at=start end="+end, every, by)
		row("h2_connection_closed at=headers end="+end, every, by, h2Head)
		row("h2_connection_closed at=body end="+end, every, by, h2Head, h2Half)
		row("h2_connection_closed at=answer end="+end, only(after), by, h2Head, h2Whole)
	}
	return ps
}

func h2Rows() (rows []proof) {
	for _, p := range h2Proofs() {
		rows = append(rows, p.proof)
	}
	return rows
}

func TestH2Wire(t *testing.T) {
	for _, p := range h2Proofs() {
		for _, phase := range p.phases {
			f := p.fault(t, phase)
			t.Run(key(f), func(t *testing.T) {
				t.Parallel()
				t.Run("stream 1", func(t *testing.T) {
					inBoth(t, func(t *testing.T, n *world.Network) { p.prove(t, n, f, 1) })
				})
				t.Run("stream 5", func(t *testing.T) {
					if f.Name == "h2_goaway" {
						inBoth(t, func(t *testing.T, n *world.Network) { p.prove(t, n, f, 5) })
						return
					}
					// The stream's number changes nothing but itself: once is enough, without the wait.
					synctest.Test(t, func(t *testing.T) { p.prove(t, world.Memory(), f, 5) })
				})
			})
		}
	}
}

// prove makes the request on a stream of a connection: on stream 1 of a fresh one, or on a later one, where an
// earlier stream has been answered.
func (p h2Proof) prove(t *testing.T, n *world.Network, f faults.Fault, id uint32) {
	plan := []faults.Fault{f}
	if id > 1 {
		if p.noAck {
			p.proveTooLate(t, n, f)
			return
		}
		plan = []faults.Fault{{}, f}
	}
	r, stop := newH2Rig(t, n, plan...)
	defer stop()
	k := r.dialH2()
	defer k.conn.Close()
	want := slices.Clone(h2Start)
	if !p.noAck {
		want = append(want, h2Ack)
	}
	if id > 1 {
		k.post(1)
		got, end := k.read(len(want)+2, rest)
		expectFrames(t, got, append(slices.Clone(want), at([]string{h2Head, h2Whole}, 1, "1")...))
		if end != silence {
			t.Fatalf("the first stream ends by %s", end)
		}
		r.forgetLog()
		want = nil
	}
	k.head(id, false)
	switch {
	case !p.unread:
		k.must(k.fr.WriteData(id, true, []byte("{}")))
	case f.Variant == "request":
		// All that the window allows: 65,535 octets (RFC 9113 §6.9.2).
		for left := 65535; left > 0; left -= 16384 {
			k.must(k.fr.WriteData(id, false, make([]byte, min(left, 16384))))
		}
	}
	wait := rest
	switch {
	case f.Blocks():
		wait = quiet
	case p.end == byFIN, p.end == byRST:
		wait = patience
	}
	effect := "0"
	if f.Phase == after || f.Name == "latency" {
		effect = "1"
	}
	want = append(want, at(p.frames, id, effect)...)
	got, end := k.read(len(want), wait)
	expectFrames(t, got, want)
	if wantEnd := strings.ReplaceAll(p.end, keep, silence); end != wantEnd {
		t.Errorf("then %s, want %s", end, wantEnd)
	}
	gone := time.Since(r.start)
	switch {
	case p.end == keep:
		k.post(id + 2)
		got, end := k.read(2, rest)
		expectFrames(t, got, at([]string{h2Head, h2Whole}, id+2, "1"))
		if end != silence {
			t.Errorf("the next request on the connection ends by %s", end)
		}
	case f.Name == "h2_goaway" && f.Last != "max" && p.end == silence:
		// The connection is open, answers PING, and takes no stream above the last one any more.
		k.post(id + 4)
		k.must(k.fr.WritePing(false, [8]byte{1}))
		got, end := k.read(1, rest)
		expectFrames(t, got, []string{"PING ACK"})
		if end != silence {
			t.Errorf("an open connection ends by %s", end)
		}
	}
	if f.Blocks() {
		gone = time.Since(r.start)
	}
	k.conn.Close()
	if f.Phase == late && !f.Blocks() {
		gone = 0
	}
	q := p.proof
	if q.end == byFIN {
		q.end = "" // over HTTP/2 nobody waits for the client behind a FIN
	}
	q.account(t, r, f, gone)
}

// proveTooLate: on a connection whose SETTINGS are acknowledged the fault has nothing to withhold.
func (p h2Proof) proveTooLate(t *testing.T, n *world.Network, f faults.Fault) {
	r, stop := newH2Rig(t, n, faults.Fault{}, f)
	defer stop()
	k := r.dialH2()
	defer k.conn.Close()
	k.post(1)
	k.read(5, rest)
	k.post(3)
	got, _ := k.read(2, rest)
	expectFrames(t, got, at([]string{h2Head, h2Whole}, 3, "1"))
	r.events()
	if r.result == nil || !strings.Contains(r.result.Error(), faults.ErrNotApplicable.Error()) {
		t.Errorf("Apply says %v, want that the fault was not delivered", r.result)
	}
}

// at puts a stream and an effect into frames.
func at(frames []string, id uint32, effect string) (out []string) {
	num := func(n uint32) string { return strconv.FormatUint(uint64(n), 10) }
	for _, f := range frames {
		f = strings.ReplaceAll(f, "§", effect)
		// The frame's own words only: a body may hold anything.
		parts := strings.SplitN(f+" ", " ", 3)
		parts[1] = strings.NewReplacer("#", num(id), "<", num(max(id, 2)-2), ">", num(id+2)).Replace(parts[1])
		f = strings.TrimSuffix(strings.Join(parts, " "), " ")
		out = append(out, strings.ReplaceAll(f, `"effect":#`, `"effect":`+effect))
	}
	return out
}

func expectFrames(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("on the wire:\n\t%.600s\nwant:\n\t%.600s", strings.Join(got, "\n\t"), strings.Join(want, "\n\t"))
	}
}

// forgetLog drops what the faults so far have told, and counts time anew.
func (r *rig) forgetLog() {
	r.idle()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.log, r.start = nil, time.Now()
}
