package reports

import (
	"strings"
	"unicode"
)

// mdText escapes hostile text for a line or a table cell of Markdown: nothing of it becomes markup, HTML or
// the mention of a person.
func mdText(s string) string {
	var b strings.Builder
	var last rune
	s = strings.TrimSpace(plain(s))
	for i, r := range s {
		switch {
		case i == 0 && (r == '-' || r == '='), r == '.' && digits(s[:i]) && strings.HasPrefix(s[i:]+" ", ". "):
			b.WriteByte('\\') // at the start it would be a list or a rule
			b.WriteRune(r)
		case r == '<':
			b.WriteString("&lt;")
		case r == '>':
			b.WriteString("&gt;")
		case r == '&':
			b.WriteString("&amp;")
		case r == '@' && !unicode.IsLetter(last) && !unicode.IsDigit(last):
			b.WriteString("@&#8203;")
		case r == '#' && !unicode.IsLetter(last) && !unicode.IsDigit(last):
			b.WriteString("\\#&#8203;")
		case strings.ContainsRune("\\`*_{}[]()#+!|~$", r):
			b.WriteByte('\\')
			b.WriteRune(r)
		default:
			b.WriteRune(r)
		}
		last = r
	}
	return b.String()
}

// digits reports whether s is digits and nothing else.
func digits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

// mdSource writes where a rule comes from; an address becomes a link.
func mdSource(s string) string {
	if strings.HasPrefix(s, "https://") && !strings.ContainsAny(s, " <>") && plain(s) == s {
		return "<" + s + ">"
	}
	return mdText(s)
}

// mdCode puts hostile text into a code span. It is not for table cells, where a pipe would end it.
func mdCode(s string) string {
	s = plain(s)
	fence := strings.Repeat("`", longestRun(s, '`')+1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") || s == "" {
		s = " " + s + " "
	}
	return fence + s + fence
}

// mdBlock puts lines of hostile text into a block of code.
func mdBlock(language string, lines []string) string {
	most := 2
	shown := make([]string, len(lines))
	for i, l := range lines {
		shown[i] = visible(l)
		most = max(most, longestRun(l, '`'))
	}
	fence := strings.Repeat("`", most+1)
	return fence + language + "\n" + strings.Join(shown, "\n") + "\n" + fence + "\n"
}

func longestRun(s string, r rune) int {
	most, run := 0, 0
	for _, x := range s {
		if x != r {
			run = 0
			continue
		}
		run++
		most = max(most, run)
	}
	return most
}
