package faults

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// ParseSequence reads the bracketed form, one fault for each attempt:
//
//	["503", "429 retry-after=2s", "connection_reset@after_commit", "ok"]
//
// An entry is a string in double quotes (Go's and JSON's), in single quotes (YAML's, where two quotes are
// one), or bare where it holds neither quote, comma nor bracket. After the last entry the server answers
// well. The column of a *SyntaxError counts from the start of the whole text.
func ParseSequence(text string) ([]Fault, error) {
	fs, bad := parseSequence(text)
	if bad != nil {
		return nil, syntaxError(text, bad)
	}
	return fs, nil
}

// FormatSequence writes faults in the form that ParseSequence reads.
func FormatSequence(fs []Fault) string {
	parts := make([]string, len(fs))
	for i, f := range fs {
		parts[i] = strconv.Quote(f.String())
	}
	return "[" + strings.Join(parts, ", ") + "]"
}

func parseSequence(text string) ([]Fault, *failure) {
	if len(text) > 4*maxText {
		return nil, fail(0, "", "a sequence of more than %d bytes", 4*maxText)
	}
	p := parser{text: text}
	p.space()
	if !p.skip('[') {
		return nil, fail(p.pos, "", `a sequence starts with "[": ["503", "ok"]`)
	}
	var fs []Fault
	p.space()
	for !p.skip(']') {
		if len(fs) > 0 {
			if !p.skip(',') {
				return nil, fail(p.pos, "", `want "," or "]" after an entry`)
			}
			p.space()
			if p.skip(']') { // as in YAML, a comma may stand behind the last entry
				break
			}
		}
		if n := len(fs); n == maxSequence {
			return nil, fail(p.pos, "", "a sequence of more than %d entries", maxSequence)
		} else if n > 0 && fs[n-1].Times == Forever {
			return nil, fail(p.pos, "", "no attempt gets here: the entry before is times=forever")
		}
		f, bad := p.element()
		if bad != nil {
			return nil, bad
		}
		fs = append(fs, f)
		p.space()
	}
	p.space()
	if p.pos < len(text) {
		return nil, fail(p.pos, "", "text after the sequence")
	}
	return fs, nil
}

// element reads one entry of a sequence and the fault in it.
func (p *parser) element() (Fault, *failure) {
	start := p.pos
	rest := p.text[start:]
	var inner string
	var offset func(i int) int // from the entry's text to p.text
	switch {
	case rest == "":
		return Fault{}, fail(start, "", `the sequence does not end: "]" is missing`)
	case rest[0] == '"':
		quoted, err := strconv.QuotedPrefix(rest)
		if err == nil {
			inner, err = strconv.Unquote(quoted)
		}
		if err != nil {
			return Fault{}, fail(start, "", "the string does not end, or holds an escape that Go does not know")
		}
		p.pos += len(quoted)
		offset = func(i int) int { return start + 1 + escapedLen(quoted[1:], i) }
	case rest[0] == '\'':
		n := 1
		for ; n < len(rest); n++ {
			if rest[n] == '\'' {
				if n+1 == len(rest) || rest[n+1] != '\'' {
					break
				}
				n++
			}
		}
		if n >= len(rest) {
			return Fault{}, fail(start, "", "the string does not end")
		}
		raw := rest[1:n]
		inner = strings.ReplaceAll(raw, "''", "'")
		p.pos += n + 1
		offset = func(i int) int { return start + 1 + i + strings.Count(inner[:i], "'") }
	default:
		inner = strings.TrimRight(p.until(`,]["'`), " \t\r\n")
		if inner == "" {
			return Fault{}, fail(start, "", "an entry is missing")
		}
		offset = func(i int) int { return start + i }
	}
	q := parser{text: inner, at: map[string]int{}}
	f, bad := q.fault()
	if bad != nil {
		bad.off = min(offset(bad.off), len(p.text))
	}
	return f, bad
}

// escapedLen returns how many bytes of the Go string s (without its first quote) make the first n bytes of
// its value.
func escapedLen(s string, n int) int {
	rest := s
	for n > 0 {
		r, multibyte, tail, err := strconv.UnquoteChar(rest, '"')
		if err != nil {
			break
		}
		rest = tail
		if multibyte {
			n -= utf8.RuneLen(r)
		} else {
			n--
		}
	}
	return len(s) - len(rest)
}

func (p *parser) space() {
	for p.pos < len(p.text) && strings.IndexByte(" \t\r\n", p.text[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *parser) skip(c byte) bool {
	if p.pos < len(p.text) && p.text[p.pos] == c {
		p.pos++
		return true
	}
	return false
}
