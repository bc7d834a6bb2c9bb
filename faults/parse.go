package faults

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/retrychaos/retrychaos/internal/nearest"
)

// A SyntaxError is a text that is no fault, or no sequence of faults.
type SyntaxError struct {
	Text string // the whole text
	Col  int    // where the trouble is: characters from 1
	Msg  string
	Near string // the nearest valid word, "" where none is near
}

func (e *SyntaxError) Error() string {
	s := fmt.Sprintf("%s at column %d", e.Msg, e.Col)
	if e.Near != "" {
		s += fmt.Sprintf("; did you mean %q?", e.Near)
	}
	return s
}

// Parse reads one fault:
//
//	WORD[@phase] key=value …
//
// WORD is a name of the catalogue, ok, or a status code (503 is short for status code=503). A value is bare,
// or a string in double quotes as Go has it. Parse is strict: a word, parameter or value that is unknown,
// given twice or meaningless together with the others is a *SyntaxError.
func Parse(text string) (Fault, error) {
	f, err := parse(text)
	if err != nil {
		return Fault{}, err // never a nil *SyntaxError in an error
	}
	return f, nil
}

// failure is a SyntaxError whose column is still a byte offset.
type failure struct {
	off       int
	msg, near string
}

func parse(text string) (Fault, error) {
	p := parser{text: text, at: map[string]int{}}
	f, bad := p.fault()
	if bad == nil {
		return f, nil
	}
	return Fault{}, syntaxError(text, bad)
}

func syntaxError(text string, bad *failure) *SyntaxError {
	return &SyntaxError{Text: text, Col: utf8.RuneCountInString(text[:bad.off]) + 1, Msg: bad.msg, Near: bad.near}
}

type parser struct {
	text string
	pos  int
	at   map[string]int // where a parameter's value, or the phase, stands
}

func fail(off int, near, format string, args ...any) *failure {
	return &failure{off: off, near: near, msg: fmt.Sprintf(format, args...)}
}

func (p *parser) fault() (f Fault, bad *failure) {
	if len(p.text) > maxText {
		return f, fail(0, "", "a fault of more than %d bytes", maxText)
	}
	if i := strings.IndexFunc(p.text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }); i >= 0 {
		return f, fail(i, "", "a control character (%q)", p.text[i])
	}
	p.blanks()
	start := p.pos
	e, f, bad := p.word()
	if bad != nil {
		return f, bad
	}
	if bad := p.phase(e, &f); bad != nil {
		return f, bad
	}
	for p.blanks(); p.pos < len(p.text); p.blanks() {
		if bad := p.param(e, &f); bad != nil {
			return f, bad
		}
	}
	return f, p.complete(e, &f, start)
}

// complete fills in defaults and judges the whole.
func (p *parser) complete(e Entry, f *Fault, start int) *failure {
	for _, q := range e.allParams() {
		if _, given := p.at[q.Name]; q.Required && !given {
			return fail(start, "", "%s needs %s=", e.Name, q.Name)
		}
	}
	if off, given := p.at["late"]; given && f.Phase != CommitLate {
		return fail(off, "", "late= has a meaning only with %s", CommitLate)
	}
	*f = f.filled()
	if e.check == nil {
		return nil
	}
	about, msg := e.check(*f)
	if msg == "" {
		return nil
	}
	if off, given := p.at[about]; given {
		start = off
	}
	return fail(start, "", "%s", msg)
}

// word reads the fault's name.
func (p *parser) word() (Entry, Fault, *failure) {
	start := p.pos
	w := p.until(" \t@")
	switch {
	case w == "" && p.pos == len(p.text):
		return Entry{}, Fault{}, fail(start, "", "no fault given: want a fault's name, a status code or ok")
	case w == "":
		return Entry{}, Fault{}, fail(start, "", "a fault's name is missing")
	case w == OK:
		return Entry{Name: OK}, Fault{Name: OK}, nil
	case strings.Trim(w, "0123456789") == "":
		e, f := status(), Fault{Name: statusName}
		p.at["code"] = start
		var err error
		if f.Status, err = statusCode(w); err != nil {
			return e, f, refused(start, err)
		}
		return e, f, nil
	}
	e, ok := Lookup(w)
	if !ok {
		return e, Fault{}, fail(start, Nearest(w), "unknown fault %.60q", w)
	}
	return e, Fault{Name: w}, nil
}

