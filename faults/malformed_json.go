package faults

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
)

// A Variant is one way in which malformed_json damages a reply. Each is a whole HTTP answer with a true
// Content-Length; only what it says makes no sense. A strict client (encoding/json into a struct with the
// fields call, ok and effect; an object, the id of its own call, nothing behind it; the type application/json)
// fails to decode every one of them.
type Variant struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
	// Tolerable tells that a decoder which is lenient in a way that its standard allows can read it, so that
	// accepting it is no finding.
	Tolerable bool `json:"tolerable,omitempty"`
	// Type is the Content-Type sent; "" is application/json.
	Type string `json:"type,omitempty"`

	body func(good []byte, call string) []byte
}

// Variants returns the variants of malformed_json, in a sensible order.
func Variants() []Variant {
	text := func(s string) func([]byte, string) []byte {
		return func([]byte, string) []byte { return []byte(s) }
	}
	// object is the reply's object with the values of its fields given as JSON.
	object := func(call, ok, effect string) []byte {
		return fmt.Appendf(nil, `{"call":%s,"ok":%s,"effect":%s}`, call, ok, effect)
	}
	return []Variant{
		{Name: "empty", Doc: "no byte at all, Content-Length: 0", body: text("")},
		{Name: "null", Doc: "null instead of the object; encoding/json leaves a struct as it is, so the client has to look", body: text("null")},
		{Name: "truncated", Doc: "the first half of the object, whole by its Content-Length",
			body: func(good []byte, _ string) []byte { return good[:len(good)/2] }},
		{Name: "trailing_garbage", Doc: "the object and then text that is no JSON; a json.Decoder stops before it and has to look",
			body: func(good []byte, _ string) []byte { return append(bytes.Clone(good), "}<!-- end -->"...) }},
		{Name: "wrong_type", Doc: "an array around the object",
			body: func(good []byte, _ string) []byte { return fmt.Appendf(nil, "[%s]", good) }},
		{Name: "wrong_field_type", Doc: "the object with an object for its string, a string for its bool and a string for its number",
			body: func([]byte, string) []byte { return object(`{}`, `"yes"`, `"one"`) }},
		{Name: "duplicate_keys", Doc: "the call's id twice, the second time another one (RFC 8259 §4: which one counts is unpredictable; encoding/json takes the last)", Tolerable: true,
			body: func(_ []byte, call string) []byte { return object(quote(call)+`,"call":"another"`, "true", "1") }},
		{Name: "nan", Doc: "NaN for a number, which JSON does not have (RFC 8259 §6)", Tolerable: true,
			body: func(_ []byte, call string) []byte { return object(quote(call), "true", "NaN") }},
		{Name: "bom", Doc: "a byte order mark before the object (RFC 8259 §8.1: a parser may ignore it)", Tolerable: true,
			body: func(good []byte, _ string) []byte { return append([]byte("\xef\xbb\xbf"), good...) }},
		{Name: "invalid_utf8", Doc: "bytes that are no UTF-8 inside the call's id (RFC 8259 §8.1); encoding/json replaces them, so the id is another one",
			body: func(_ []byte, call string) []byte {
				return object(strings.TrimSuffix(quote(call), `"`)+"\xff\xfe\"", "true", "1")
			}},
		{Name: "deep_nesting", Doc: "the object with 20,000 nested arrays in a further field; encoding/json gives up at 10,000 (RFC 8259 §9 lets parsers have a limit)", Tolerable: true,
			body: func(_ []byte, call string) []byte {
				const depth = 20_000
				return object(quote(call), "true", "1,\"more\":"+strings.Repeat("[", depth)+strings.Repeat("]", depth))
			}},
		{Name: "huge_number", Doc: "1e999 for the effect's number: no float64 and no integer holds it (RFC 8259 §6 lets parsers have a limit)", Tolerable: true,
			body: func(_ []byte, call string) []byte { return object(quote(call), "true", "1e999") }},
		{Name: "html", Doc: "an HTML page with the content type of JSON, as a proxy's error page has it",
			body: text("<!DOCTYPE html>\n<html><body><h1>It works!</h1></body></html>\n")},
		{Name: "json_as_html", Doc: "the good object with the content type of HTML (RFC 9110 §8.3: a recipient may look at the content instead)", Tolerable: true,
			Type: "text/html; charset=utf-8", body: func(good []byte, _ string) []byte { return good }},
		{Name: "error_object", Doc: "an object with an error in it under the status 200, as some gateways have it; the fields of the answer are missing",
			body: text(`{"error":{"code":503,"message":"backend unavailable"}}`)},
	}
}

func malformedJSON() Entry {
	var names []string
	for _, v := range Variants() {
		names = append(names, v.Name)
	}
	return Entry{
		Name:      "malformed_json",
		Doc:       "a whole answer with the good status, a true Content-Length and a body that cannot be understood",
		Category:  Decoding,
		Phases:    []Phase{AfterCommit, BeforeCommit, CommitLate},
		Protocols: []string{HTTP1, HTTP2},
		Params:    []Param{variantParam("what is wrong with the body", "truncated", names...)},
		Sees:      "status 200 and a body that does not decode (an error of encoding/json, or an object that is not the answer)",
		Where:     WhereDecoding,
		Example:   "malformed_json variant=html",
		byHTTP:    answeredByHTTP,
		deliver: func(d *delivery) error {
			for _, v := range Variants() {
				if v.Name == d.fault.Variant {
					return d.malformed(v)
				}
			}
			return fmt.Errorf("unknown variant %q", d.fault.Variant)
		},
	}
}

// malformed sends the reply with the body that v makes of it.
func (d *delivery) malformed(v Variant) error {
	r := reply(d.Reply)
	if !bodyAllowed(r.Status) || d.R.Method == "HEAD" {
		return ErrNotApplicable
	}
	good := r.Body
	if len(good) < 2 {
		good = []byte(`{"ok":true}`)
	}
	var id struct{ Call string }
	_ = json.Unmarshal(good, &id) // a reply without an id: the variants do without
	r.Body = v.body(good, id.Call)
	r.Header.Del("Content-Length")
	r.Header.Set("Content-Type", cmp.Or(v.Type, "application/json"))
	return d.respond(r)
}

func quote(s string) string {
	b, _ := json.Marshal(s) // a string always has a JSON form
	return string(b)
}
