package serve

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/retrychaos/retrychaos/internal/nearest"
)

// positioned is a member that is decoded later, from where it stands.
type positioned any

// member is where a member of an object stands.
type member struct {
	raw        json.RawMessage
	start, end int // of the value, in bytes
	line, col  int // of the name
}

// text reports whether the value is a text.
func (m member) text() bool { return bytes.HasPrefix(m.raw, []byte{'"'}) }

// in is the value where it stands in body: what is before it is blanked out, so that lines and columns stay as they
// are.
func (m member) in(body []byte) []byte {
	out := make([]byte, 0, m.end)
	for _, r := range string(body[:m.start]) {
		if r != '\n' {
			r = ' '
		}
		out = utf8.AppendRune(out, r)
	}
	return append(out, body[m.start:m.end]...)
}

// object finds the members of the JSON object that body is.
func object(body []byte) (map[string]member, *problem) {
	dec := json.NewDecoder(bytes.NewReader(body))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, badJSON(body, dec.InputOffset(), err, "the body is no JSON object")
	}
	out := map[string]member{}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return nil, badJSON(body, dec.InputOffset(), err, "the body is no JSON")
		}
		m := member{}
		m.line, m.col = position(body, dec.InputOffset()-int64(len(name))-1)
		if err := dec.Decode(&m.raw); err != nil {
			return nil, badJSON(body, dec.InputOffset(), err, "the body is no JSON")
		}
		m.end = int(dec.InputOffset())
		m.start = m.end - len(m.raw)
		if _, twice := out[name]; twice {
			return nil, &problem{kind: badRequest, detail: fmt.Sprintf("%q is there twice", clip(name)), errors: []fault{{Line: m.line, Column: m.col, Message: "this name is there already"}}}
		}
		out[name] = m
	}
	if _, err := dec.Token(); err != nil {
		return nil, badJSON(body, dec.InputOffset(), err, "the body is no JSON")
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, badJSON(body, dec.InputOffset(), nil, "there is something behind the JSON object")
	}
	return out, nil
}

// decode fills into from body, all of whose members have to be known.
func decode(body []byte, members map[string]member, into any) *problem {
	var known []string
	for t, i := reflect.TypeOf(into).Elem(), 0; i < t.NumField(); i++ {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		known = append(known, name)
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		m := members[name]
		if !slices.Contains(known, name) {
			return &problem{kind: invalidRequest, detail: fmt.Sprintf("there is no member %q%s", clip(name), nearest.Hint(name, known)),
				errors: []fault{{Line: m.line, Column: m.col, Message: fmt.Sprintf("unknown: there are %s", strings.Join(known, ", ")), Meant: nearest.Word(name, known)}}}
		}
	}
	return strict(body, into)
}

// strict decodes JSON whose members have to be known.
func strict(body []byte, into any) *problem {
	dec := json.NewDecoder(bytes.NewReader(body))
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	var typ *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &typ):
		line, col := position(body, typ.Offset)
		return &problem{kind: invalidRequest, detail: fmt.Sprintf("%s is of the wrong type: %s", cmp.Or(typ.Field, "the body"), typ.Value),
			errors: []fault{{Line: line, Column: col, Message: "wrong type: " + typ.Value}}}
	}
	text := strings.TrimPrefix(err.Error(), "json: ")
	if strings.HasPrefix(text, "unknown field") {
		return invalidRequest.because("%s", text)
	}
	return badJSON(body, dec.InputOffset(), err, "the body is no JSON")
}

func badJSON(body []byte, at int64, err error, what string) *problem {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		at = syntax.Offset
	}
	line, col := position(body, at)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = errors.New("it ends too early")
	}
	p := &problem{kind: badRequest, detail: what, errors: []fault{{Line: line, Column: col, Message: what}}}
	if err != nil {
		p.detail += ": " + err.Error()
		p.errors[0].Message = err.Error()
	}
	return p
}

// position is a line and a column, in characters, of a place in body.
func position(body []byte, at int64) (line, col int) {
	before := body[:max(0, min(at, int64(len(body))))]
	line = 1 + bytes.Count(before, []byte{'\n'})
	return line, max(1, utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:]))
}

// clip keeps what came from elsewhere short.
func clip(s string) string {
	if len(s) <= 80 {
		return s
	}
	return strings.ToValidUTF8(s[:80], "") + "…"
}
