package reports

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/width"
)

// maxText is the longest single text of a client that a page or a terminal gets to see. The JSON has all.
const maxText = 2000

// plain makes hostile text safe to show on one line anywhere (see visible), and cuts it where it is too long.
func plain(s string) string {
	if len(s) <= maxText {
		return visible(s)
	}
	n := maxText
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%s… (%d more bytes)", visible(s[:n]), len(s)-n)
}

// visible turns control characters, escape sequences, invisible and direction-changing characters and bytes
// that are not UTF-8 into escapes that can be seen, and a tab into blanks.
func visible(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case r == '\t':
			b.WriteString("    ")
		case unicode.IsPrint(r):
			b.WriteRune(r)
		default:
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		}
		i += n
	}
	return b.String()
}

// bare reports whether a shell takes a word as it is.
func bare(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("-_./:,@%+", r))
	}) < 0
}

// ShellQuote quotes a word for a POSIX shell where it needs it. Control characters are written in the $'…' form, so that the
// word stays on one line and can be shown and pasted.
func ShellQuote(s string) string {
	if bare(s) {
		return s
	}
	if strings.IndexFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 && utf8.ValidString(s) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	var b strings.Builder
	b.WriteString("$'")
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case unicode.IsPrint(r) && !(r == utf8.RuneError && n == 1):
			b.WriteRune(r)
		default:
			for _, c := range []byte(s[i : i+n]) {
				fmt.Fprintf(&b, `\%03o`, c)
			}
		}
		i += n
	}
	return b.String() + "'"
}

// shellWord quotes only where a shell would need it.
func shellWord(s string) string {
	safe := func(r rune) bool {
		return r < utf8.RuneSelf && (unicode.IsLetter(r) || unicode.IsDigit(r)) || strings.ContainsRune("_-./+:=@%,", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !safe(r) }) < 0 {
		return s
	}
	return ShellQuote(s)
}

// columns is how many terminal cells a text takes that plain has passed.
func columns(s string) int {
	n := 0
	for _, r := range s {
		switch k := width.LookupRune(r).Kind(); {
		case unicode.Is(unicode.Mn, r):
		case k == width.EastAsianWide || k == width.EastAsianFullwidth:
			n += 2
		default:
			n++
		}
	}
	return n
}

// pad fills a text with blanks up to so many cells.
func pad(s string, cells int) string {
	return s + strings.Repeat(" ", max(0, cells-columns(s)))
}

// clip cuts a text to so many cells.
func clip(s string, cells int) string {
	if columns(s) <= cells {
		return s
	}
	n, end := 0, 0
	for i, r := range s {
		if n += columns(string(r)); n > cells-1 {
			break
		}
		end = i + utf8.RuneLen(r)
	}
	return s[:end] + "…"
}

// wrap breaks a text between words into lines of at most so many cells. A longer word keeps a line of its own.
func wrap(s string, cells int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case line == "":
			line = word
		case columns(line)+1+columns(word) <= cells:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	if line != "" || len(lines) == 0 {
		lines = append(lines, line)
	}
	return lines
}

// span writes a duration for people: three digits are enough to compare by eye.
func span(d time.Duration) string {
	switch abs := d.Abs(); {
	case abs >= time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	case abs >= time.Minute:
		return d.Round(time.Second).String()
	case abs >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case abs >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.String()
}

// count writes "1 scenario", "2 scenarios".
func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
