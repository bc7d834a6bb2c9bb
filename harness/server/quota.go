package server

import (
	"time"
)

// A window is the one that a quota is in: windows follow each other from the start of the run.
type window struct {
	n    time.Duration // its number, from 0
	used int
}

// quota decides about an attempt on route that claims f at now: whether it is within the quota that the calls
// of the route share and, if not, how long it is until the next window. Who comes first is served first.
// Callers hold mu.
func (s *Server) quota(route string, k *strike, now time.Duration) (within bool, wait time.Duration) {
	f, key := &k.fault, route+" "+k.text
	w := s.quotas[key]
	if w == nil {
		w = &window{}
		s.quotas[key] = w
	}
	if n := now / f.Window; n != w.n {
		*w = window{n: n}
	}
	if w.used < f.Quota {
		w.used++
		return true, 0
	}
	return false, (w.n+1)*f.Window - now
}
