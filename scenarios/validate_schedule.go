package scenarios

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/internal/nearest"
)

// maxSequence bounds the entries of one sequence of faults.
const maxSequence = 10_000

// schedule validates the faults and puts them into the form that their text has.
func (v *validator) schedule(s *Scenario) {
	keyed := slices.ContainsFunc(s.Calls, func(g Group) bool { return g.Key })
	v.sequence(s, "faults", s.Faults)
	v.storedIn("faults", s.Faults, keyed, s)
	for i := range s.Calls {
		p := fmt.Sprintf("calls[%d].faults", i)
		v.sequence(s, p, s.Calls[i].Faults)
		v.storedIn(p, s.Calls[i].Faults, s.Calls[i].Key, s)
	}
	for i := range s.Storms {
		st, p := &s.Storms[i], fmt.Sprintf("storms[%d]", i)
		v.fault(s, p+".fault", &st.Fault)
		v.noTimes(p+".fault", st.Fault)
		v.stored(p+".fault", st.Fault, keyed, s)
		v.duration(p+".from", st.From, maxSpan)
		v.duration(p+".to", st.To, maxSpan)
		if st.From >= st.To {
			v.add(p, "the storm is over before it begins: from %s is not before to %s", durationText(st.From), durationText(st.To))
		}
		v.route(p+".route", s, st.Route)
		if st.Fault.IsOK() {
			v.add(p+".fault", "a storm of ok is no storm: name a fault")
		}
		for j, o := range s.Storms[:i] {
			if o.From <= st.From && st.To <= o.To && o.Meets(st.Route) && (o.Fault.On == faults.AnyConn || o.Fault.On == st.Fault.On) {
				v.add(p, "no attempt meets this storm: storms[%d] covers its whole window, and the first one wins", j)
				break
			}
		}
	}
	v.secure(s)
	if s.Draw == nil {
		return
	}
	if !(s.Draw.P >= 0 && s.Draw.P <= 1) {
		v.add("draw.p", "a chance of %v: want 0 to 1", s.Draw.P)
	}
	v.route("draw.route", s, s.Draw.Route)
	if len(s.Draw.Faults) == 0 {
		v.add("draw.faults", "a draw needs faults to draw from")
	}
	for i := range s.Draw.Faults {
		p := fmt.Sprintf("draw.faults[%d]", i)
		v.fault(s, p, &s.Draw.Faults[i])
		v.noTimes(p, s.Draw.Faults[i])
		v.stored(p, s.Draw.Faults[i], keyed, s)
		if s.Draw.Faults[i].IsOK() {
			v.add(p, "ok in a draw only makes faults rarer: lower p instead")
		}
	}
}

// route checks that a trigger's route is one of the scenario's paths.
func (v *validator) route(path string, s *Scenario, route string) {
	var paths []string
	for _, g := range s.Calls {
		paths = append(paths, g.Path)
	}
	if route != "" && !slices.Contains(paths, route) {
		v.near(path, nearest.Word(route, paths), "no call has the path %q; there is %s", clip(route), oneOf(paths))
	}
}

func (v *validator) sequence(s *Scenario, path string, list []faults.Fault) {
	for i := range list {
		p := fmt.Sprintf("%s[%d]", path, i)
		v.fault(s, p, &list[i])
		if list[i].Times == faults.Forever && i < len(list)-1 {
			v.add(fmt.Sprintf("%s[%d]", path, i+1), "nothing comes after %q, which takes all further attempts", clip(list[i].String()))
			return
		}
	}
}

// fault validates f, as one that the server of s can do, and puts it into the form that Parse gives.
func (v *validator) fault(s *Scenario, path string, f *faults.Fault) {
	err := f.Validate()
	if err == nil {
		*f, err = faults.Parse(f.String())
	}
	if err == nil {
		if why := f.Fits(s.Server.Protocol); why != "" && slices.Contains(protocols(), s.Server.Protocol) {
			v.add(path, "%s", why)
		}
		return
	}
	var syntax *faults.SyntaxError
	if errors.As(err, &syntax) {
		v.near(path, syntax.Near, "%s", syntax.Msg)
		return
	}
	v.add(path, "%s", err)
}

// secure refuses faults of TLS where the server speaks none.
func (v *validator) secure(s *Scenario) {
	if s.Server.TLS && s.Server.Protocol == faults.HTTP2 {
		v.add("server.tls", "h2 is spoken without TLS here, by prior knowledge: take tls or protocol out")
	}
	if s.Server.TLS {
		return
	}
	look := func(path string, f faults.Fault) {
		if f.NeedsTLS() {
			v.add(path, "%q breaks a TLS handshake, and this server makes none: set server: {tls: true}", clip(f.String()))
		}
	}
	list := func(path string, list []faults.Fault) {
		for i, f := range list {
			look(fmt.Sprintf("%s[%d]", path, i), f)
		}
	}
	list("faults", s.Faults)
	for i := range s.Calls {
		list(fmt.Sprintf("calls[%d].faults", i), s.Calls[i].Faults)
	}
	for i := range s.Storms {
		look(fmt.Sprintf("storms[%d].fault", i), s.Storms[i].Fault)
	}
	if s.Draw != nil {
		list("draw.faults", s.Draw.Faults)
	}
}

