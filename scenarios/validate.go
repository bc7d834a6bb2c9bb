package scenarios

import (
	"fmt"
	"maps"
	"net/http"
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
