package faults

import (
	"fmt"
	"strings"
)

// Explain tells all there is to know about an entry, as lines for a person: what happens on the wire, what a
// Go client sees and where, the phases, the parameters, and a line for a scenario.
func (e Entry) Explain() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", e.Name)
	row := func(label, text string) { fmt.Fprintf(&b, "  %-12s %s\n", label, text) }
	row("on the wire", e.Doc)
	row("a client", fmt.Sprintf("sees %s", e.Sees))
	row("where", whereText(e.Where))
	row("category", string(e.Category))
	row("protocols", strings.Join(e.Protocols, ", "))
	if e.BeforeBody {
		row("strikes", "before the request's body has been read")
	}
	if e.TLS {
		row("needs", "a server that speaks TLS (server: {tls: true})")
	}
	row("phases", e.phaseText())
	b.WriteString("\n  parameters\n")
	for _, p := range e.allParams() {
		fmt.Fprintf(&b, "    %s\n", p.text())
	}
	fmt.Fprintf(&b, "\n  in a scenario\n    faults: ['%s', ok]\n", strings.ReplaceAll(e.Example, "'", "''"))
	return b.String()
}

// whereText says where a client meets the fault.
func whereText(where string) string {
	switch where {
	case WhereDo:
		return "at Do: the round trip fails"
	case WhereBodyRead:
		return "at Body.Read: the head is good, reading the body fails"
	case WhereDecoding:
		return "at decoding: the body is whole and cannot be understood"
	}
	return "nowhere: no call of net/http returns an error"
}

func (e Entry) phaseText() string {
	words := make([]string, len(e.Phases))
	for i, p := range e.Phases {
		words[i] = string(p)
	}
	words[0] += " (unless said)"
	return strings.Join(words, ", ")
}

// text is one line about a parameter.
func (p Param) text() string {
	s := p.Name + "=" + p.form() + ": " + p.Doc
	switch {
	case p.Required:
		s += "; needed"
	case p.Default != "":
		s += "; unless said " + p.Default
	}
	if p.Repeatable {
		s += "; more than once, if you like"
	}
	return s
}

// form is what a value looks like.
func (p Param) form() string {
	if len(p.Values) > 0 {
		return strings.Join(p.Values, "|")
	}
	return "<" + string(p.Kind) + ">"
}
