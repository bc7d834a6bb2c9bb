package faults_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/retrychaos/retrychaos/harness/world"
)

// TestRetryAfterMeans compares what a fault says of its Retry-After with the book. It runs in virtual time,
// half a second past a whole one, because dates have whole seconds only.
func TestRetryAfterMeans(t *testing.T) {
	const half = 500 * time.Millisecond
	for _, tc := range []struct {
		params string
		line   string        // as sent, where it is fixed
		want   time.Duration // from the answer; 0: nothing is asked
	}{
		{"", "", 0},
		{"retry-after=0", "0", 0},
		{"retry-after=2s", "2", 2 * time.Second},
		{"retry-after=2m", "120", 120 * time.Second},
		{`retry-after=" 7 "`, "", 7 * time.Second},
		{`retry-after="007"`, "007", 7 * time.Second},
		{"retry-after=imf+5s", "Sat, 01 Jan 2000 00:00:06 GMT", 5*time.Second + half},
		{"retry-after=rfc850+5s", "Saturday, 01-Jan-00 00:00:06 GMT", 5*time.Second + half},
		{"retry-after=asctime+5s", "Sat Jan  1 00:00:06 2000", 5*time.Second + half},
		{"retry-after=imf-10s", "Fri, 31 Dec 1999 23:59:51 GMT", 0},
		{"retry-after=rfc850-10s", "Friday, 31-Dec-99 23:59:51 GMT", 0},
		{"retry-after=asctime-10s", "Fri Dec 31 23:59:51 1999", 0},
		{`retry-after="-1"`, "-1", 0},
		{`retry-after="1.5"`, "1.5", 0},
		{`retry-after="+1"`, "+1", 0},
		{`retry-after="soon"`, "soon", 0},
		{`retry-after=""`, "", 0},
		{`retry-after="2, 2"`, "2, 2", 0},
		{`retry-after="Saturday, 01-Jan-00 00:00:06 CET"`, "", 0},
		{`retry-after="Sat, 1 Jan 2000 00:00:06 GMT"`, "", 0},
		{`retry-after="9223372037"`, "9223372037", 9223372036*time.Second + 854775807}, // Sub ends there
		{`retry-after="99999999999999999999999"`, "", 9223372036*time.Second + 854775807},
		{"retry-after=2s retry-after=2s", "2", 2 * time.Second},
		{"retry-after=2s retry-after=3s", "2", 0},
		{`retry-after=2s retry-after="soon"`, "2", 0},
	} {
		t.Run(tc.params, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(half)
				r, stop := newRig(t, world.Memory(), parse(t, "429 "+tc.params))
				defer stop()
				c := r.dial()
				defer c.Close()
				r.exchange(c, rawRequest, patience)
				log := r.events()
				e := log[find(t, log, "answered")]
				if tc.line != "" && e.lines[0] != tc.line {
					t.Errorf("sent %q, want %q", e.lines[0], tc.line)
				}
				var got time.Duration
				if !e.notBefore.IsZero() {
					got = e.notBefore.Sub(e.now)
				}
				if got != tc.want {
					t.Errorf("%q: not before %v, want %v", e.lines, got, tc.want)
				}
			})
		})
	}
}
