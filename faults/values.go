package faults

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/internal/nearest"
)

// word reads one of words.
func word(what string, v value, words ...string) (string, error) {
	if slices.Contains(words, v.text) {
		return v.text, nil
	}
	return "", nearError{fmt.Sprintf("unknown %s %.40q (one of: %s)", what, v.text, strings.Join(words, ", ")),
		nearest.Word(v.text, words)}
}

// number reads a decimal number without a sign.
func number(v value, least, most int) (int, error) {
	if v.text == "" || len(v.text) > 18 || strings.Trim(v.text, "0123456789") != "" {
		return 0, fmt.Errorf("want a number from %d to %d", least, most)
	}
	n, err := strconv.Atoi(v.text)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("want a number from %d to %d", least, most)
	}
	return n, nil
}

// statusCode reads a status that a fault may answer with.
func statusCode(text string) (int, error) {
	n, err := number(value{text: text}, 0, 999)
	switch {
	case err != nil || len(text) != 3:
		return 0, fmt.Errorf("%.40q is no status code: want 300 to 599", text)
	case n >= 200 && n < 300:
		return 0, nearError{fmt.Sprintf("%d is a good answer, not a fault: use ok", n), OK}
	case n < 200:
		return 0, fmt.Errorf("%d is no final answer (RFC 9110 §15.2): want 300 to 599", n)
	case n > 599:
		return 0, fmt.Errorf("%d is no status of HTTP (RFC 9110 §15): want 300 to 599", n)
	}
	return n, nil
}

// duration reads a Go duration without a sign.
func duration(v value, least, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(v.text)
	switch {
	case err != nil || strings.HasPrefix(v.text, "+"):
		e := nearError{msg: fmt.Sprintf("%.40q is no duration: want 200ms, 2s or 1m30s", v.text)}
		if _, err := strconv.ParseUint(v.text, 10, 32); err == nil {
			e.near = v.text + "s"
		}
		return 0, e
	case d < 0 || strings.HasPrefix(v.text, "-"):
		return 0, fmt.Errorf("%.40s is negative", v.text)
	case d < least:
		return 0, fmt.Errorf("%.40s is too short: %v at least", v.text, least)
	case d > most:
		return 0, fmt.Errorf("%.40s is too long: %s at most", v.text, fmtDuration(most))
	}
	return d, nil
}

// fmtDuration is Duration.String without its trailing zero units: 2m, not 2m0s.
func fmtDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// amount reads bytes ("10") or, with a point in it, a fraction ("0.5").
func amount(v value) (Amount, error) {
	whole, frac, isFraction := strings.Cut(v.text, ".")
	if !isFraction {
		n, err := number(v, 0, maxAmount)
		if err != nil {
			return Amount{}, fmt.Errorf("%.40q: want bytes (10, at most %d) or a fraction (0.5)", v.text, maxAmount)
		}
		return Amount{Set: true, Bytes: n}, nil
	}
	x, err := strconv.ParseFloat(v.text, 64)
	digits := whole + frac
	if err != nil || whole == "" || frac == "" || len(digits) > 30 ||
		strings.Trim(digits, "0123456789") != "" || x < 0 || x > 1 {
		return Amount{}, fmt.Errorf("%.40q: want a fraction from 0.0 to 1.0", v.text)
	}
	return Amount{Set: true, IsFraction: true, Fraction: x}, nil
}

// String returns the amount as after= has it.
func (a Amount) String() string {
	if !a.IsFraction {
		return strconv.Itoa(a.Bytes)
	}
	s := strconv.FormatFloat(a.Fraction, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// parseRetryAfter reads a delay, a date relative to now, or quoted text.
func parseRetryAfter(v value) (RetryAfter, error) {
	if v.quoted {
		switch {
		case len(v.text) > maxHeader:
			return RetryAfter{}, fmt.Errorf("a Retry-After of more than %d bytes", maxHeader)
		case !isFieldValue(v.text):
			return RetryAfter{}, errors.New("a Retry-After with a control character in it (RFC 9110 §5.5)")
		}
		return RetryAfter{Raw: v.text, IsRaw: true}, nil
	}
	r, text, sign := RetryAfter{}, v.text, time.Duration(1)
	for _, form := range []DateForm{IMF, RFC850, Asctime} {
		rest, ok := strings.CutPrefix(v.text, string(form))
		if !ok {
			continue
		}
		if rest == "" || rest[0] != '+' && rest[0] != '-' {
			return r, fmt.Errorf("%.40q: a date is written %s+5s or %s-10s, as far from the server's now", v.text, form, form)
		}
		if rest[0] == '-' {
			sign = -1
		}
		r.Form, text = form, rest[1:]
	}
	d, err := duration(value{text: text}, 0, maxRetryAfter)
	if err != nil {
		var near nearError
		if errors.As(err, &near) {
			return r, nearError{fmt.Sprintf("%.40q is no Retry-After: want a delay (2s), a date (imf+5s, rfc850+5s, asctime+5s) or quoted text", v.text), near.near}
		}
		return r, fmt.Errorf("%w (quote it to send the text as it is)", err)
	}
	if d%time.Second != 0 {
		return r, fmt.Errorf("%.40s: Retry-After has whole seconds (RFC 9110 §10.2.3)", v.text)
	}
	r.Delay = sign * d
	return r, nil
}

// String returns r as retry-after= has it.
func (r RetryAfter) String() string {
	switch {
	case r.IsRaw:
		return strconv.Quote(r.Raw)
	case r.Form == Seconds:
		return fmtDuration(r.Delay)
	case r.Delay < 0:
		return string(r.Form) + "-" + fmtDuration(-r.Delay)
	}
	return string(r.Form) + "+" + fmtDuration(r.Delay)
}

// isToken reports whether s is a token, which a field name has to be (RFC 9110 §5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return s != ""
}

// isFieldValue reports whether s can stand in a field line: no control characters but the tab
// (RFC 9110 §5.5).
func isFieldValue(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
