package scenarios

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/internal/nearest"
)

const (
	maxCalls    = 100_000         // of one scenario
	maxSpan     = 24 * time.Hour  // of anything that a scenario waits for
	maxLoopback = 5 * time.Minute // of one call on loopback, where time is real
	maxSettle   = time.Hour
	maxBody     = 1 << 20
)

// Defaults of a group.
const (
	DefaultMethod   = http.MethodPost
	DefaultPath     = "/charges/{call}"
	DefaultDeadline = 30 * time.Second
	// DefaultBody is sent by POST, PUT and PATCH.
	DefaultBody = `{"amount":100,"currency":"eur"}`
)

var (
	scenarioName = regexp.MustCompile(`^[A-Za-z0-9]+(-[A-Za-z0-9]+)*/[A-Za-z0-9]+(-[A-Za-z0-9]+)*$`)
	groupName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]*$`)
	fieldToken   = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
)

// Validate returns s with its defaults filled in, and an *InvalidError where it makes no sense. Load does
// this by itself; it is for scenarios that are written in Go. s itself is not changed.
func Validate(s Scenario) (Scenario, error) {
	done, issues := complete(s)
	if len(issues) > 0 {
		return Scenario{}, &InvalidError{s.Name, issues}
	}
	return done, nil
}

// A validator collects issues.
type validator struct {
	issues []Issue
}

func (v *validator) add(path, format string, args ...any) {
	v.issues = append(v.issues, Issue{Path: path, Msg: fmt.Sprintf(format, args...)})
}

func (v *validator) near(path, near, format string, args ...any) {
	v.issues = append(v.issues, Issue{path, fmt.Sprintf(format, args...), near})
}

// complete fills in the defaults of a copy of s and validates it.
func complete(s Scenario) (Scenario, []Issue) {
	v := &validator{}
	s = withDefaults(s)
	if v.tooMuch(&s); len(v.issues) > 0 {
		return s, v.issues
	}
	v.head(&s)
	v.capacity(&s)
	v.calls(&s)
	v.schedule(&s)
	v.expect(&s)
	for i := range s.Calls {
		v.finishes(&s, i)
	}
	return s, v.issues
}

// tooMuch bounds every list, so that what follows takes no time to speak of.
func (v *validator) tooMuch(s *Scenario) {
	most := func(path string, n, most int) {
		if n > most {
			v.add(path, "there are %d entries, and %d at most make sense here", n, most)
		}
	}
	most("server.incidents", len(s.Server.Incidents), maxIncidents)
	most("labels", len(s.Labels), 50)
	most("worlds", len(s.Worlds), 10)
	most("calls", len(s.Calls), 500)
	most("storms", len(s.Storms), 500)
	most("faults", len(s.Faults), maxSequence)
	if s.Draw != nil {
		most("draw.faults", len(s.Draw.Faults), 500)
	}
	for i := range s.Calls {
		most(fmt.Sprintf("calls[%d].faults", i), len(s.Calls[i].Faults), maxSequence)
		most(fmt.Sprintf("calls[%d].header", i), len(s.Calls[i].Header), 100)
	}
}

func withDefaults(s Scenario) Scenario {
	line := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	s.Summary, s.Source, s.Why = line(s.Summary), line(s.Source), line(s.Why)
	if s.Server.Keys == "" {
		s.Server.Keys = Honour
	}
	s.Server.Incidents = own(s.Server.Incidents)
	if s.Server.Capacity != nil {
		c := *s.Server.Capacity
		if c.Distribution == "" {
			c.Distribution = Fixed
		}
		if c.Full == "" {
			c.Full = Full503
		}
		s.Server.Capacity = &c
	}
	if s.Server.Protocol == "" {
		s.Server.Protocol = faults.HTTP1
	}
	if s.Server.Profile == "" {
		s.Server.Profile = Plain
	}
	s.Labels, s.Worlds, s.Storms = own(s.Labels), own(s.Worlds), own(s.Storms)
	s.Faults = own(s.Faults)
	if s.Draw != nil {
		s.Draw = &faults.Draw{P: s.Draw.P, Faults: own(s.Draw.Faults), Route: s.Draw.Route}
	}
	s.Calls = own(s.Calls)
	if len(s.Calls) == 0 {
		s.Calls = []Group{{}}
	}
	for i := range s.Calls {
		g := &s.Calls[i]
		if g.Name == "" {
			g.Name = defaultGroup(i)
		}
		if g.Method == "" {
			g.Method = DefaultMethod
		}
		if g.Path == "" {
			g.Path = DefaultPath
		}
		if g.Count == 0 {
			g.Count = 1
		}
		if g.Arrivals == "" {
			g.Arrivals = Even
		}
		if g.Deadline == 0 {
			g.Deadline = DefaultDeadline
		}
		if g.Body == "" && g.BodySize == 0 && hasBody(g.Method) {
			g.Body = DefaultBody
		}
		g.Faults = own(g.Faults)
		if len(g.Header) == 0 {
			g.Header = nil
		} else {
			g.Header = g.Header.Clone()
			maps.DeleteFunc(g.Header, func(_ string, lines []string) bool { return len(lines) == 0 })
		}
	}
	return s
}

// own copies a list, so that a validated scenario shares nothing with what it was made from.
func own[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return slices.Clone(list)
}

func defaultGroup(i int) string {
	if i == 0 {
		return "calls"
	}
	return "calls" + strconv.Itoa(i+1)
}

func hasBody(method string) bool {
	return method == http.MethodPost || method == http.MethodPut || method == http.MethodPatch
}

func (v *validator) head(s *Scenario) {
	switch {
	case s.Name == "":
		v.add("name", "there is no name")
	case len(s.Name) > 200:
		v.add("name", "the name is longer than 200 letters")
	case !scenarioName.MatchString(s.Name):
		v.add("name", "the name %q is not like family/words-of-the-name: letters, digits, '-' between them, one '/'", clip(s.Name))
	}
	for _, t := range []struct{ path, text string }{{"summary", s.Summary}, {"source", s.Source}, {"why", s.Why}} {
		if !utf8.ValidString(t.text) {
			v.add(t.path, "the text is no UTF-8")
		}
	}
	if s.Summary == "" {
		v.add("summary", "there is no summary: say in one sentence what happens and what a good client does")
	}
	switch {
	case s.Rule == "":
		v.add("rule", "there is no rule: name the check that the scenario is about, like effects.once")
	case !slices.Contains(RuleIDs(), s.Rule):
		v.near("rule", nearest.Word(s.Rule, RuleIDs()), "unknown rule %q; want %s", clip(s.Rule), oneOf(RuleIDs()))
	}
	if s.Source == "" {
		v.add("source", "there is no source: name the RFC section, draft, paper or thread that it is drawn from")
	}
	for i, l := range s.Labels {
		if !groupName.MatchString(l) {
			v.add(fmt.Sprintf("labels[%d]", i), "the label %q is no word of letters, digits, '-' and '_'", clip(l))
		}
		if slices.Index(s.Labels, l) < i {
			v.add(fmt.Sprintf("labels[%d]", i), "the label %s is here twice", clip(l))
		}
	}
	for i, w := range s.Worlds {
		p := fmt.Sprintf("worlds[%d]", i)
		if !slices.Contains(worlds(), string(w)) {
			v.near(p, nearest.Word(string(w), worlds()), "unknown world %q; want %s", clip(string(w)), oneOf(worlds()))
		}
		if slices.Index(s.Worlds, w) < i {
			v.add(p, "the world %s is here twice", clip(string(w)))
		}
	}
	switch {
	case len(s.Worlds) > 0 && s.Why == "":
		v.add("worlds", "worlds is set and why is not: say why it cannot run elsewhere, or take worlds out")
	case len(s.Worlds) == 0 && s.Why != "":
		v.add("why", "why is set and worlds is not: name the worlds, or take why out")
	}
	if t := string(s.Server.Token); t != "" && !slices.Contains(tokenModes(), t) {
		v.near("server.token", nearest.Word(t, tokenModes()), "unknown token mode %q; want %s", clip(t), oneOf(tokenModes()))
	}
	v.server(&s.Server)
	if !slices.Contains(protocols(), s.Server.Protocol) {
		v.near("server.protocol", nearest.Word(s.Server.Protocol, protocols()), "unknown protocol %q; want %s", clip(s.Server.Protocol), oneOf(protocols()))
	}
	if s.Connection != faults.AnyConn && !slices.Contains(connStates(), string(s.Connection)) {
		v.near("connection", nearest.Word(string(s.Connection), connStates()), "unknown connection %q; want %s", clip(string(s.Connection)), oneOf(connStates()))
	}
	v.duration("settle", s.Settle, maxSettle)
}

// duration checks a time that is not negative and not beyond most.
func (v *validator) duration(path string, d, most time.Duration) {
	switch {
	case d < 0:
		v.add(path, "the duration %s is negative", d)
	case d > most:
		v.add(path, "%s is more than %s, the most that a scenario can have here", durationText(d), durationText(most))
	}
}

func checkMethod(m string) (msg, near string) {
	if slices.Contains(Methods(), m) {
		return "", ""
	}
	near = nearest.Word(m, Methods())
	if m == "CONNECT" || m == "PRI" {
		return "the method " + m + " is no call of an application", ""
	}
	return fmt.Sprintf("unknown method %q: want a registered one, in capitals", clip(m)), near
}

func (v *validator) calls(s *Scenario) {
	total := 0
	names := map[string]bool{}
	for i := range s.Calls {
		g, p := &s.Calls[i], fmt.Sprintf("calls[%d].", i)
		if !groupName.MatchString(g.Name) {
			v.add(p+"name", "the name %q is no word of letters, digits, '-' and '_'", clip(g.Name))
		}
		if names[g.Name] {
			v.add(p+"name", "two groups have the name %s", clip(g.Name))
		}
		names[g.Name] = true
		if msg, near := checkMethod(g.Method); msg != "" {
			v.near(p+"method", near, "%s", msg)
		}
		v.path(p+"path", g.Path)
		v.resource(p+"resource", g.Resource)
		switch {
		case g.Count < 1:
			v.add(p+"count", "a count of %d makes no call: want 1 to %d", g.Count, maxCalls)
		case g.Count > maxCalls:
			v.add(p+"count", "a count of %d is more than %d, the most calls that a scenario can have", g.Count, maxCalls)
		default:
			if total += g.Count; total > maxCalls && total-g.Count <= maxCalls {
				v.add(p+"count", "the groups together make more than %d calls, the most that a scenario can have", maxCalls)
			}
		}
		v.keyText(p+"key_text", g)
		if g.KeyUntrusted && !g.Key {
			v.add(p+"key_untrusted", "key_untrusted says something of a key, and there is none: set key: true as well")
		}
		switch {
		case len(g.Body) > maxBody:
			v.add(p+"body", "the body is over 1 MiB")
		case !utf8.ValidString(g.Body):
			v.add(p+"body", "the body is no UTF-8, and a scenario holds text only")
		}
		switch {
		case g.BodySize == 0:
		case g.Body != "":
			v.add(p+"body_size", "body_size stands in place of a body: take one of them out")
		case g.BodySize < MinBodySize || g.BodySize > maxBodySize:
			v.add(p+"body_size", "a body of %s: want %d bytes to %s", faults.FormatSize(g.BodySize), MinBodySize, faults.FormatSize(maxBodySize))
		}
		v.header(p+"header", g.Header)
		if _, ok := g.Header["Expect"]; ok {
			v.expectField(p+"header.Expect", g)
		}
		v.times(g, p)
		if g.SameInstant && g.Every > 0 {
			v.add(p+"same_instant", "calls that start in the same instant cannot be %s apart: take every or same_instant out", durationText(g.Every))
		}
	}
	for i := range s.Calls {
		v.after(s, i)
	}
}

func (v *validator) times(g *Group, p string) {
	if g.Deadline != NoDeadline {
		v.duration(p+"deadline", g.Deadline, maxSpan)
	}
	v.duration(p+"cancel_after", g.CancelAfter, maxSpan)
	v.duration(p+"start", g.Start, maxSpan)
	v.duration(p+"every", g.Every, maxSpan)
	v.oneOf(p+"arrivals", "kind of arrivals", string(g.Arrivals), arrivals())
	if g.Arrivals == Poisson && g.Every == 0 {
		v.add(p+"arrivals", "poisson needs the mean distance between two calls: say every as well")
	}
	if g.Every > 0 && g.Every <= maxSpan && g.Count > 1 && g.Every > (maxSpan-min(g.Start, maxSpan))/time.Duration(g.Count-1) {
		v.add(p+"every", "with %d calls %s apart the last would start after more than %s", g.Count, durationText(g.Every), durationText(maxSpan))
	}
	if g.CancelAfter > 0 && g.Deadline > 0 && g.CancelAfter >= g.Deadline {
		v.add(p+"cancel_after", "the call is cancelled after %s and over by its deadline of %s: cancel earlier, or give a later deadline", durationText(g.CancelAfter), durationText(g.Deadline))
	}
}

func (v *validator) path(path, text string) {
	u, err := url.ParseRequestURI(strings.ReplaceAll(text, "{call}", "c1"))
	switch {
	case !strings.HasPrefix(text, "/"):
		v.add(path, "the path %q does not begin with '/'", clip(text))
	case strings.Count(text, "{call}") != 1:
		v.add(path, "the path %q must hold {call} once: it is how the server tells calls apart", clip(text))
	case err != nil || u.Path == "" || strings.ContainsAny(strings.ReplaceAll(text, "{call}", ""), "{}?#%\\\" ") || strings.HasPrefix(text, "//"):
		v.add(path, "the path %q is no plain path: want words with '/' between them, and {call}", clip(text))
	case len(text) > 1000:
		v.add(path, "the path is longer than 1000 letters")
	case strings.HasPrefix(text, "/_retrychaos"):
		v.add(path, "paths that begin with /_retrychaos are the server's own")
	case u.JoinPath().Path != u.Path:
		v.add(path, "the path %q is not clean: servers would read it as %q", clip(text), clip(u.JoinPath().Path))
	}
}

func (v *validator) resource(path, text string) {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) || len(text) > 1000 {
		v.add(path, "the resource must be a short text without control characters")
	}
}

func (v *validator) header(path string, h http.Header) {
	for _, name := range slices.Sorted(maps.Keys(h)) {
		p := path + "." + name
		switch {
		case !fieldToken.MatchString(name):
			v.add(p, "%q is no name of a header field", clip(name))
		case name != http.CanonicalHeaderKey(name):
			v.near(p, http.CanonicalHeaderKey(name), "the header field %q is not in canonical form", clip(name))
		case name == "Idempotency-Key" || name == "X-Idempotency-Key":
			v.add(p, "a key in the header would be the same for every call: set key: true")
		case slices.Contains([]string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Trailer", "Te", "Upgrade", "Keep-Alive"}, name):
			v.add(p, "%s belongs to the transport and cannot be set here", name)
		}
		for _, line := range h[name] {
			if strings.ContainsFunc(line, func(r rune) bool { return r < ' ' && r != '\t' || r >= 0x7f }) || strings.TrimSpace(line) != line {
				v.add(p, "the value %q cannot be sent as it is: want ASCII without control characters and outer spaces", clip(line))
			}
		}
	}
}

// after checks that a group waits for one that exists, and not in a circle.
func (v *validator) after(s *Scenario, i int) {
	g, p := &s.Calls[i], fmt.Sprintf("calls[%d].after", i)
	if g.After == "" {
		return
	}
	next := map[string]string{}
	names := make([]string, 0, len(s.Calls))
	for _, o := range s.Calls {
		next[o.Name] = o.After
		names = append(names, o.Name)
	}
	if _, ok := next[g.After]; !ok {
		v.near(p, nearest.Word(g.After, names), "there is no group %q to wait for: there is %s", clip(g.After), oneOf(names))
		return
	}
	at := g.After
	for range s.Calls {
		if at == g.Name {
			v.add(p, "the group %s waits for itself, and would never start", clip(g.Name))
			return
		}
		if at = next[at]; at == "" {
			return
		}
	}
}
