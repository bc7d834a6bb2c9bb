package reports

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
)

// verdictChange is what the verdicts of two results differ in.
type verdictChange struct {
	broken, fixed  bool
	unknown, known bool
	level          check.Level // the most binding that changed
	timed          bool        // every change is of a kind that a late machine can make
	flips          []flip
	words          []string
	worst          *check.Verdict // of the new result, or of the old where the new has none that fails
}

// flip is one verdict that changed.
type flip struct {
	check    string
	from, to check.Status
	level    check.Level // of the side that fails, or of the new one
	sort     int
	text     string
}

// Kinds of flips, the worst first.
const (
	sortBroken = iota
	sortUnknown
	sortFixed
	sortOther
)

// rank puts the flips into order, the worst first, and tells them.
func (v *verdictChange) rank() {
	slices.SortStableFunc(v.flips, func(a, b flip) int { return cmp.Or(a.sort-b.sort, rank(b.level)-rank(a.level)) })
	for i, f := range v.flips {
		if i == 0 {
			v.level = f.level
		}
		v.words = append(v.words, f.text)
	}
}

// tooLate is a lateness of the harness's own timers that can turn a verdict about time.
const tooLate = 100 * time.Millisecond

func compareVerdicts(x pair, level check.Level) verdictChange {
	var v verdictChange
	a, b := StatusAt(x.old, level), StatusAt(x.new, level)
	if a != b && (len(x.old.Verdicts) == 0 || len(x.new.Verdicts) == 0) {
		text := fmt.Sprintf("%s → %s", a, b)
		if (b == check.Skipped || b == check.Unknown) && x.new.Reason != "" {
			text += ": " + x.new.Reason
		}
		v.words = append(v.words, text)
	}
	timed := true
	for _, id := range checkIDs(x) {
		timed = v.verdict(x, id, level) && timed
	}
	v.rank()
	if v.findings(x); x.new.World == "virtual" && len(v.words) > len(v.flips) {
		timed = false
	}
	if !v.broken && !v.fixed && !v.unknown && !v.known && a != b && len(v.flips) == 0 {
		// What no verdict explains: a whole result that was not run, or was for the first time.
		switch {
		case b == check.Fail:
			v.broken = true
		case b == check.Unknown, b == check.Skipped && a != check.Unknown:
			v.unknown = true
		case a == check.Fail:
			v.fixed = true
		default:
			v.known = true
		}
	}
	if b == check.Skipped && a != check.Skipped && len(x.new.Verdicts) == 0 {
		v.broken, v.fixed, v.unknown = false, false, true // not run: nothing is fixed by that
	}
	v.timed = timed && len(v.words) > 0
	if a != b && len(v.words) == 0 {
		v.words = append(v.words, fmt.Sprintf("%s → %s", a, b))
	}
	return v
}

// checkIDs lists the checks that judged either result, in the order of the new one.
func checkIDs(x pair) []string {
	var ids []string
	for _, r := range []*harness.Result{x.new, x.old} {
		for _, v := range r.Verdicts {
			if !slices.Contains(ids, v.Check) {
				ids = append(ids, v.Check)
			}
		}
	}
	return ids
}

// verdictOf is the worst verdict of a check: one that is not built in may have several.
func verdictOf(r *harness.Result, id string) *check.Verdict {
	var worst *check.Verdict
	for i := range r.Verdicts {
		v := &r.Verdicts[i]
		if v.Check == id && (worst == nil || severity(v.Status) > severity(worst.Status)) {
			worst = v
		}
	}
	return worst
}

// verdict compares the verdicts of one check. It reports false if they differ and no lateness
// of a machine can turn the rule.
func (v *verdictChange) verdict(x pair, id string, level check.Level) bool {
	a, b := verdictOf(x.old, id), verdictOf(x.new, id)
	var from, to check.Status
	var binding check.Level
	if a != nil {
		from, binding = a.Status, a.Level
	}
	if b != nil {
		to = b.Status
		if a == nil || from != check.Fail {
			binding = b.Level
		}
	}
	from, to = effective(a, from), effective(b, to)
	undecided := func(s check.Status) bool { return s == check.Unknown }
	relevant := from != to && (from == check.Fail || to == check.Fail || undecided(from) || undecided(to) || from == known || to == known)
	if !relevant {
		return true
	}
	newRule := a == nil && len(x.old.Verdicts) > 0
	oldRule := b == nil && len(x.new.Verdicts) > 0
	counts := binding.AtLeast(level)
	sort := sortOther
	text := fmt.Sprintf("%s (%s): %s → %s", id, binding, word(from), word(to))
	switch {
	case from == known && to == check.Fail, to == known:
		text += ": " + b.Reason // accepted, or no longer: no more than that
	case to == check.Fail:
		sort = sortBroken
		text += ": " + b.Reason
		v.worst = b
		if newRule {
			text += " (the old report was not judged by this rule: recheck it)"
		}
		if counts {
			v.broken = v.broken || !newRule
			v.unknown = v.unknown || newRule
		}
	case undecided(to):
		sort = sortUnknown
		text += ": " + b.Reason
		v.unknown = v.unknown || counts
	case oldRule:
		text += " (the new report was not judged by this rule)"
		v.unknown = v.unknown || counts && from == check.Fail
	case from == check.Fail, from == known:
		sort = sortFixed
		if b != nil {
			text += ": " + b.Reason
		}
		if v.worst == nil {
			v.worst = a
		}
		v.fixed = v.fixed || counts && b != nil
	default:
		v.known = v.known || counts
	}
	v.flips = append(v.flips, flip{id, from, to, binding, sort, text})
	switch id {
	case "effects.once", "effects.no-phantom", "key.stable", "body.intact", "attempts.permanent-once", "attempts.unsafe-not-repeated":
		return false
	}
	return true
}

