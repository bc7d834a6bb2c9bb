package reports

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/scenarios"
)

// A question is what people ask of a client: which check answers it, in which scenarios. Which clients it names is
// found, and never written down here.
type question struct {
	title    string
	check    string
	patterns []string // as scenarios.Match takes them
	reason   string   // what the reason must hold; "" for any
}

var questions = []question{
	{title: "Repeats a POST after its answer was lost, and so makes two effects", check: "effects.once", patterns: []string{"duplicates/post-unkeyed-*"}},
	{title: "Repeats at once after a Retry-After too large for its arithmetic", check: "timing.retry-after", patterns: []string{
		"rate-limits/*-overflow-hostile", "rate-limits/*-ten-digits-hostile", "rate-limits/*-more-than-64-bits-hostile"}},
	{title: "Comes back before a Retry-After in seconds or as a date allows", check: "timing.retry-after", patterns: []string{
		"rate-limits/*-retry-after-two", "rate-limits/*-retry-after-two-minutes", "rate-limits/*-date"}},
	{title: "Leaves connections or bodies behind when it retries", check: "resources.released", patterns: []string{"resources/*"}},
	{title: "Sleeps on, or sends again, after cancellation", check: "timing.cancel", patterns: []string{"cancellation/*", "mistakes/ignoring-cancellation"}},
	{title: "Sends another body, or none, when it retries", check: "body.intact", patterns: []string{"*"}},
	{title: "Retries a certificate that it does not trust", check: "attempts.permanent-once", patterns: []string{"tls/certificate-*", "tls/reset-then-untrusted"}},
	{title: "Has no jitter on its first retry, so that a herd comes back as one", check: "timing.spread", patterns: []string{"herd/*"}, reason: "retry 1 "},
	{title: "Waits not at all, or no longer, before later retries", check: "timing.backoff-grows", patterns: []string{"*"}},
	{title: "Makes more attempts than it says, what net/http resends included", check: "attempts.bounded", patterns: []string{"*"}},
	{title: "Retries what can never succeed: 4xx, or an answer that does not decode", check: "attempts.permanent-once", patterns: []string{"permanent/*", "malformed-json/*"}},
	{title: "Makes a new idempotency key for a retry", check: "key.stable", patterns: []string{"keys/*"}},
	{title: "Hides the last real failure from its caller", check: "error.last-real", patterns: []string{"*"}},
	{title: "Would keep an overloaded server down", check: "load.amplification", patterns: []string{"*"}},
}

// WriteFindings writes what the scenarios found of each client as a page: which clients are there, then, for the
// questions that people ask, which clients they show, with one piece of evidence and the command that shows it, and
// which they do not. A client that was not judged is told apart from one that passed. All text of clients is escaped.
func WriteFindings(w io.Writer, r *Report) error {
	var b bytes.Buffer
	names := r.scenarioNames()
	fmt.Fprintf(&b, "# What the scenarios find in %s\n\n", count(len(r.Clients), "client"))
	fmt.Fprintf(&b, "Made from a run of %s with seed %d (%s): each client with its defaults, as its adapter or driver says. "+
		"Jitter differs from run to run, and a few numbers with it. Nobody typed a client's name in: a page like this is "+
		"what the report says of itself.\n\n", count(len(names), "scenario"), r.Seed, mdText(strings.Join(r.worlds(), " and ")+" world"))
	b.WriteString("| client | version | breaks a MUST | breaks a SHOULD | passes | undecided | skipped |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |\n")
	for _, c := range r.Clients {
		n := r.standing(c.Name)
		fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d | %d |\n", mdText(c.Name), mdText(c.Version), n.must, n.should, n.passed, n.unknown, n.skipped)
	}
	for _, q := range questions {
		r.answer(&b, q)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// standing is in how many scenarios a client ended how.
type standing struct{ must, should, passed, unknown, skipped int }

func (r *Report) standing(client string) (n standing) {
	for i := range r.Results {
		res := &r.Results[i]
		if res.Client != client {
			continue
		}
		switch {
		case StatusAt(res, check.Must) == check.Fail:
			n.must++
		case StatusAt(res, check.Should) == check.Fail:
			n.should++
		case StatusAt(res, check.Should) == check.Unknown:
			n.unknown++
		case StatusAt(res, check.Should) == check.Skipped:
			n.skipped++
		default:
			n.passed++
		}
	}
	return n
}

func (r *Report) scenarioNames() []string {
	var names []string
	for i := range r.Results {
		names = append(names, r.Results[i].Scenario)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// answer writes which clients a question shows.
func (r *Report) answer(b *bytes.Buffer, q question) {
	type shown struct {
		first   *harness.Result
		verdict check.Verdict
		in      int
	}
	found, held := map[string]*shown{}, map[string]bool{}
	for i := range r.Results {
		res := &r.Results[i]
		if !slices.ContainsFunc(q.patterns, func(p string) bool { return scenarios.Glob(p, res.Scenario) }) {
			continue
		}
		for _, v := range res.Verdicts {
			switch {
			case v.Check != q.check:
			case v.Status == check.Pass:
				held[res.Client] = true
			case (v.Status == check.Fail || v.Known) && strings.Contains(v.Reason+strings.Join(v.Evidence, "\n"), q.reason):
				if found[res.Client] == nil {
					found[res.Client] = &shown{first: res, verdict: v}
				}
				found[res.Client].in++
			}
		}
	}
	fmt.Fprintf(b, "\n## %s\n\nThe rule: %s (`%s`).\n", q.title, harness.Holds(q.check), q.check)
	var clear, unjudged []string
	for _, c := range r.Clients {
		f := found[c.Name]
		switch {
		case f == nil && held[c.Name]:
			clear = append(clear, mdText(c.Name))
			continue
		case f == nil:
			unjudged = append(unjudged, mdText(c.Name))
			continue
		}
		fmt.Fprintf(b, "\n- **%s**, in %s. In %s: %s.\n\n      %s\n", mdText(c.Name), count(f.in, "scenario"), mdText(f.first.Scenario), mdText(clip(f.verdict.Reason, 400)),
			plain(r.reproduce(&group{client: c.Name, verdict: f.verdict, results: []*harness.Result{f.first}})))
	}
	if len(clear) > 0 && len(found) == 0 {
		b.WriteString("\nNone of those that were judged.\n")
	} else if len(clear) > 0 {
		fmt.Fprintf(b, "\nNot seen in: %s.\n", strings.Join(clear, ", "))
	}
	if len(unjudged) > 0 {
		fmt.Fprintf(b, "\nNot judged: %s.\n", strings.Join(unjudged, ", "))
	}
}