func (v *validator) noTimes(path string, f faults.Fault) {
	if f.Times != 0 {
		v.add(path, "times= counts attempts of a sequence and has no meaning here: take it out")
	}
}

// finishes makes sure that the calls of group i come to an end whatever the client does, and soon enough
// for the worlds of the scenario.
func (v *validator) finishes(s *Scenario, i int) {
	g, p := &s.Calls[i], fmt.Sprintf("calls[%d].deadline", i)
	if g.Deadline == NoDeadline && g.CancelAfter == 0 {
		if what := endless(s, g); what != "" {
			v.add(p, "the call can never finish: it has neither deadline nor cancel_after, and %s", what)
		}
	}
	reach, ok := reach(s, i, 0)
	switch {
	case !ok: // a circle or a wild duration, reported elsewhere
	case reach > maxSpan:
		v.add(p, "the run can take %s, more than %s, the most that a scenario can have", durationText(reach), durationText(maxSpan))
	case reach > maxLoopback && s.RunsIn(Loopback):
		v.add(p, "the run can take %s, and on loopback, where time is real, at most %s: shorten it, or set worlds: [virtual] and why", durationText(reach), durationText(maxLoopback))
	}
}

// endless says what keeps a call of g from ending by itself, so that only a deadline or its caller can end it;
// "" for nothing.
func endless(s *Scenario, g *Group) string {
	seq := g.Faults
	if len(seq) == 0 {
		seq = s.Faults
	}
	for _, f := range seq {
		switch {
		case f.Blocks():
			return fmt.Sprintf("%q blocks until the client goes", clip(f.String()))
		case f.Times == faults.Forever && !f.IsOK():
			return fmt.Sprintf("%q meets every attempt", clip(f.String()))
		}
	}
	for _, st := range s.Storms {
		if st.Meets(g.Path) && st.Fault.Blocks() {
			return fmt.Sprintf("%q blocks until the client goes", clip(st.Fault.String()))
		}
	}
	if s.Draw == nil || !s.Draw.Meets(g.Path) || s.Draw.P == 0 {
		return ""
	}
	if i := slices.IndexFunc(s.Draw.Faults, faults.Fault.Blocks); i >= 0 {
		return fmt.Sprintf("%q blocks until the client goes", clip(s.Draw.Faults[i].String()))
	}
	if s.Draw.P >= 1 {
		return "the draw has a fault for every attempt"
	}
	return ""
}

// reach is how long after the start of the run the last call of group i can end; false where it cannot
// be told.
func reach(s *Scenario, i, depth int) (time.Duration, bool) {
	g := &s.Calls[i]
	var d time.Duration
	if g.After != "" {
		j := slices.IndexFunc(s.Calls, func(o Group) bool { return o.Name == g.After })
		if j < 0 || depth > len(s.Calls) {
			return 0, false
		}
		var ok bool
		if d, ok = reach(s, j, depth+1); !ok {
			return 0, false
		}
	}
	last := max(0, g.Deadline)
	if g.CancelAfter > 0 && (last == 0 || g.CancelAfter < last) {
		last = g.CancelAfter
	}
	for _, t := range []time.Duration{g.Start, g.Every, last} {
		if t < 0 || t > maxSpan {
			return 0, false
		}
	}
	if n := time.Duration(g.Count - 1); n > 0 && g.Every > 0 {
		if g.Every > maxSpan/n {
			return 0, false
		}
		d += n * g.Every
	}
	d += g.Start + last
	if d > 365*maxSpan {
		return 0, false
	}
	return d, true
}

func (v *validator) expect(s *Scenario) {
	e := &s.Expect
	between := func(path, what string, lo, hi *int) {
		switch {
		case lo != nil && *lo < 0 || hi != nil && *hi < 0:
			v.add(path, "a negative number of %s", what)
		case lo != nil && hi != nil && *lo > *hi:
			v.add(path, "from %d to %d %s is no range: the first number is the least", *lo, *hi, what)
		}
	}
	between("expect.attempts", "attempts", e.MinAttempts, e.MaxAttempts)
	between("expect.effects", "effects", e.MinEffects, e.MaxEffects)
	if e.Status != nil && (*e.Status < 200 || *e.Status > 599) {
		v.add("expect.status", "the status %d is none that a caller sees: want 200 to 599", *e.Status)
	}
	if e.Trait != "" && !slices.Contains(Traits(), e.Trait) {
		v.near("expect.error", nearest.Word(e.Trait, Traits()), "unknown trait %q; want %s", clip(e.Trait), oneOf(Traits()))
	}
	if e.OK != nil && *e.OK {
		if e.Trait != "" {
			v.add("expect.error", "a call that succeeds has no error: take error out, or set ok: false")
		}
		if e.Status != nil && *e.Status >= 300 {
			v.add("expect.status", "a call that succeeds does not end with %d: change status, or set ok: false", *e.Status)
		}
	}
	quiet := true
	for _, g := range s.Calls {
		quiet = quiet && slices.Contains(safeMethods, g.Method)
	}
	if quiet && e.MinEffects != nil && *e.MinEffects > 0 {
		v.add("expect.effects", "the calls ask for nothing that has an effect: their methods are safe (RFC 9110 §9.2.1)")
	}
}
