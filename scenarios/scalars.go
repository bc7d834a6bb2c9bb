package scenarios

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v4"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/internal/nearest"
)

// word decodes a text that must be one of list.
func (d *decoder) word(n *yaml.Node, path, what string, list []string) string {
	text, ok := d.text(n, path)
	if !ok {
		return ""
	}
	for _, w := range list {
		if w == text {
			return text
		}
	}
	d.fail(n, path, nearest.Word(text, list), "unknown %s %q; want %s", what, clip(text), oneOf(list))
	return ""
}

func (r *ruleID) decode(d *decoder, n *yaml.Node, path string) {
	*r = ruleID(d.word(n, path, "rule", RuleIDs()))
}

func (w *world) decode(d *decoder, n *yaml.Node, path string) {
	*w = world(d.word(n, path, "world", worlds()))
}

func (c *connState) decode(d *decoder, n *yaml.Node, path string) {
	*c = connState(d.word(n, path, "connection", connStates()))
}

func (k *keyMode) decode(d *decoder, n *yaml.Node, path string) {
	*k = keyMode(d.word(n, path, "key mode", keyModes()))
}

func (p *protocol) decode(d *decoder, n *yaml.Node, path string) {
	*p = protocol(d.word(n, path, "protocol", protocols()))
}

func (t *tokenMode) decode(d *decoder, n *yaml.Node, path string) {
	*t = tokenMode(d.word(n, path, "token mode", tokenModes()))
}

func (s *size) decode(d *decoder, n *yaml.Node, path string) {
	if n.Kind == yaml.ScalarNode && (n.ShortTag() == "!!str" || n.ShortTag() == "!!int") {
		if i, err := faults.ParseSize(n.Value); err == nil {
			*s = size(i)
			return
		}
	}
	d.fail(n, path, "", "want bytes like 1000, 64KiB or 4MiB, not %s", kindOf(n))
}

func (p *keyProfile) decode(d *decoder, n *yaml.Node, path string) {
	*p = keyProfile(d.word(n, path, "profile", profiles()))
}

func (t *trait) decode(d *decoder, n *yaml.Node, path string) {
	*t = trait(d.word(n, path, "trait", Traits()))
}

func (m *method) decode(d *decoder, n *yaml.Node, path string) {
	text, ok := d.text(n, path)
	if !ok {
		return
	}
	if msg, near := checkMethod(text); msg != "" {
		d.fail(n, path, near, "%s", msg)
		return
	}
	*m = method(text)
}

// integer decodes a whole number in decimal.
func (d *decoder) integer(n *yaml.Node, path string) (int, bool) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!int" {
		if i, err := strconv.Atoi(n.Value); err == nil {
			return i, true
		}
	}
	d.fail(n, path, "", "want a whole number, not %s", kindOf(n))
	return 0, false
}

func (c *count) decode(d *decoder, n *yaml.Node, path string) {
	i, ok := d.integer(n, path)
	if ok && i < 1 {
		d.fail(n, path, "", "a count of %d makes no call: want 1 to %d", i, maxCalls)
		return
	}
	*c = count(i)
}

func (s *status) decode(d *decoder, n *yaml.Node, path string) {
	i, _ := d.integer(n, path)
	*s = status(i)
}

func (v *duration) decode(d *decoder, n *yaml.Node, path string) {
	*v = duration(d.duration(n, path))
}

func (v *deadline) decode(d *decoder, n *yaml.Node, path string) {
	if n.Kind == yaml.ScalarNode && n.Value == "none" {
		*v = deadline(NoDeadline)
		return
	}
	t := d.duration(n, path)
	if t == 0 && !d.bad[path] {
		d.fail(n, path, "", "a deadline of 0 leaves no time at all: give a duration like 30s, or none")
	}
	*v = deadline(t)
}

func (d *decoder) duration(n *yaml.Node, path string) time.Duration {
	if n.Kind != yaml.ScalarNode {
		d.fail(n, path, "", "want a duration like 250ms or 2m, not %s", kindOf(n))
		return 0
	}
	t, err := time.ParseDuration(n.Value)
	switch {
	case err != nil && (n.ShortTag() == "!!int" || n.ShortTag() == "!!float"):
		d.fail(n, path, clip(n.Value)+"s", "the duration %s has no unit", clip(n.Value))
	case err != nil:
		d.fail(n, path, "", "%q is no duration: write it like 250ms, 2s or 1h30m", clip(n.Value))
	case t < 0:
		d.fail(n, path, "", "the duration %s is negative", clip(n.Value))
	default:
		return t
	}
	return 0
}

