package serve

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/history"
	"github.com/retrychaos/retrychaos/internal/nearest"
	"github.com/retrychaos/retrychaos/scenarios"
)

const (
	// maxScenarioBody is a file of scenarios and what stands around it.
	maxScenarioBody = 1<<20 + 64<<10
	maxOutcomeBody  = 4 << 20
	// maxMillis bounds a number of milliseconds, at a day, as scenarios are.
	maxMillis = 24 * 60 * 60 * 1000
)

// bodyName is what the loader calls the body in its messages.
const bodyName = "body"

// order is a request for a run, understood.
type order struct {
	scenario scenarios.Scenario
	seed     uint64
	client   declared
	exact    bool
}

// declared is what a test says of its client.
type declared struct {
	Name           string         `json:"name,omitempty"`
	MaxAttempts    int            `json:"max_attempts,omitempty"`
	Jitter         history.Jitter `json:"jitter,omitempty"`
	JitterWidth    millis         `json:"jitter_width_ms,omitempty"`
	JitterRatio    float64        `json:"jitter_ratio,omitempty"`
	BaseDelay      millis         `json:"base_delay_ms,omitempty"`
	Multiplier     float64        `json:"multiplier,omitempty"`
	MaxDelay       millis         `json:"max_delay_ms,omitempty"`
	MaxRetryAfter  millis         `json:"max_retry_after_ms,omitempty"`
	CapsRetryAfter bool           `json:"caps_retry_after,omitempty"`
	CanBeTold      bool           `json:"can_be_told,omitempty"`
}

// millis is a time in milliseconds, with a fraction if need be.
type millis float64

func (m millis) duration() time.Duration {
	return time.Duration(float64(m) * float64(time.Millisecond))
}

func inMillis(d time.Duration) millis { return millis(float64(d) / float64(time.Millisecond)) }

var jitters = []string{string(history.JitterNone), string(history.JitterFull), string(history.JitterEqual),
	string(history.JitterDecorrelated), string(history.JitterAdditive), string(history.JitterProportional)}

func (d declared) validate() *problem {
	for _, f := range []struct {
		name  string
		value float64
		most  float64
	}{
		{"max_attempts", float64(d.MaxAttempts), 1e6}, {"jitter_width_ms", float64(d.JitterWidth), maxMillis},
		{"jitter_ratio", d.JitterRatio, 2}, {"base_delay_ms", float64(d.BaseDelay), maxMillis}, {"multiplier", d.Multiplier, 1e3},
		{"max_delay_ms", float64(d.MaxDelay), maxMillis}, {"max_retry_after_ms", float64(d.MaxRetryAfter), maxMillis},
	} {
		if f.value < 0 || f.value > f.most {
			return invalidRequest.because("client.%s is %v: it lies between 0 and %v", f.name, f.value, f.most)
		}
	}
	if d.Jitter != "" && !slices.Contains(jitters, string(d.Jitter)) {
		return invalidRequest.because("client.jitter is %q: it is one of %s%s", clip(string(d.Jitter)), strings.Join(jitters, ", "), nearest.Hint(string(d.Jitter), jitters))
	}
	if len(d.Name) > 200 {
		return invalidRequest.because("client.name has more than 200 bytes")
	}
	return nil
}

func (d declared) history() history.Declared {
	return history.Declared{MaxAttempts: d.MaxAttempts, Jitter: d.Jitter, JitterWidth: d.JitterWidth.duration(), JitterRatio: d.JitterRatio,
		BaseDelay: d.BaseDelay.duration(), Multiplier: d.Multiplier, MaxDelay: d.MaxDelay.duration(),
		MaxRetryAfter: d.MaxRetryAfter.duration(), CapsRetryAfter: d.CapsRetryAfter, CanBeTold: d.CanBeTold}
}

// readBody reads the body of a request and says in which form it is.
func readBody(w http.ResponseWriter, r *http.Request, most int64, forms ...string) (body []byte, form string, err error) {
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch media {
	case "application/json":
		form = "json"
	case "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml":
		form = "yaml"
	}
	if err != nil || !slices.Contains(forms, form) {
		want := "application/" + strings.Join(forms, " or application/")
		return nil, "", mediaType.because("Content-Type is %q: say %s (with curl: -H 'Content-Type: application/%s' --data-binary @FILE)",
			clip(r.Header.Get("Content-Type")), want, forms[0])
	}
	body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, most))
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return nil, "", tooLarge.because("the body has more than %d bytes", big.Limit)
	case err != nil:
		return nil, "", badRequest.because("the body broke off: %v", err)
	}
	return body, form, nil
}

