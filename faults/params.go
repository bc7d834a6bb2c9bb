package faults

import (
	"errors"
	"fmt"
	"net/http"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/internal/nearest"
)

// Kind is how the value of a parameter is written.
type Kind string

const (
	KindCode       Kind = "status code"
	KindDuration   Kind = "duration"    // 200ms, 2s, 1m30s
	KindAmount     Kind = "amount"      // 10 (bytes) or 0.5 (fraction)
	KindWord       Kind = "word"        // one of Values
	KindCount      Kind = "count"       // 3, or forever
	KindText       Kind = "text"        // "double quoted", or bare where it has no space
	KindHeader     Kind = "header"      // "Name: value"
	KindRetryAfter Kind = "retry-after" // 2s, imf+5s, rfc850+5s, asctime+5s, or quoted text
	KindNumber     Kind = "number"      // 3
	KindSize       Kind = "size"        // bytes: 1000, 64KiB, 4MiB
	KindRate       Kind = "rate"        // bytes per second: 1000, 64KiB
)

// Bounds on what a text may ask for: enough for every test, too little to hurt whoever loads it.
const (
	maxText       = 256 << 10
	maxDelay      = 24 * time.Hour
	maxRetryAfter = 10 * 365 * 24 * time.Hour
	maxBody       = 64 << 10
	maxHeader     = 8 << 10
	maxHeaders    = 64
	maxTimes      = 10_000
	maxAmount     = 1 << 30
	maxSequence   = 10_000
	maxSize       = 64 << 20
)

// A Param is one parameter of an entry.
type Param struct {
	Name       string   `json:"name"`
	Kind       Kind     `json:"kind"`
	Doc        string   `json:"doc"`
	Values     []string `json:"values,omitempty"` // the words allowed, for KindWord
	Default    string   `json:"default,omitempty"`
	Required   bool     `json:"required,omitempty"`
	Repeatable bool     `json:"repeatable,omitempty"`

	axis   bool   // each of its words is a combination of its own; see Combinations
	sample string // a value for Combinations, where a default would not do
	// set reads a value into f; get writes f's value as text, nothing where it is the default.
	set func(f *Fault, v value) error
	get func(f Fault) []string
	// fill puts the default into f where the text said nothing.
	fill func(f *Fault)
}

// value is the text of a parameter's value.
type value struct {
	text   string
	quoted bool
}

// nearError is a refused value with the word that was perhaps meant.
type nearError struct {
	msg  string
	near string
}

func (e nearError) Error() string { return e.msg }

// CommonParams returns the parameters that faults share: on, times, and late (with commit_late only).
func CommonParams() []Param { return []Param{onParam(), timesParam(), lateParam()} }

func onParam() Param {
	return Param{Name: "on", Kind: KindWord, Values: []string{string(Fresh), string(Reused)},
		Doc: "only on a connection that has carried no request yet, or only on one that has",
		set: func(f *Fault, v value) error {
			w, err := word("connection state", v, string(Fresh), string(Reused))
			f.On = ConnState(w)
			return err
		},
		get: func(f Fault) []string { return one(string(f.On)) },
	}
}

func timesParam() Param {
	return Param{Name: "times", Kind: KindCount, Default: "1",
		Doc: "how many attempts of a sequence it takes; forever for all the rest",
		set: func(f *Fault, v value) error {
			if v.text == "forever" {
				f.Times = Forever
				return nil
			}
			n, err := number(v, 1, maxTimes)
			if err != nil {
				return nearError{fmt.Sprintf("times=%.40s: %v, or forever", v.text, err), nearest.Word(v.text, []string{"forever"})}
			}
			if f.Times = n; n == 1 {
				f.Times = 0
			}
			return nil
		},
		get: func(f Fault) []string {
			switch f.Times {
			case 0, 1:
				return nil
			case Forever:
				return []string{"forever"}
			}
			return []string{strconv.Itoa(f.Times)}
		},
	}
}

func lateParam() Param {
	return Param{Name: "late", Kind: KindDuration, Default: fmtDuration(DefaultLate),
		Doc: "with commit_late: how long after the wire effect (and after the client has gone, where it blocks) the commit comes",
		set: func(f *Fault, v value) (err error) {
			f.Late, err = duration(v, time.Nanosecond, maxDelay)
			return err
		},
		get: func(f Fault) []string {
			if f.Late == 0 || f.Phase == CommitLate && f.Late == DefaultLate {
				return nil
			}
			return []string{fmtDuration(f.Late)}
		},
		fill: func(f *Fault) {
			if f.Phase == CommitLate && f.Late == 0 {
				f.Late = DefaultLate
			}
		},
	}
}

// delayParam is a duration; least is the shortest allowed.
func delayParam(doc string, least time.Duration) Param {
	return Param{Name: "delay", Kind: KindDuration, Doc: doc, sample: "200ms",
		set: func(f *Fault, v value) (err error) {
			f.Delay, err = duration(v, least, maxDelay)
			return err
		},
		get: func(f Fault) []string {
			if f.Delay == 0 {
				return nil
			}
			return []string{fmtDuration(f.Delay)}
		},
	}
}