func (s *span) decode(d *decoder, n *yaml.Node, path string) {
	lo, hi, isRange := strings.Cut(n.Value, "..")
	if !isRange {
		hi = lo
	}
	ok := n.Kind == yaml.ScalarNode && (lo != "" || hi != "")
	read := func(text string) *int {
		if text == "" {
			return nil
		}
		i, err := strconv.Atoi(text)
		if err != nil || i < 0 || text[0] == '+' {
			ok = false
		}
		return &i
	}
	v := span{read(lo), read(hi)}
	if !ok {
		d.fail(n, path, "", "want a number or a range like 2, 2..4, 2.. or ..4, not %s", kindOf(n))
		return
	}
	*s = v
}

func (h *header) decode(d *decoder, n *yaml.Node, path string) {
	if n.Kind != yaml.MappingNode {
		d.fail(n, path, "", "want a mapping from field name to value, not %s", kindOf(n))
		return
	}
	out := http.Header{}
	for _, kv := range d.pairs(n, path) {
		name := http.CanonicalHeaderKey(kv.key.Value)
		p := join(path, name)
		d.pos[p] = kv.key
		lines := []*yaml.Node{kv.value}
		if kv.value.Kind == yaml.SequenceNode {
			lines = kv.value.Content
		}
		for _, l := range lines {
			if text, ok := d.text(l, p); ok {
				out[name] = append(out[name], text)
			}
		}
	}
	if len(out) > 0 {
		*h = header(out)
	}
}

func (f *fault) decode(d *decoder, n *yaml.Node, path string) {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" && n.ShortTag() != "!!int" {
		d.fail(n, path, "", "want a fault like \"503\" or connection_reset@after_commit, not %s", kindOf(n))
		return
	}
	v, err := faults.Parse(n.Value)
	if err == nil {
		*f = fault(v)
		return
	}
	d.bad[path] = true
	var syntax *faults.SyntaxError
	if !errors.As(err, &syntax) {
		d.add(n.Line, n.Column, err.Error(), "")
		return
	}
	d.add(n.Line, d.file.column(n, syntax.Col), syntax.Msg, syntax.Near)
}

// column gives the column in the file of a column inside a scalar, which quotes and escapes may move.
func (s *source) column(n *yaml.Node, col int) int {
	if s.moved[n] || n.Line < 1 || n.Line > len(s.lines) || col < 1 {
		return n.Column
	}
	if s.runesOf != n.Line { // many problems can stand on one long line
		s.runes, s.runesOf = []rune(s.lines[n.Line-1]), n.Line
	}
	raw := s.runes
	at := n.Column - 1
	if at < 0 || at >= len(raw) {
		return n.Column
	}
	quote := raw[at]
	switch n.Style &^ yaml.FlowStyle {
	case yaml.DoubleQuotedStyle, yaml.SingleQuotedStyle:
		at++
	case 0:
		quote = 0
	default: // a block scalar starts on a later line
		return n.Column
	}
	for range col - 1 {
		switch {
		case at >= len(raw):
			return n.Column
		case quote == '\'' && raw[at] == '\'':
			at += 2
		case quote == '"' && raw[at] == '\\' && at+1 < len(raw):
			at += 2 + map[rune]int{'x': 2, 'u': 4, 'U': 8}[raw[at+1]]
		default:
			at++
		}
	}
	if at > len(raw) {
		return n.Column
	}
	return at + 1
}

func connStates() []string { return []string{string(faults.Fresh), string(faults.Reused)} }

// durationText writes a duration without the zero units that time.Duration.String adds.
func durationText(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

func spanText(s span) string {
	show := func(i *int) string {
		if i == nil {
			return ""
		}
		return strconv.Itoa(*i)
	}
	if s.min != nil && s.max != nil && *s.min == *s.max {
		return show(s.min)
	}
	return fmt.Sprintf("%s..%s", show(s.min), show(s.max))
}