// phase reads @phase, where there is one.
func (p *parser) phase(e Entry, f *Fault) *failure {
	if p.pos == len(p.text) || p.text[p.pos] != '@' {
		return nil
	}
	p.pos++
	start := p.pos
	w := p.until(" \t")
	p.at["phase"] = start
	all := []string{string(BeforeCommit), string(AfterCommit), string(CommitLate)}
	switch {
	case !slices.Contains(all, w):
		return fail(start, nearest.Word(w, all), "unknown phase %.40q (one of: %s)", w, strings.Join(all, ", "))
	case e.Name == OK:
		return fail(start, "", "ok takes no phase")
	case !slices.Contains(e.Phases, Phase(w)):
		return fail(start, string(e.Phases[0]), "%s cannot strike at %s", e.Name, w)
	}
	f.Phase = Phase(w)
	return nil
}

// param reads key=value.
func (p *parser) param(e Entry, f *Fault) *failure {
	start := p.pos
	key := p.until("= \t")
	if p.pos == len(p.text) || p.text[p.pos] != '=' {
		if slices.Contains([]Phase{BeforeCommit, AfterCommit, CommitLate}, Phase(strings.TrimPrefix(key, "@"))) {
			return fail(start, "", "a phase follows its fault without a blank: %s@%s", f.word(), strings.TrimPrefix(key, "@"))
		}
		return fail(start, "", "want key=value, not %.60q", key)
	}
	q, ok := e.param(key)
	if !ok {
		return unknownParam(e, key, start)
	}
	if _, given := p.at[key]; given && !q.Repeatable {
		return fail(start, "", "%s is given twice", key)
	}
	p.pos++
	v, bad := p.value(key)
	if bad != nil {
		return bad
	}
	if err := q.set(f, v); err != nil {
		return refused(p.at[key], err)
	}
	return nil
}

func unknownParam(e Entry, key string, start int) *failure {
	var names []string
	for _, q := range e.allParams() {
		names = append(names, q.Name)
	}
	if key == "late" {
		return fail(start, "", "%s takes no late=: nothing comes later than the effect itself", e.Name)
	}
	for _, other := range entries() {
		if _, ok := other.param(key); ok {
			return fail(start, "", "%s takes no parameter %s (it takes: %s)", e.Name, key, strings.Join(names, ", "))
		}
	}
	return fail(start, nearest.Word(key, names), "unknown parameter %.40q (%s takes: %s)", key, e.Name, strings.Join(names, ", "))
}

// value reads what follows key=.
func (p *parser) value(key string) (value, *failure) {
	start := p.pos
	p.at[key] = start
	if start < len(p.text) && p.text[start] == '"' {
		quoted, err := strconv.QuotedPrefix(p.text[start:])
		if err != nil {
			return value{}, fail(start, "", "%s: the string does not end, or holds an escape that Go does not know", key)
		}
		s, err := strconv.Unquote(quoted)
		if err != nil {
			return value{}, fail(start, "", "%s: a string that Go does not know", key)
		}
		p.pos += len(quoted)
		if p.pos < len(p.text) && p.text[p.pos] != ' ' && p.text[p.pos] != '\t' {
			return value{}, fail(p.pos, "", "a blank is missing after the string of %s", key)
		}
		return value{s, true}, nil
	}
	s := p.until(" \t")
	if s == "" {
		return value{}, fail(start, "", "%s needs a value", key)
	}
	if i := strings.IndexByte(s, '"'); i >= 0 {
		return value{}, fail(start+i, "", "a quote inside the bare value of %s", key)
	}
	return value{s, false}, nil
}

