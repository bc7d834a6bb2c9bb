package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/retrychaos/retrychaos/harness/history"
)

// maxEvidence bounds the lines of evidence: a herd of a thousand breaches the rule a thousand times in the
// same way, and nobody reads the second screen.
const maxEvidence = 12

func pass(format string, args ...any) Verdict {
	return Verdict{Status: Pass, Reason: fmt.Sprintf(format, args...)}
}

func fail(format string, args ...any) Verdict {
	return Verdict{Status: Fail, Reason: fmt.Sprintf(format, args...)}
}

func unknown(format string, args ...any) Verdict {
	return Verdict{Status: Unknown, Reason: fmt.Sprintf(format, args...)}
}

func skipped(format string, args ...any) Verdict {
	return Verdict{Status: Skipped, Reason: fmt.Sprintf(format, args...)}
}

// A breach is one way in which one call breaks a rule.
type breach struct {
	call   string
	weight float64 // the worse the greater
	text   string  // a clause that names the call
}

// breaches collects what is wrong over a run.
type breaches []breach

func (b *breaches) add(c *history.Call, weight float64, format string, args ...any) {
	*b = append(*b, breach{c.ID, weight, fmt.Sprintf(format, args...)})
}

// fail makes the verdict: the worst breach is the reason, all of them are the evidence.
func (b breaches) fail() Verdict {
	b = slices.Clone(b)
	slices.SortStableFunc(b, func(x, y breach) int {
		if d := cmp.Compare(y.weight, x.weight); d != 0 {
			return d
		}
		return cmp.Compare(x.call, y.call)
	})
	v := Verdict{Status: Fail, Reason: b[0].text}
	seen := make(map[string]bool)
	for _, x := range b {
		if !seen[x.call] {
			seen[x.call] = true
			v.Calls = append(v.Calls, x.call)
		}
	}
	if n := len(v.Calls) - 1; n > 0 {
		v.Reason += fmt.Sprintf("; and %s", plural(n, "further call"))
	}
	if len(b) > 1 {
		for i, x := range b {
			if i == maxEvidence {
				v.Evidence = append(v.Evidence, fmt.Sprintf("and %d more", len(b)-i))
				break
			}
			v.Evidence = append(v.Evidence, x.text)
		}
	}
	return v
}

// plural writes a count with its noun.
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// was agrees with a count.
func was(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

// dur writes a duration for people.
func dur(d time.Duration) string { return history.Dur(d) }

// capNotes keeps the notes of a herd readable.
func capNotes(notes []string) []string {
	if len(notes) <= maxEvidence {
		return notes
	}
	return append(notes[:maxEvidence:maxEvidence], fmt.Sprintf("and %d more", len(notes)-maxEvidence))
}

// licensed reports whether the client may repeat the call's non-idempotent request after an attempt: the
// application asked for a key, knows the server to honour it, and the attempt carried one.
func licensed(c *history.Call, a *history.Attempt) bool {
	return c.Keyed && c.KeyHonoured && a.Key != ""
}

// tooLate is how late the harness may be for its own timers, or a client's process for its pings, before calls that
// have not returned say nothing of the client any more.
const tooLate = time.Second

// excusable reports whether a call has not returned only because the machine was that late: its instant had not
// passed by more than slack when the harness gave it up.
func excusable(h *history.History, c *history.Call, instant time.Duration) bool {
	return !c.Returned && h.Lateness > tooLate && max(c.Ended, h.End) <= instant+slack(h)
}

// slack is how much later than an instant of its own a client may be seen to end. In the virtual world it is
// the grain. On a real clock it is a quarter of a second, which a process of its own needs to be killed and
// reaped, and twice what the harness's own timers were late, so that a busy machine is nobody's fault.
func slack(h *history.History) time.Duration {
	if h.World == "virtual" && !h.Declared.Outside() {
		return h.Grain
	}
	return h.Grain + 250*time.Millisecond + 2*h.Lateness
}
