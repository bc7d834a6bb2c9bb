package scenarios

import (
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	yaml "go.yaml.in/yaml/v4"

	"github.com/retrychaos/retrychaos/faults"
)

// Format writes a scenario as a YAML file of its own, defaults left out. Loading it gives an equal
// scenario, but for Origin. A scenario that is not valid is an *InvalidError.
func Format(s Scenario) ([]byte, error) {
	s, err := Validate(s)
	if err != nil {
		return nil, err
	}
	family, name, _ := strings.Cut(s.Name, "/")
	doc := fileDoc{Family: family, Scenarios: []fileScenario{formOf(s, name)}}
	text, err := yaml.Dump(encode(reflect.ValueOf(doc), false), yaml.WithIndent(2), yaml.WithLineWidth(100))
	if err != nil {
		return nil, err
	}
	return []byte(separators.Replace(string(text))), nil
}

// separators are line breaks to YAML and hardly anybody else. Texts that hold them are in double quotes,
// where they can be escaped.
var separators = strings.NewReplacer("\u0085", `\N`, "\u2028", `\L`, "\u2029", `\P`)

// formOf is the inverse of fileScenario.scenario.
func formOf(s Scenario, name string) fileScenario {
	f := fileScenario{
		Name: name, Summary: s.Summary, Rule: ruleID(s.Rule), Source: s.Source, Labels: s.Labels, Why: s.Why,
		Connection: connState(s.Connection), Faults: formed(s.Faults), Settle: duration(s.Settle),
		Expect: expect{
			OK:       s.Expect.OK,
			Attempts: span{s.Expect.MinAttempts, s.Expect.MaxAttempts},
			Effects:  span{s.Expect.MinEffects, s.Expect.MaxEffects},
			Status:   (*status)(s.Expect.Status), Error: trait(s.Expect.Trait),
		},
	}
	if s.Server.Keys != Honour {
		f.Server.Keys = keyMode(s.Server.Keys)
	}
	if s.Server.Protocol != faults.HTTP1 {
		f.Server.Protocol = protocol(s.Server.Protocol)
	}
	f.Server.Token = tokenMode(s.Server.Token)
	if s.Server.Profile != Plain {
		f.Server.Profile = keyProfile(s.Server.Profile)
	}
	f.Server.Expiry = duration(s.Server.Expiry)
	f.Server.TLS = s.Server.TLS
	if c := s.Server.Capacity; c != nil {
		f.Server.Capacity = &fileCapacity{Workers: whole(c.Workers), Service: duration(c.Service), Queue: whole(c.Queue), Abandon: c.Abandon}
		if c.Distribution != Fixed {
			f.Server.Capacity.Distribution = distribution(c.Distribution)
		}
		if c.Full != Full503 {
			f.Server.Capacity.Full = overflow(c.Full)
		}
	}
	for _, i := range s.Server.Incidents {
		f.Server.Incidents = append(f.Server.Incidents,
			incident{duration(i.At), duration(i.For), trigger(i.Do), i.Factor, whole(i.Count)})
	}
	for _, w := range s.Worlds {
		f.Worlds = append(f.Worlds, world(w))
	}
	for _, st := range s.Storms {
		f.Storms = append(f.Storms, storm{duration(st.From), duration(st.To), fault(st.Fault), st.Route})
	}
	if s.Draw != nil {
		f.Draw = &draw{s.Draw.P, formed(s.Draw.Faults), s.Draw.Route}
	}
	plainPost := true
	for i, g := range s.Calls {
		c := fileCall{
			Resource: g.Resource, Key: g.Key, KeyUntrusted: g.KeyUntrusted, KeyText: g.KeyText,
			Idempotent: g.Idempotent, BodySize: size(g.BodySize), Stream: g.Stream, Header: header(g.Header),
			CancelAfter: duration(g.CancelAfter), Start: duration(g.Start), Every: duration(g.Every),
			After: g.After, Fleet: g.Fleet, SameInstant: g.SameInstant, Faults: formed(g.Faults),
		}
		if g.Name != defaultGroup(i) {
			c.Name = g.Name
		}
		if g.Method != DefaultMethod {
			c.Method = method(g.Method)
		}
		if g.Path != DefaultPath {
			c.Path = g.Path
		}
		if g.Arrivals != Even {
			c.Arrivals = arrival(g.Arrivals)
		}
		if g.Count != 1 {
			n := count(g.Count)
			c.Count = &n
		}
		if g.Deadline != DefaultDeadline {
			c.Deadline = deadline(g.Deadline)
		}
		if !hasBody(g.Method) || g.Body != DefaultBody {
			c.Body = g.Body
		}
		plainPost = plainPost && reflect.ValueOf(c).IsZero()
		f.Calls = append(f.Calls, c)
	}
	if len(f.Calls) == 1 && plainPost {
		f.Calls = nil
	}
	return f
}