// refused turns a value's error into a failure.
func refused(off int, err error) *failure {
	var n nearError
	if errors.As(err, &n) {
		return fail(off, n.near, "%s", n.msg)
	}
	return fail(off, "", "%s", err)
}

func (p *parser) blanks() {
	for p.pos < len(p.text) && (p.text[p.pos] == ' ' || p.text[p.pos] == '\t') {
		p.pos++
	}
}

func (p *parser) until(stops string) string {
	start := p.pos
	if i := strings.IndexAny(p.text[start:], stops); i >= 0 {
		p.pos += i
	} else {
		p.pos = len(p.text)
	}
	return p.text[start:p.pos]
}

// filled returns f with the defaults of its entry put in, as Parse leaves it.
func (f Fault) filled() Fault {
	f.fill()
	return f
}

func (f *Fault) fill() {
	if f.IsOK() {
		f.Name = OK
	}
	if f.Times == 1 {
		f.Times = 0
	}
	if len(f.Header) == 0 {
		f.Header = nil
	}
	if len(f.RetryAfter) == 0 {
		f.RetryAfter = nil
	}
	e := find(f.Name)
	if e == nil {
		return
	}
	if f.Phase == "" {
		f.Phase = e.Phases[0]
	}
	params := e.allParams()
	for i := range params {
		if fill := params[i].fill; fill != nil {
			fill(f)
		}
	}
}

// word is the first word of f's text.
func (f Fault) word() string {
	switch {
	case f.IsOK():
		return OK
	case f.Name == statusName:
		return strconv.Itoa(f.Status)
	}
	return f.Name
}

// String returns the canonical text, which Parse reads back as an equal fault.
func (f Fault) String() string {
	f = f.filled()
	var b strings.Builder
	b.WriteString(f.word())
	e := find(f.Name)
	if e == nil {
		e = &Entry{Name: OK}
	}
	if f.Phase != "" && (len(e.Phases) == 0 || f.Phase != e.Phases[0]) {
		b.WriteString("@" + string(f.Phase))
	}
	params := e.allParams()
	for i := range params {
		for _, v := range params[i].get(f) {
			b.WriteString(" " + params[i].Name + "=" + v)
		}
	}
	return b.String()
}

// Validate reports what is wrong with a fault that was made by hand. What Parse returns is valid.
func (f Fault) Validate() error {
	f = f.filled()
	text := f.String()
	g, err := Parse(text)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(f, g) {
		return fmt.Errorf("faults: %s has a field set that has no meaning for it", text)
	}
	return nil
}

// Category returns what kind of failure f is to a client.
func (f Fault) Category() Category {
	e := find(f.Name)
	switch {
	case e == nil:
		return None
	case e.category != nil:
		return e.category(f.filled())
	}
	return e.Category
}

// BeforeBody reports whether f strikes before the server has read the request's body.
func (f Fault) BeforeBody() bool {
	if f.IsOK() {
		return false
	}
	e := find(f.Name)
	return e != nil && (e.BeforeBody || e.beforeBody != nil && e.beforeBody(f.filled()))
}

// Blocks reports whether f never ends for a client that has no timeout of its own.
func (f Fault) Blocks() bool {
	e := find(f.Name)
	return e != nil && e.blocks != nil && e.blocks(f.filled())
}

// Refuses reports whether f ends a request for good, without a commit, by something that the client sees at once. When
// it is on the wire the server is through with the request: the client may come again before the handler returns.
func (f Fault) Refuses() bool {
	e := find(f.Name)
	return e != nil && f.filled().Phase == BeforeCommit && e.run == nil && !f.Stored && !f.Blocks() && !f.BeforeBody()
}

// Level returns the stage at which f strikes.
func (f Fault) Level() Level {
	if e := find(f.Name); e != nil {
		return e.Level
	}
	return LevelRequest
}

// NeedsTLS reports whether f can strike only where the server speaks TLS.
func (f Fault) NeedsTLS() bool {
	e := find(f.Name)
	return e != nil && e.TLS
}
