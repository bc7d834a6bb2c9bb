package retry

import (
	"net/http"
	"strings"
	"time"
)

// ParseRetryAfter returns how long the Retry-After field of h asks the client
// to wait (RFC 9110 §10.2.3): a number of seconds, or a date in one of the
// three forms of §5.6.7. A date is measured from the response's own Date,
// where there is one, so that a wrong clock on either side does no harm; else
// from now.
//
// ok is false when there is nothing to obey, which leaves the client to its
// own back-off: no field, a wait of zero, a date that has passed, a negative
// number, anything that cannot be parsed, or two fields that differ.
//
// It is liberal in one point: seconds may have a fraction, as some services
// send one. A number that is too large for a Duration becomes the largest
// Duration.
func ParseRetryAfter(h http.Header, now time.Time) (wait time.Duration, ok bool) {
	values := h.Values("Retry-After")
	if len(values) == 0 {
		return 0, false
	}
	value := strings.TrimSpace(values[0])
	for _, other := range values[1:] {
		if strings.TrimSpace(other) != value {
			return 0, false
		}
	}
	if wait, ok = parseSeconds(value); ok {
		return wait, wait > 0
	}
	if at, ok := parseDate(value, now); ok {
		if sent, ok := parseDate(strings.TrimSpace(h.Get("Date")), now); ok {
			now = sent
		}
		wait = at.Sub(now) // saturates
		return wait, wait > 0
	}
	return 0, false
}

// parseSeconds parses 1*DIGIT, optionally with a fraction. Fractions of a
// nanosecond are rounded up: the wait is a minimum.
func parseSeconds(s string) (time.Duration, bool) {
	whole, fraction, hasFraction := strings.Cut(s, ".")
	if !allDigits(whole) || hasFraction && !allDigits(fraction) {
		return 0, false
	}
	var d time.Duration
	for _, c := range []byte(whole) {
		d = addSaturating(mulSaturating(d, 10), time.Duration(c-'0')*time.Second)
	}
	unit := time.Second / 10
	for _, c := range []byte(fraction) {
		if unit == 0 {
			if c != '0' {
				d = addSaturating(d, 1)
				break
			}
			continue
		}
		d = addSaturating(d, time.Duration(c-'0')*unit)
		unit /= 10
	}
	return d, true
}

func allDigits(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}

// parseDate parses an HTTP-date: IMF-fixdate, or the obsolete forms of RFC 850
// and of asctime.
func parseDate(s string, now time.Time) (time.Time, bool) {
	// time.Parse takes any three letters for a zone and gives an unknown one
	// the offset zero, so the zone is checked here: it is always GMT.
	if t, err := time.Parse(http.TimeFormat, s); err == nil {
		return t, true
	}
	if t, err := time.Parse(time.ANSIC, s); err == nil {
		return t, true
	}
	if rest, found := strings.CutSuffix(s, " GMT"); found {
		if t, err := time.Parse("Monday, 02-Jan-06 15:04:05", rest); err == nil {
			return closestCentury(t, now), true
		}
	}
	return time.Time{}, false
}

// closestCentury gives t, whose year was written with two digits, the latest
// year that ends in them and is not more than 50 years in the future
// (RFC 9110 §5.6.7). Package time fixes the century at 1969–2068 instead.
func closestCentury(t, now time.Time) time.Time {
	limit := now.AddDate(50, 0, 0)
	for t.After(limit) {
		t = t.AddDate(-100, 0, 0)
	}
	for next := t.AddDate(100, 0, 0); !next.After(limit); next = t.AddDate(100, 0, 0) {
		t = next
	}
	return t
}
