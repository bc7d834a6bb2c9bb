package retry

import "time"

// remembered is how many seconds requests and accepts are counted for
// Budget.Throttle.
const remembered = 30

// A window counts the requests and accepts of the last half minute, by the
// second.
type window [remembered]second

type second struct {
	at                int64 // Unix time; the counts are those of this second only
	requests, accepts int64
}

// now returns the counts of the current second, to be added to.
func (m *window) now(t time.Time) *second {
	at := t.Unix()
	s := &m[(at%remembered+remembered)%remembered]
	if s.at != at {
		*s = second{at: at}
	}
	return s
}

// sum returns what the window holds.
func (m *window) sum(t time.Time) (requests, accepts int64) {
	at := t.Unix()
	for i := range m {
		if s := &m[i]; s.at > at-remembered && s.at <= at {
			requests, accepts = requests+s.requests, accepts+s.accepts
		}
	}
	return requests, accepts
}

// refuse counts a retry, and says by chance that it must not be made.
func (b *Bucket) refuse(random func(n int64) int64) *BudgetError {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := time.Now()
	requests, accepts := b.window.sum(t)
	b.window.now(t).requests++
	chance := (float64(requests) - b.budget.Throttle*float64(accepts)) / float64(requests+1)
	const fine = 1 << 30
	if chance > 0 && float64(random(fine)) < chance*fine {
		return &BudgetError{Chance: chance}
	}
	return nil
}
