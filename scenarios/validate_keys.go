package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/internal/nearest"
)

// maxExpiry bounds how long a server can be told to keep keys.
const maxExpiry = 365 * 24 * time.Hour

// maxKeyText bounds a key that the application gives: what Stripe takes.
const maxKeyText = 255

// server validates how the server keeps keys.
func (v *validator) server(s *Server) {
	if !slices.Contains(keyModes(), string(s.Keys)) {
		v.near("server.keys", nearest.Word(string(s.Keys), keyModes()), "unknown key mode %q; want %s", clip(string(s.Keys)), oneOf(keyModes()))
	}
	if !slices.Contains(profiles(), string(s.Profile)) {
		v.near("server.profile", nearest.Word(string(s.Profile), profiles()), "unknown profile %q; want %s", clip(string(s.Profile)), oneOf(profiles()))
	}
	v.duration("server.expiry", s.Expiry, maxExpiry)
	if s.Keys != Ignore {
		return
	}
	if s.Profile != Plain {
		v.add("server.profile", "the server ignores keys, so that it keeps none by any book: take profile out, or set keys: honour")
	}
	if s.Expiry > 0 {
		v.add("server.expiry", "the server ignores keys, so that it keeps none for any time: take expiry out, or set keys: honour")
	}
}

// keyText validates a key that the application gives.
func (v *validator) keyText(path string, g *Group) {
	text := g.KeyText
	switch {
	case text == "":
	case !g.Key:
		v.add(path, "key_text is the text of a key, and there is none: set key: true as well")
	case len(text) > maxKeyText:
		v.add(path, "the key is longer than %d characters, the most that servers take", maxKeyText)
	case strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) || strings.TrimSpace(text) != text:
		v.add(path, "the key %q is no text of visible ASCII, which is all that a key can hold (RFC 9651 §3.3.3)", clip(text))
	case strings.Count(text, "{call}") > 1:
		v.add(path, "the key %q holds {call} more than once", clip(text))
	case g.Count > 1 && !strings.Contains(text, "{call}"):
		v.add(path, "the %d calls of the group would share the key %q: put {call} into it", g.Count, clip(text))
	}
}

// storedIn does for a sequence what stored does for one fault.
func (v *validator) storedIn(path string, list []faults.Fault, keyed bool, s *Scenario) {
	for i, f := range list {
		if f.Stored {
			v.stored(fmt.Sprintf("%s[%d]", path, i), f, keyed, s)
		}
	}
}

// stored makes sure that an answer that is to be stored with a key has a key and a store.
func (v *validator) stored(path string, f faults.Fault, keyed bool, s *Scenario) {
	switch {
	case !f.Stored:
	case s.Server.Keys == Ignore:
		v.add(path, "stored=true says that the answer is kept with its key, and the server ignores keys: take it out, or set keys: honour")
	case !keyed:
		v.add(path, "stored=true says that the answer is kept with its key, and the calls have none: set key: true")
	}
}