// sentFirst is after= of the faults that break off inside the answer's body.
const sentFirst = "how much of the body goes out first: bytes (10) or a fraction (0.5); one byte at least stays back"

func afterParam(def, doc string) Param {
	return Param{Name: "after", Kind: KindAmount, Default: def, Doc: doc,
		set: func(f *Fault, v value) (err error) {
			f.After, err = amount(v)
			return err
		},
		get: func(f Fault) []string {
			if !f.After.Set {
				return nil
			}
			return []string{f.After.String()}
		},
	}
}

// endParam is how the connection is left; def says which end is meant where the text names none.
func endParam(def func(f Fault) End, defDoc string, ends ...End) Param {
	words := make([]string, len(ends))
	for i, e := range ends {
		words[i] = string(e)
	}
	return Param{Name: "end", Kind: KindWord, Values: words, Default: defDoc,
		Doc: "how the connection is left",
		set: func(f *Fault, v value) error {
			w, err := word("end", v, words...)
			f.End = End(w)
			return err
		},
		get: func(f Fault) []string {
			if f.End == def(f) {
				return nil
			}
			return one(string(f.End))
		},
		fill: func(f *Fault) {
			if f.End == "" {
				f.End = def(*f)
			}
		},
	}
}

func variantParam(doc, def string, names ...string) Param {
	return Param{Name: "variant", Kind: KindWord, Values: names, Default: def, Doc: doc,
		set: func(f *Fault, v value) (err error) {
			f.Variant, err = word("variant", v, names...)
			return err
		},
		get: func(f Fault) []string { return one(f.Variant) },
		fill: func(f *Fault) {
			if f.Variant == "" {
				f.Variant = def
			}
		},
	}
}

func retryAfterParam() Param {
	return Param{Name: "retry-after", Kind: KindRetryAfter, Repeatable: true,
		Doc: `a Retry-After line: 2s (delta-seconds), imf+5s, rfc850+5s or asctime-10s (a date so far from the server's now), or "raw text"`,
		set: func(f *Fault, v value) error {
			if len(f.RetryAfter) >= maxHeaders {
				return fmt.Errorf("more than %d Retry-After lines", maxHeaders)
			}
			r, err := parseRetryAfter(v)
			f.RetryAfter = append(f.RetryAfter, r)
			return err
		},
		get: func(f Fault) (out []string) {
			for _, r := range f.RetryAfter {
				out = append(out, r.String())
			}
			return out
		},
	}
}

func headerParam() Param {
	return Param{Name: "header", Kind: KindHeader, Repeatable: true, Doc: `a further header line: "X-Foo: bar"`,
		set: func(f *Fault, v value) error {
			name, val, ok := strings.Cut(v.text, ":")
			val = textproto.TrimString(val)
			switch {
			case !ok:
				return errors.New(`a header is written "Name: value"`)
			case !isToken(name):
				return fmt.Errorf("%.40q is no field name (RFC 9110 §5.1)", name)
			case !isFieldValue(val):
				return fmt.Errorf("the value of %.40s holds a control character (RFC 9110 §5.5)", name)
			case len(name)+len(val) > maxHeader:
				return fmt.Errorf("a header line of more than %d bytes", maxHeader)
			}
			name = http.CanonicalHeaderKey(name)
			switch name {
			case "Retry-After":
				return errors.New("Retry-After is written retry-after=")
			case "Content-Length", "Transfer-Encoding", "Trailer":
				return fmt.Errorf("%s would change the framing, which is not what status does", name)
			}
			if f.Header == nil {
				f.Header = http.Header{}
			}
			n := 0
			for _, vv := range f.Header {
				n += len(vv)
			}
			if n >= maxHeaders {
				return fmt.Errorf("more than %d header lines", maxHeaders)
			}
			f.Header[name] = append(f.Header[name], val)
			return nil
		},
		get: func(f Fault) (out []string) {
			names := make([]string, 0, len(f.Header))
			for k := range f.Header {
				names = append(names, k)
			}
			slices.Sort(names)
			for _, k := range names {
				for _, v := range f.Header[k] {
					out = append(out, strconv.Quote(k+": "+v))
				}
			}
			return out
		},
	}
}

func bodyParam(def string) Param {
	return Param{Name: "body", Kind: KindText, Default: def, Doc: "the body sent",
		set: func(f *Fault, v value) error {
			if len(v.text) > maxBody {
				return fmt.Errorf("a body of more than %d bytes", maxBody)
			}
			f.Body, f.HasBody = v.text, true
			return nil
		},
		get: func(f Fault) []string {
			if f.Body == "" && !f.HasBody {
				return nil
			}
			return []string{strconv.Quote(f.Body)}
		},
		fill: func(f *Fault) { f.HasBody = f.HasBody || f.Body != "" },
	}
}

// codeParam is status's; the canonical text says it as the word itself.
func codeParam() Param {
	return Param{Name: "code", Kind: KindCode, Required: true, sample: "503",
		Doc: "the status, from 300 to 599; 503 is short for status code=503",
		set: func(f *Fault, v value) (err error) {
			f.Status, err = statusCode(v.text)
			return err
		},
		get: func(Fault) []string { return nil },
	}
}

func one(s string) []string {
	if s == "" {
		return nil
	}
	return []string{s}
}