// known is the status of a failure that is declared.
const known check.Status = "known to fail"

func effective(v *check.Verdict, s check.Status) check.Status {
	if v != nil && v.Known {
		return known
	}
	return s
}

func word(s check.Status) string {
	if s == "" {
		return "not judged"
	}
	return string(s)
}

// findings compares what the harness found of itself.
func (v *verdictChange) findings(x pair) {
	count := func(r *harness.Result) map[string]int {
		n := map[string]int{}
		for _, f := range r.Findings {
			n[f.Kind]++
		}
		return n
	}
	a, b := count(x.old), count(x.new)
	for _, f := range x.new.Findings {
		if a[f.Kind] == 0 {
			v.unknown = true
			v.words = append(v.words, "the harness found: "+f.Kind+": "+f.Text)
			a[f.Kind] = 1
		}
	}
	for _, f := range x.old.Findings {
		if b[f.Kind] == 0 {
			v.known = true
			v.words = append(v.words, "the harness no longer finds: "+f.Kind+": "+f.Text)
			b[f.Kind] = 1
		}
	}
}

// call is the one that shows the worst verdict, if both histories have it.
func (v *verdictChange) call(x pair) string {
	if v.worst == nil || x.old.History == nil || x.new.History == nil {
		return ""
	}
	for _, id := range v.worst.Calls {
		if x.old.History.Call(id) != nil && x.new.History.Call(id) != nil {
			return id
		}
	}
	return ""
}

// chances learns which verdicts of a client go both ways by chance, and returns a function that tells whether all
// that changed in a pair does.
func chances(list []*compared) func(*compared) bool {
	type kinds struct {
		seen  [2][3]bool // in either report: failed, undecided, neither
		moved [3][3]int  // from, to
	}
	kind := func(s check.Status) int {
		switch s {
		case check.Fail:
			return 0
		case check.Unknown:
			return 1
		}
		return 2
	}
	all := map[string]*kinds{}
	at := func(id string) *kinds {
		if all[id] == nil {
			all[id] = new(kinds)
		}
		return all[id]
	}
	for _, d := range list {
		for side, r := range d.sides() {
			for _, v := range r.Verdicts {
				if !d.draws && !d.lottery(v.Check) {
					continue
				}
				at(v.Check).seen[side][kind(v.Status)] = true
			}
		}
		for _, f := range d.verdicts.flips {
			if !d.draws && !f.reuse() && !d.lottery(f.check) {
				continue
			}
			at(f.check).moved[kind(f.from)][kind(f.to)]++
		}
	}
	return func(d *compared) bool {
		for _, f := range d.verdicts.flips {
			k, from, to := at(f.check), kind(f.from), kind(f.to)
			p := signTest(k.moved[from][to], k.moved[to][from])
			mixed := k.seen[0][from] && k.seen[0][to] && k.seen[1][from] && k.seen[1][to]
			switch {
			case (f.reuse() || d.lottery(f.check)) && p > raceAlpha:
			case d.lottery(f.check) && mixed && p > chanceAlpha:
			case !d.draws:
				return false
			case f.from != check.Fail && f.to != check.Fail && (f.check == "timing.spread" || f.from == check.Skipped || f.to == check.Skipped):
				// too few waits to judge, or none: no verdict that counts
			case !mixed || p <= chanceAlpha:
				return false
			}
		}
		return len(d.verdicts.flips) > 0
	}
}

// lottery reports whether a verdict may depend on a draw that comes seldom, and the client has drawn so often that
// it came: two waits in a row of next to nothing, say.
func (d *compared) lottery(id string) bool {
	return d.many && (id == "timing.backoff-grows" || id == "timing.retry-after")
}

// reuse reports whether it is about a connection that was not used again. Whether a body that was closed unread
// leaves its connection fit for use is a race inside net/http.
func (f flip) reuse() bool { return f.check == "resources.released" && f.level == check.Should }

// chanceAlpha is the p-value from which on changes for the worse and for the better are no chance.
const chanceAlpha = 1e-3

// raceAlpha is the same for what is a race whoever the client is, and for draws that come seldom: 6 to 0.
const raceAlpha = 0.05

// signTest is the two-sided p-value of so many signs of either kind, where both are as likely.
func signTest(a, b int) float64 {
	n, least := a+b, min(a, b)
	term, sum := math.Pow(0.5, float64(n)), 0.0
	for k := 0; k <= least; k++ {
		sum += term
		term *= float64(n-k) / float64(k+1)
	}
	return min(1, 2*sum)
}
