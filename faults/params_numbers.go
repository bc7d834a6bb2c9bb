package faults

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// numberParam is a count of something; def is meant where the text says nothing, 0 for none.
func numberParam(name, doc string, least, most, def int, field func(*Fault) *int) Param {
	p := Param{Name: name, Kind: KindNumber, Doc: doc,
		set: func(f *Fault, v value) error {
			n, err := number(v, least, most)
			if err != nil {
				return fmt.Errorf("%s=%.40s: %w", name, v.text, err)
			}
			*field(f) = n
			return nil
		},
		get:  func(f Fault) []string { return unless(*field(&f), def, strconv.Itoa) },
		fill: func(f *Fault) { fillInt(field(f), def) },
	}
	if def != 0 {
		p.Default = strconv.Itoa(def)
	}
	return p
}

// sizeParam is a number of bytes, with a binary unit where that is shorter.
func sizeParam(name string, kind Kind, doc string, most, def int, field func(*Fault) *int) Param {
	p := Param{Name: name, Kind: kind, Doc: doc,
		set: func(f *Fault, v value) error {
			n, err := ParseSize(v.text)
			switch {
			case err != nil:
				return fmt.Errorf("%s: %w", name, err)
			case n < 1 || n > most:
				return fmt.Errorf("%s=%.40s: want %s at most, and 1 at least", name, v.text, FormatSize(most))
			}
			*field(f) = n
			return nil
		},
		get:  func(f Fault) []string { return unless(*field(&f), def, FormatSize) },
		fill: func(f *Fault) { fillInt(field(f), def) },
	}
	if def != 0 {
		p.Default = FormatSize(def)
	}
	return p
}

func rateParam(doc string) Param {
	p := sizeParam("rate", KindRate, doc, maxSize, 0, func(f *Fault) *int { return &f.Rate })
	p.Required, p.sample = true, "1KiB"
	return p
}

// windowParam is rate_limit's.
func windowParam() Param {
	return Param{Name: "window", Kind: KindDuration, Required: true, sample: "1s",
		Doc: "length of a window; the first begins with the run, and each follows the other",
		set: func(f *Fault, v value) (err error) {
			f.Window, err = duration(v, time.Millisecond, maxDelay)
			return err
		},
		get: func(f Fault) []string {
			if f.Window == 0 {
				return nil
			}
			return []string{fmtDuration(f.Window)}
		},
	}
}

// answerCode is a status code that a fault answers with, by default def; allowed are some, or with none
// given all that status takes.
func answerCode(name, doc string, def int, allowed ...int) Param {
	p := Param{Name: name, Kind: KindCode, Doc: doc,
		set: func(f *Fault, v value) error {
			n, err := statusCode(v.text)
			if err == nil && len(allowed) > 0 && !slices.Contains(allowed, n) {
				words := make([]string, len(allowed))
				for i, a := range allowed {
					words[i] = strconv.Itoa(a)
				}
				err = fmt.Errorf("%s=%d: want one of %s", name, n, strings.Join(words, ", "))
			}
			f.Status = n
			return err
		},
		get:  func(f Fault) []string { return unless(f.Status, def, strconv.Itoa) },
		fill: func(f *Fault) { fillInt(&f.Status, def) },
	}
	if def != 0 {
		p.Default = strconv.Itoa(def)
	}
	return p
}

// choiceParam is one of a few words, the first of which is the default.
func choiceParam(name, doc string, field func(*Fault) *string, words ...string) Param {
	return Param{Name: name, Kind: KindWord, Values: words, Default: words[0], Doc: doc,
		set: func(f *Fault, v value) (err error) {
			*field(f), err = word(name, v, words...)
			return err
		},
		get: func(f Fault) []string {
			if *field(&f) == words[0] {
				return nil
			}
			return one(*field(&f))
		},
		fill: func(f *Fault) {
			if *field(f) == "" {
				*field(f) = words[0]
			}
		},
	}
}

func unless(n, def int, text func(int) string) []string {
	if n == 0 || n == def {
		return nil
	}
	return []string{text(n)}
}

func fillInt(field *int, def int) {
	if *field == 0 {
		*field = def
	}
}

// ParseSize reads a number of bytes: 1000, 64KiB, 4MiB.
func ParseSize(text string) (int, error) {
	digits, unit := text, 1
	for suffix, n := range map[string]int{"KiB": 1 << 10, "MiB": 1 << 20} {
		if rest, ok := strings.CutSuffix(text, suffix); ok {
			digits, unit = rest, n
		}
	}
	n, err := number(value{text: digits}, 0, maxAmount/unit)
	if err != nil {
		return 0, fmt.Errorf("%.40q: want bytes, like 1000, 64KiB or 4MiB", text)
	}
	return n * unit, nil
}

// FormatSize is the inverse of ParseSize.
func FormatSize(n int) string {
	switch {
	case n > 0 && n%(1<<20) == 0:
		return strconv.Itoa(n>>20) + "MiB"
	case n > 0 && n%(1<<10) == 0:
		return strconv.Itoa(n>>10) + "KiB"
	}
	return strconv.Itoa(n)
}
