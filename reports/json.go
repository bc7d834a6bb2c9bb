package reports

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
)

// head is the report without its results, for the writer.
type head struct {
	Report
	Results *struct{} `json:"results,omitempty"` // hides Report.Results
}

// WriteJSON writes the report as JSON: the head indented, then one result a line, so that a report of many
// histories stays small, and grep and diff work on it. Keys come in one order and durations are whole
// nanoseconds: equal reports give equal bytes.
func (r *Report) WriteJSON(w io.Writer) error {
	top, err := marshal(head{Report: *r}, "  ")
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	b := bufio.NewWriterSize(w, 64<<10)
	b.Write(bytes.TrimSuffix(top, []byte("\n}")))
	b.WriteString(",\n  \"results\": [")
	for i := range r.Results {
		line, err := marshal(&r.Results[i], "")
		if err != nil {
			return fmt.Errorf("report: result of %s: %w", r.Results[i].Scenario, err)
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("\n    ")
		b.Write(line)
	}
	b.WriteString("\n  ]\n}\n")
	return b.Flush()
}

// marshal is json.Marshal without the escaping that only HTML needs.
func marshal(v any, indent string) ([]byte, error) {
	var buf bytes.Buffer
	e := json.NewEncoder(&buf)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buf.Bytes(), "\n"), nil
}

// ReadJSON reads what WriteJSON wrote. It refuses every other schema, text that is not one whole report, and
// a report that does not make sense: words that are no status or level, a result of a client that is not
// listed. Fields that it does not know are left out: a later version may have added them.
func ReadJSON(src io.Reader) (*Report, error) {
	data, err := io.ReadAll(src)
	if err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return nil, errors.New("report: empty: want a report.json that retrychaos wrote")
	}
	var probe struct {
		Schema *string `json:"schema"`
	}
	if err := json.Unmarshal(data, &probe); err != nil {
		return nil, fmt.Errorf("report: not a report: %w", located(data, err))
	}
	switch {
	case probe.Schema == nil:
		return nil, fmt.Errorf("report: no \"schema\" field: not a retrychaos report (want schema %q)", Schema)
	case *probe.Schema != Schema:
		return nil, fmt.Errorf("report: schema %q: this retrychaos reads %q only; read it with the version that wrote it, or run again", *probe.Schema, Schema)
	}
	r := new(Report)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("report: %w", located(data, err))
	}
	if err := r.validate(); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	return r, nil
}

// located adds line and column to an error of encoding/json.
func located(data []byte, err error) error {
	var offset int64
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		offset = syntax.Offset
	case errors.As(err, &kind):
		offset = kind.Offset
	default:
		return err
	}
	before := data[:min(max(offset-1, 0), int64(len(data)))]
	line := bytes.Count(before, []byte("\n")) + 1
	column := len(before) - bytes.LastIndexByte(before, '\n')
	return fmt.Errorf("line %d, column %d: %w", line, column, err)
}

func (r *Report) validate() error {
	if !isLevel(r.Level) {
		return fmt.Errorf("level %q: want MUST, SHOULD or MAY", r.Level)
	}
	names := map[string]bool{}
	for _, c := range r.Clients {
		if names[c.Name] {
			return fmt.Errorf("client %q is listed twice", c.Name)
		}
		names[c.Name] = true
	}
	for i := range r.Results {
		if err := validResult(&r.Results[i], names); err != nil {
			return fmt.Errorf("result %d (%s): %w", i+1, plain(r.Results[i].Scenario), err)
		}
	}
	return nil
}

func validResult(res *harness.Result, clients map[string]bool) error {
	if res.Scenario == "" {
		return errors.New("it names no scenario")
	}
	if !clients[res.Client] {
		return fmt.Errorf("client %q is not among the report's clients", res.Client)
	}
	if !isStatus(res.Status) {
		return fmt.Errorf("status %q: want pass, fail, unknown or skipped", res.Status)
	}
	for _, v := range res.Verdicts {
		if !isStatus(v.Status) {
			return fmt.Errorf("verdict of %q: status %q: want pass, fail, unknown or skipped", v.Check, v.Status)
		}
		if !isLevel(v.Level) {
			return fmt.Errorf("verdict of %q: level %q: want MUST, SHOULD or MAY", v.Check, v.Level)
		}
	}
	return nil
}

func isLevel(l check.Level) bool {
	return slices.Contains([]check.Level{check.Must, check.Should, check.May}, l)
}

func isStatus(s check.Status) bool {
	return slices.Contains([]check.Status{check.Pass, check.Fail, check.Unknown, check.Skipped}, s)
}
