// Package check holds the rules. A check is a pure function from a run's history to a verdict; it has a
// stable id, an RFC 2119 level and the source of its rule. One file holds one rule and is named after it.
package check

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/retrychaos/retrychaos/harness/history"
)

// Level is the RFC 2119 word for how binding a rule is.
type Level string

const (
	Must   Level = "MUST"
	Should Level = "SHOULD"
	May    Level = "MAY"
)

// AtLeast reports whether l binds as strongly as floor or more.
func (l Level) AtLeast(floor Level) bool { return l.rank() >= floor.rank() }

func (l Level) rank() int {
	switch l {
	case Must:
		return 3
	case Should:
		return 2
	case May:
		return 1
	}
	return 0
}

// Status is the word of a verdict.
type Status string

const (
	Pass    Status = "pass"
	Fail    Status = "fail"
	Unknown Status = "unknown" // the check crashed or lacked data: never a pass
	Skipped Status = "skipped" // the rule does not apply here; the reason says why
)

// A Verdict is what one check says of one run.
type Verdict struct {
	Check    string   `json:"check"`
	Status   Status   `json:"status"`
	Level    Level    `json:"level"`
	Source   string   `json:"source,omitempty"`
	Reason   string   `json:"reason"`             // one sentence; always set
	Calls    []string `json:"calls,omitempty"`    // the calls that show it, worst first
	Evidence []string `json:"evidence,omitempty"` // further lines: numbers, positions
	Notes    []string `json:"notes,omitempty"`    // worth telling, not a finding
	// Known: the check failed, and was declared to. Status is then Skipped, and Reason says why it is accepted.
	Known bool `json:"known,omitempty"`
	// Waits is what timing.spread saw of the wave that it tells of, for a picture; nil in every other verdict.
	Waits *Waits `json:"waits,omitempty"`
}

// A Check is one rule.
type Check struct {
	ID     string // stable: reports and diffs use it
	Holds  string // when the rule holds, as a sentence
	Level  Level
	Source string // RFC section, draft or paper; "" for a rule of our own
	// Judge decides. It must not keep or change the history. Check, Level and Source of the verdict may
	// be left empty: they are filled in. A panic becomes an unknown verdict.
	Judge func(h *history.History) Verdict
}

// Judge applies checks to a history, in their order.
func Judge(h *history.History, checks []Check) []Verdict {
	out := make([]Verdict, 0, len(checks))
	for _, c := range checks {
		out = append(out, c.judge(h))
	}
	return out
}

func (c Check) judge(h *history.History) (v Verdict) {
	defer func() {
		if p := recover(); p != nil {
			v = Verdict{Status: Unknown, Reason: fmt.Sprintf("the check crashed: %v", p),
				Evidence: strings.Split(strings.TrimSpace(string(debug.Stack())), "\n")}
		}
		v.Check = c.ID
		if v.Level == "" {
			v.Level = c.Level
		}
		if v.Source == "" {
			v.Source = c.Source
		}
		if v.Status == "" {
			v.Status, v.Reason = Unknown, "the check gave no verdict"
		}
	}()
	if err := h.Validate(); err != nil {
		return unknown("the history is damaged: %v", err)
	}
	if len(h.Calls) == 0 {
		return unknown("the history holds no call")
	}
	return Excuse(h, c.Judge(h))
}

// Excuse turns a failure into unknown where the harness itself failed, in general or in every call that
// shows the failure: a fault of the harness is never the client's.
func Excuse(h *history.History, v Verdict) Verdict {
	if v.Status != Fail {
		return v
	}
	hit := make(map[string]string)
	for _, f := range h.Findings {
		if f.Kind == history.FindingHarness {
			hit[f.Call] = f.Text
		}
	}
	text, general := hit[""]
	if !general {
		if len(v.Calls) == 0 {
			return v
		}
		for _, id := range v.Calls {
			t, ok := hit[id]
			if !ok {
				return v
			}
			text = t
		}
	}
	v.Status = Unknown
	v.Reason = fmt.Sprintf("the harness failed (%s), so this proves nothing: %s", text, v.Reason)
	return v
}

// Lookup returns the built-in check with that id.
func Lookup(id string) (Check, bool) {
	all := All()
	i := slices.IndexFunc(all, func(c Check) bool { return c.ID == id })
	if i < 0 {
		return Check{}, false
	}
	return all[i], true
}
