package faults

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Line returns the text of the field line, sent at now. A date is rounded up to the whole second, so that it
// asks for no less than Delay.
func (r RetryAfter) Line(now time.Time) string {
	if r.IsRaw {
		return r.Raw
	}
	if r.Form == Seconds {
		return strconv.FormatInt(int64(r.Delay/time.Second), 10)
	}
	t := now.Add(r.Delay).UTC()
	if t.Nanosecond() > 0 {
		t = t.Truncate(time.Second).Add(time.Second)
	}
	switch r.Form {
	case RFC850:
		return t.Format("Monday, 02-Jan-06 15:04:05 GMT")
	case Asctime:
		return t.Format(time.ANSIC)
	}
	return t.Format(http.TimeFormat)
}

// farthest is how many seconds a Retry-After is taken to mean at most, some 3000 years: more digits than an
// int64 holds are still digits.
const farthest = 100_000_000_000

// notBefore returns the earliest instant at which lines, sent at now, allow the next attempt (RFC 9110
// §10.2.3): delta-seconds in digits only, or a date in one of the three forms of §5.6.7. The zero time where
// they ask for no wait: none, invalid, 0, a date that has passed, or lines that differ, because the field is
// a single value and no rule says which one counts.
func notBefore(lines []string, now time.Time) time.Time {
	if len(lines) == 0 {
		return time.Time{}
	}
	text := strings.Trim(lines[0], " \t")
	for _, l := range lines[1:] {
		if strings.Trim(l, " \t") != text {
			return time.Time{}
		}
	}
	if text != "" && strings.Trim(text, "0123456789") == "" {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n > farthest {
			n = farthest
		}
		if n == 0 {
			return time.Time{}
		}
		return time.Unix(now.Unix()+n, int64(now.Nanosecond()))
	}
	t, err := http.ParseTime(text)
	// The layout of RFC 850 takes any zone, HTTP has only GMT.
	if err != nil || strings.Contains(text, "-") && !strings.HasSuffix(text, " GMT") || !t.After(now) {
		return time.Time{}
	}
	return t
}
