package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/retrychaos/retrychaos/harness/history"
)

// A key names one operation. One that changes with the attempt protects nothing
// (woocommerce/woocommerce-square#106), and one that two calls share makes the second vanish. Keys that a
// client sends although nobody asked are held to the same. A key that the application gives is the call's, in
// the one or the other form, and two calls that it gives one key share it by its will.
var keyStable = Check{
	ID:     "key.stable",
	Holds:  "all attempts of a call carry one idempotency key, and no two calls share one",
	Level:  Must,
	Source: "draft-ietf-httpapi-idempotency-key-header §2.2",
	Judge:  judgeKeyStable,
}

func judgeKeyStable(h *history.History) Verdict {
	var bad breaches
	var notes []string
	judged, asked := 0, 0
	owner := make(map[string]*history.Call)
	for _, c := range h.Calls {
		if c.Keyed {
			asked++
		}
		var keys []string
		lacking, n := 0, len(c.Attempts)
		for _, a := range c.Attempts {
			switch {
			case a.Key == "" && a.Connection:
				n-- // with a transport of the client's own nothing is known of the request
			case a.Key == "":
				lacking++
			case !slices.Contains(keys, a.Key):
				keys = append(keys, a.Key)
			}
		}
		for _, k := range keys {
			switch o := owner[k]; {
			case o == nil:
				owner[k] = c
			case o != c && (c.KeyText == "" || c.KeyText != o.KeyText):
				bad.add(c, 20, "calls %s and %s share the key %q", o.ID, c.ID, k)
			}
		}
		switch {
		case n == 0:
			continue
		case len(keys) == 0 && c.Keyed && history.IdempotentMethod(c.Method):
			notes = append(notes, fmt.Sprintf("call %s (%s) carried no key; its method needs none", c.ID, c.Method))
			continue
		case len(keys) == 0 && c.Keyed:
			bad.add(c, 10, "call %s carried no key in %s, though the application asked for one", c.ID, plural(n, "attempt"))
		case len(keys) == 0:
			continue
		case len(keys) > 1:
			bad.add(c, 10+float64(len(keys)), "call %s carried %d keys in %d attempts: %s", c.ID, len(keys), n, strings.Join(keys[:min(len(keys), 4)], ", "))
		case c.KeyText != "" && !isKey(keys[0], c.KeyText):
			bad.add(c, 15, "call %s carried the key %s, and not %q, which the application had given it", c.ID, keys[0], c.KeyText)
		case lacking > 0:
			bad.add(c, 9, "call %s carried its key in only %d of %d attempts", c.ID, n-lacking, n)
		}
		judged++
	}
	var v Verdict
	switch {
	case len(bad) > 0:
		v = bad.fail()
	case judged > 0:
		v = pass("%s, each with one key of its own in all its attempts", plural(judged, "call"))
	case asked == 0:
		return skipped("no call asked for a key, and none carried one")
	default:
		v = skipped("no attempt needed a key")
	}
	v.Notes = capNotes(notes)
	return v
}

// isKey reports whether wire is the key that the application gave, bare or as a structured-field string
// (RFC 9651 §4.1.6).
func isKey(wire, text string) bool {
	return wire == text || wire == `"`+strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text)+`"`
}