func formed(list []faults.Fault) []fault {
	var out []fault
	for _, f := range list {
		out = append(out, fault(f))
	}
	return out
}

// encode makes a node of a value of the file form. Short things go on one line.
func encode(v reflect.Value, short bool) *yaml.Node {
	switch x := v.Interface().(type) {
	case duration:
		return plainNode("!!str", durationText(time.Duration(x)))
	case deadline:
		if time.Duration(x) == NoDeadline {
			return plainNode("!!str", "none")
		}
		return plainNode("!!str", durationText(time.Duration(x)))
	case fault:
		return plainNode("!!str", faults.Fault(x).String())
	case span:
		if x.min != nil && x.max != nil && *x.min == *x.max {
			return plainNode("!!int", spanText(x))
		}
		return plainNode("!!str", spanText(x))
	case header:
		return headerNode(http.Header(x))
	case bool:
		return plainNode("!!bool", strconv.FormatBool(x))
	case float64:
		return plainNode("!!float", strconv.FormatFloat(x, 'g', -1, 64))
	case whole:
		return plainNode("!!int", strconv.Itoa(int(x)))
	case count:
		return plainNode("!!int", strconv.Itoa(int(x)))
	case size:
		return plainNode("!!str", faults.FormatSize(int(x)))
	case status:
		return plainNode("!!int", strconv.Itoa(int(x)))
	}
	switch v.Kind() {
	case reflect.Pointer:
		return encode(v.Elem(), short)
	case reflect.String:
		return plainNode("!!str", v.String())
	case reflect.Slice:
		elem := v.Type().Elem()
		small := elem.Kind() == reflect.String || elem == reflect.TypeFor[fault]()
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: style(small || short)}
		for i := range v.Len() {
			n.Content = append(n.Content, encode(v.Index(i), elem == reflect.TypeFor[storm]()))
		}
		return n
	case reflect.Struct:
		return structNode(v, short)
	}
	panic("scenarios: no way to encode " + v.Type().String())
}

func structNode(v reflect.Value, short bool) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Style: style(short)}
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		if strings.HasSuffix(f.Tag.Get("yaml"), ",omitempty") && v.Field(i).IsZero() {
			continue
		}
		small := slices.Contains([]string{"expect", "server", "draw"}, fieldName(f))
		n.Content = append(n.Content, plainNode("!!str", fieldName(f)), encode(v.Field(i), small))
	}
	return n
}

func headerNode(h http.Header) *yaml.Node {
	n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		value := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
		for _, line := range h[name] {
			value.Content = append(value.Content, plainNode("!!str", line))
		}
		if len(value.Content) == 1 {
			value = value.Content[0]
		}
		n.Content = append(n.Content, plainNode("!!str", name), value)
	}
	return n
}

func style(short bool) yaml.Style {
	if short {
		return yaml.FlowStyle
	}
	return 0
}

func plainNode(tag, text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: text}
	if strings.ContainsAny(text, "\u0085\u2028\u2029") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}
