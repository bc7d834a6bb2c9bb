package reports

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
)

// The parts of JUnit's XML that are written, in the form that CI services read. Longer texts are CDATA, which
// keeps their lines readable; nothing gets there that XML does not allow, since visible has passed it.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Errors   int          `xml:"errors,attr"`
		Skipped  int          `xml:"skipped,attr"`
		Time     string       `xml:"time,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Timestamp  string          `xml:"timestamp,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name      string        `xml:"name,attr"`
		Classname string        `xml:"classname,attr"`
		Time      string        `xml:"time,attr"`
		Failure   *junitProblem `xml:"failure"`
		Error     *junitProblem `xml:"error"`
		Skipped   *junitProblem `xml:"skipped"`
		SystemOut *junitText    `xml:"system-out"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr,omitempty"`
		Text    string `xml:",cdata"`
	}
	junitText struct {
		Text string `xml:",cdata"`
	}
)

// WriteJUnit writes the report as JUnit XML: a suite for each client and family, a case for each scenario.
// Names hold neither versions nor seeds, so that a CI service can follow a case from run to run. What a client
// did wrong is a failure; an unknown verdict or a fault of the harness is an error; a skipped scenario says
// why. Only cases with a finding carry the timeline, as their output.
func WriteJUnit(w io.Writer, r *Report) error {
	doc := junitSuites{Time: seconds(r.Real)}
	mixed := len(r.worlds()) > 1
	index := map[string]int{}
	times := map[string]time.Duration{}
	for i := range r.Results {
		res := &r.Results[i]
		name := visible(res.Client + "/" + family(res.Scenario))
		if mixed {
			name += " (" + visible(res.World) + ")" // keeps the suites of both worlds apart
		}
		n, ok := index[name]
		if !ok {
			n = len(doc.Suites)
			index[name] = n
			doc.Suites = append(doc.Suites, junitSuite{Name: name, Timestamp: r.Started.UTC().Format("2006-01-02T15:04:05"),
				Properties: []junitProperty{
					{"client.version", plain(r.client(res.Client).Version)},
					{"world", plain(res.World)}, {"seed", strconv.FormatUint(r.Seed, 10)},
					{"level", string(r.Level)}, {"retrychaos.version", plain(r.Tool.Version)},
				}})
		}
		suite := &doc.Suites[n]
		times[name] += res.Real
		suite.Time = seconds(times[name])
		suite.Tests++
		doc.Tests++
		c := junitCase{Name: visible(res.Scenario), Classname: strings.ReplaceAll(name, "/", "."), Time: seconds(res.Real)}
		switch StatusAt(res, r.Level) {
		case check.Fail:
			c.Failure = r.junitProblem(res)
			suite.Failures++
			doc.Failures++
		case check.Unknown:
			c.Error = r.junitProblem(res)
			suite.Errors++
			doc.Errors++
		case check.Skipped:
			reason := res.Reason
			if reason == "" {
				reason = "no check applies"
			}
			c.Skipped = &junitProblem{Message: plain(reason)}
			suite.Skipped++
			doc.Skipped++
		}
		if c.Failure != nil || c.Error != nil {
			if out := junitOutput(res, r.Level); out != "" {
				c.SystemOut = &junitText{out}
			}
		}
		suite.Cases = append(suite.Cases, c)
	}
	b := bufio.NewWriter(w)
	b.WriteString(xml.Header)
	e := xml.NewEncoder(b)
	e.Indent("", "  ")
	if err := e.Encode(doc); err != nil {
		return fmt.Errorf("junit: %w", err)
	}
	b.WriteByte('\n')
	return b.Flush()
}

// seconds is a duration as JUnit has it; never in the exponential form, which some readers refuse.
func seconds(d time.Duration) string { return strconv.FormatFloat(d.Seconds(), 'f', 4, 64) }

// junitProblem tells of every finding of one result.
func (r *Report) junitProblem(res *harness.Result) *junitProblem {
	p := new(junitProblem)
	var b strings.Builder
	b.WriteByte('\n')
	for i, f := range findingsOf(res, r.Level) {
		g := &group{client: res.Client, family: family(res.Scenario), verdict: f.Verdict, harness: f.own, results: []*harness.Result{res}}
		if i == 0 {
			p.Type, p.Message = plain(f.Check), plain(f.Check+": "+f.Reason)
		}
		fmt.Fprintf(&b, "%s %s: %s\n", f.Status, plain(g.title(false)), plain(f.Reason))
		for _, e := range f.Evidence {
			fmt.Fprintf(&b, "  %s\n", plain(e))
		}
		for _, field := range [][2]string{{"the rule", g.holds()}, {"source", g.source()}} {
			if field[1] != "" {
				fmt.Fprintf(&b, "  %s: %s\n", field[0], plain(field[1]))
			}
		}
		for _, n := range f.Notes {
			fmt.Fprintf(&b, "  note: %s\n", plain(n))
		}
		fmt.Fprintf(&b, "  reproduce: %s\n", visible(r.reproduce(g)))
	}
	p.Text = b.String()
	return p
}

// junitOutput is the timelines of the calls that show the findings of a result.
func junitOutput(res *harness.Result, level check.Level) string {
	var b strings.Builder
	seen := map[string]bool{}
	for _, f := range findingsOf(res, level) {
		g := &group{verdict: f.Verdict, results: []*harness.Result{res}}
		h, c := g.shown()
		if c == nil || seen[c.ID] {
			continue
		}
		seen[c.ID] = true
		b.WriteString("\n" + strings.Join(timelineText(h, c), "\n") + "\n")
	}
	return b.String()
}
