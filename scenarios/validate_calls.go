package scenarios

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/internal/nearest"
)

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
