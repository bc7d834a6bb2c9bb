package retry_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/retrychaos/retrychaos/retry"
)

func TestParseRetryAfter(t *testing.T) {
	now := time.Date(2024, time.March, 5, 12, 0, 0, 0, time.UTC) // a Tuesday
	const most = time.Duration(1<<63 - 1)
	for _, tt := range []struct {
		values []string
		date   string
		want   time.Duration // 0: nothing to obey
	}{
		{[]string{"2"}, "", 2 * time.Second},
		{[]string{" 2\t"}, "", 2 * time.Second},
		{[]string{"002"}, "", 2 * time.Second},
		{[]string{"120"}, "", 2 * time.Minute},
		{[]string{"1.5"}, "", 1500 * time.Millisecond},
		{[]string{"0.0000000001"}, "", 1},
		{[]string{"9223372037"}, "", most},
		{[]string{"99999999999999999999999999.5"}, "", most},
		{[]string{"2", "2"}, "", 2 * time.Second},
		{[]string{"Tue, 05 Mar 2024 12:00:10 GMT"}, "", 10 * time.Second},
		{[]string{"Tuesday, 05-Mar-24 12:00:10 GMT"}, "", 10 * time.Second},
		{[]string{"Tue Mar  5 12:00:10 2024"}, "", 10 * time.Second},
		// 50 years ahead at most; package time would take 69 for 1969.
		{[]string{"Tuesday, 05-Mar-69 12:00:00 GMT"}, "", now.AddDate(45, 0, 0).Sub(now)},
		{[]string{"Tuesday, 05-Mar-74 12:00:00 GMT"}, "", now.AddDate(50, 0, 0).Sub(now)},
		{[]string{"Tuesday, 05-Mar-75 12:00:00 GMT"}, "", 0}, // 1975
		{[]string{"Tue, 05 Mar 2024 12:00:10 GMT"}, "Tue, 05 Mar 2024 12:00:07 GMT", 3 * time.Second},
		{[]string{"Tue, 05 Mar 2024 12:00:10 GMT"}, "garbage", 10 * time.Second},
		{[]string{"Fri, 01 Jan 9999 00:00:00 GMT"}, "", most},

		{nil, "", 0},
		{[]string{""}, "", 0},
		{[]string{"0"}, "", 0},
		{[]string{"0.0"}, "", 0},
		{[]string{"-1"}, "", 0},
		{[]string{"+1"}, "", 0},
		{[]string{"1."}, "", 0},
		{[]string{".5"}, "", 0},
		{[]string{"1e3"}, "", 0},
		{[]string{"1,5"}, "", 0},
		{[]string{"2, 3"}, "", 0},
		{[]string{"2", "3"}, "", 0},
		{[]string{"soon"}, "", 0},
		{[]string{"٣"}, "", 0},
		{[]string{"Tue, 05 Mar 2024 11:59:00 GMT"}, "", 0},
		{[]string{"Tue, 05 Mar 2024 12:00:00 GMT"}, "", 0},
		{[]string{"Tue, 05 Mar 2024 12:00:10 EST"}, "", 0},
		{[]string{"Tue, 05 Mar 2024 12:00:10"}, "", 0},
		{[]string{"2024-03-05T12:00:10Z"}, "", 0},
	} {
		h := http.Header{}
		for _, v := range tt.values {
			h.Add("Retry-After", v)
		}
		if tt.date != "" {
			h.Set("Date", tt.date)
		}
		got, ok := retry.ParseRetryAfter(h, now)
		if ok != (tt.want > 0) || ok && got != tt.want {
			t.Errorf("%q, Date %q: %v, %v, want %v", tt.values, tt.date, got, ok, tt.want)
		}
	}
	// Just after the turn of a century, a year of the next.
	now = time.Date(2099, time.December, 31, 0, 0, 0, 0, time.UTC)
	h := http.Header{"Retry-After": {"Friday, 01-Jan-00 00:00:00 GMT"}}
	if got, _ := retry.ParseRetryAfter(h, now); got != 24*time.Hour {
		t.Errorf("in 2099: %v", got)
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, seed := range []string{
		"", "0", "2", "120", "-1", "1.5", ".", "9223372037", "99999999999999999999", "1e9", "2, 2", "soon",
		"Tue, 05 Mar 2024 12:00:10 GMT", "Tuesday, 05-Mar-24 12:00:10 GMT", "Tue Mar  5 12:00:10 2024",
		"Monday, 29-Feb-00 12:00:10 GMT", "Fri, 01 Jan 9999 00:00:00 GMT", "Fri, 01 Jan 0000 00:00:00 GMT",
	} {
		f.Add(seed, "", int64(0))
		f.Add(seed, seed, int64(1<<40))
	}
	f.Fuzz(func(t *testing.T, value, date string, unix int64) {
		h := http.Header{"Retry-After": {value}, "Date": {date}}
		wait, ok := retry.ParseRetryAfter(h, time.Unix(unix, 0))
		if ok && wait <= 0 || !ok && wait > 0 {
			t.Errorf("%q, %q: %v, %v", value, date, wait, ok)
		}
		if again, _ := retry.ParseRetryAfter(h, time.Unix(unix, 0)); again != wait {
			t.Errorf("%q: %v, then %v", value, wait, again)
		}
		h.Add("Retry-After", value+"1")
		if _, ok := retry.ParseRetryAfter(h, time.Unix(unix, 0)); ok {
			t.Errorf("two values obeyed: %q", h)
		}
	})
}
