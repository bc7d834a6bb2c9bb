package controls

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retryAfter reads Retry-After by RFC 9110 §10.2.3: 1*DIGIT seconds, or a date in one of three forms. What
// is neither counts as absent, and so do several lines of a field that has one value.
func retryAfter(lines []string, now time.Time) (d time.Duration, ok bool) {
	if len(lines) != 1 {
		return 0, false
	}
	text := strings.Trim(lines[0], " \t")
	if isDigits(text) {
		seconds, err := strconv.ParseInt(text, 10, 64)
		if err != nil || seconds > math.MaxInt64/int64(time.Second)/2 {
			return math.MaxInt64 / 2, true // so long that its exact length does not matter
		}
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return 0, false
	}
	// A two-digit year that seems to be more than 50 years ahead is in the past (RFC 9110 §5.6.7).
	if strings.Contains(text, "-") && at.After(now.AddDate(50, 0, 0)) {
		at = at.AddDate(-100, 0, 0)
	}
	return max(0, at.Sub(now)), true
}

func isDigits(s string) bool {
	for _, r := range s {
		if r < '0' || r > '9' {
			return false
		}
	}
	return s != ""
}