// readOrder understands a request for a run: a file of scenarios in YAML or JSON, or an object that names one or
// holds one.
func readOrder(w http.ResponseWriter, r *http.Request) (order, error) {
	var o order
	body, form, err := readBody(w, r, maxScenarioBody, "yaml", "json")
	if err != nil {
		return o, err
	}
	q := r.URL.Query()
	for name := range q {
		if name != "select" && name != "seed" {
			return o, badRequest.because("there is no query parameter %q%s", clip(name), nearest.Hint(name, []string{"select", "seed"}))
		}
	}
	pick := q.Get("select")
	if text := q.Get("seed"); text != "" {
		if o.seed, err = strconv.ParseUint(text, 10, 64); err != nil || o.seed == 0 {
			return o, badRequest.because("seed is %q: a seed is a number from 1 on", clip(text))
		}
	}
	file := body
	if form == "json" {
		var in struct {
			Library  string      `json:"library"`
			Scenario positioned  `json:"scenario"`
			Select   string      `json:"select"`
			Seed     json.Number `json:"seed"`
			Client   declared    `json:"client"`
			Exact    bool        `json:"exact"`
		}
		members, p := object(body)
		if p != nil {
			return o, p
		}
		if _, isFile := members["scenarios"]; !isFile {
			if p := decode(body, members, &in); p != nil {
				return o, p
			}
			if p := in.Client.validate(); p != nil {
				return o, p
			}
			o.client, o.exact = in.Client, in.Exact
			if in.Seed != "" {
				if o.seed, err = strconv.ParseUint(in.Seed.String(), 10, 64); err != nil || o.seed == 0 {
					return o, invalidRequest.because("seed is %s: a seed is a whole number from 1 on", clip(in.Seed.String()))
				}
			}
			if in.Select != "" {
				pick = in.Select
			}
			switch {
			case in.Library != "" && in.Scenario != nil:
				return o, invalidRequest.because("library and scenario are both there: give one of the two")
			case in.Library != "":
				if pick != "" {
					return o, invalidRequest.because("select picks one of the scenarios in the body, and library names one already")
				}
				o.scenario, err = fromLibrary(in.Library)
				return o, err
			case in.Scenario == nil:
				return o, invalidRequest.because(`there is no scenario: name one of the library, like {"library": "recovery/one-hang"}, or send one as the body or as scenario`)
			}
			at := members["scenario"]
			if file = at.in(body); at.text() {
				// A YAML file as a text: its lines are its own.
				var text string
				if err := json.Unmarshal(at.raw, &text); err != nil {
					return o, badRequest.because("scenario: %v", err)
				}
				file = []byte(text)
			}
		}
	}
	o.scenario, err = fromFile(file, pick)
	return o, err
}

// fromFile loads a file of scenarios and takes the one that is named, or the only one.
func fromFile(file []byte, pick string) (scenarios.Scenario, error) {
	list, err := scenarios.Load(bodyName, file)
	var le *scenarios.LoadError
	switch {
	case errors.As(err, &le):
		return scenarios.Scenario{}, badScenario(le)
	case err != nil:
		return scenarios.Scenario{}, badRequest.because("%v", err)
	}
	var names []string
	for _, s := range list {
		if s.Name == pick {
			return s, nil
		}
		names = append(names, s.Name)
	}
	switch {
	case pick != "":
		return scenarios.Scenario{}, invalidRequest.because("select: there is no scenario %q in the body%s", clip(pick), nearest.Hint(pick, names))
	case len(list) > 1:
		return scenarios.Scenario{}, invalidRequest.because("the body has %d scenarios and a run is of one: name it with select, like ?select=%s", len(list), names[0])
	}
	return list[0], nil
}

func fromLibrary(name string) (scenarios.Scenario, error) {
	list, err := scenarios.Library()
	if err != nil {
		return scenarios.Scenario{}, err
	}
	names := make([]string, 0, len(list))
	for _, s := range list {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return scenarios.Scenario{}, invalidRequest.because("library: there is no scenario %q%s; GET /scenarios lists them", clip(name), nearest.Hint(name, names))
}

// fit says why a scenario cannot be served, or nil.
func (h *Handler) fit(s scenarios.Scenario) *problem {
	if why := harness.Unstaged(s); why != "" {
		return unservable.because("%s: %s", s.Name, why)
	}
	n, size := 0, int64(0)
	for _, g := range s.Calls {
		n += g.Count
		size += int64(g.Count) * int64(len(g.Payload()))
	}
	if size > h.cfg.MaxBytes {
		return unservable.because("the calls of %s have bodies of %s together, and a run receives %s at most here", s.Name, faults.FormatSize(int(size)), faults.FormatSize(int(h.cfg.MaxBytes)))
	}
	if n > h.cfg.MaxCalls {
		return unservable.because("%s has %d calls, and a run has %d at most here", s.Name, n, h.cfg.MaxCalls)
	}
	return nil
}
