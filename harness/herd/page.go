package herd

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"testing"
	"time"
)

// Tables is what the reproductions measured.
type Tables struct {
	Seeds      int
	Runs       int // of each cell of the contention table
	Outages    []OutageRow
	Contention []Contention
	Crowds     []Row // closed herds, queue 50 and then 500
	Queues     []int
	Shown      []Run // the outage runs of the first seed, for plots
}

// An OutageRow is one policy in one outage beside the reference.
type OutageRow struct {
	Row
	Want Expected
}

// measuredRuns is how many seeds suffice where there is no reference to agree with.
const measuredRuns = 3

// Reproduce measures all tables; step is told what is to be measured, and an error of it ends the work.
func Reproduce(t *testing.T, seeds, runs int, step func(format string, args ...any) error) (Tables, error) {
	out := Tables{Seeds: seeds, Runs: runs, Queues: []int{50, 500}}
	for _, want := range OutageReference() {
		p := findOutagePolicy(want.Policy)
		for _, s := range Outages(false) {
			if s.Name != want.Setting {
				continue
			}
			var list []Run
			n := seeds
			switch {
			case want.Mixed():
				n = max(n, ReferenceRuns) // fewer say nothing where chance decides
			case want.Measured:
				n = min(n, measuredRuns)
			}
			for seed := range n {
				if err := step("outage: %s, %s, seed %d of %d", p.Doc, s.Name, seed+1, n); err != nil {
					return out, err
				}
				r, err := Do(t, p.Client(s.Timeout, 0), s, uint64(seed+1))
				if err != nil {
					return out, err
				}
				list = append(list, r)
			}
			out.Outages = append(out.Outages, OutageRow{Sum(list), want})
			out.Shown = append(out.Shown, list[0])
		}
	}
	for _, queue := range out.Queues {
		s := Crowd(queue)
		for _, p := range CrowdPolicies() {
			if err := step("crowd: %s, queue %d", p.Doc, queue); err != nil {
				return out, err
			}
			r, err := Do(t, p.Client(s.Timeout, s.Attempts), s, 1)
			if err != nil {
				return out, err
			}
			out.Crowds = append(out.Crowds, Sum([]Run{r}))
		}
	}
	for _, want := range ContentionReference() {
		for _, p := range ContentionPolicies() {
			if p.Name != want.Policy {
				continue
			}
			if err := step("contention: %s, %d clients", p.Doc, want.Clients); err != nil {
				return out, err
			}
			c, err := Contend(t, p, want.Clients, runs)
			if err != nil {
				return out, err
			}
			out.Contention = append(out.Contention, c)
		}
	}
	return out, nil
}

// A writer keeps the first failure, so that not every line need be looked at.
type writer struct {
	w   io.Writer
	err error
}

func (w *writer) line(format string, args ...any) {
	if w.err == nil {
		_, w.err = fmt.Fprintf(w.w, format+"\n", args...)
	}
}

// reference is what the reference has in the row, and how far it is.
func (r OutageRow) reference() string {
	if r.Want.Measured {
		return "- | - | -"
	}
	verdict := Row{Recovered: r.Want.Recovers, Runs: ReferenceRuns}.Verdict()
	difference := "-"
	if got, ok := r.weighted(); ok {
		difference = fmt.Sprintf("%+.1f %%", 100*(got/r.Want.Attempts-1))
	}
	return fmt.Sprintf("%s | %.2f | %s", verdict, r.Want.Attempts, difference)
}

// seeds says with how many seeds the outages were measured.
func (x Tables) seeds() string {
	text := strconv.Itoa(x.Seeds)
	if x.Seeds < ReferenceRuns {
		text += fmt.Sprintf(", and %d where the reference recovers in some runs only", ReferenceRuns)
	}
	if x.Seeds > measuredRuns {
		text += fmt.Sprintf(", and %d where there is no reference", measuredRuns)
	}
	return text
}

// WriteMarkdown writes the tables side by side with their references.
func (x Tables) WriteMarkdown(out io.Writer) error {
	w := &writer{w: out}
	w.line("## An outage, and what the clients make of it\n")
	w.line("The server does 100 attempts a second (10 workers, 100 ms each) and holds 500 that wait; a client gives an attempt up after 1 s, and "+
		"the server works on it all the same. Load is open-loop and Poisson, and goes on for 400 s. In one setting, at 70 %% load, the server stalls for 5 s; "+
		"in the other, at 50 %%, it refuses for 10 s; both begin after a minute. Four attempts a call at most. Seeds: %s; the reference is a "+
		"simulation of the model, with %d. In it k is the number of the retry, from 1: full jitter is over 2, 4 and 8 s; with 1, 2 and 4 s no refusal "+
		"leads to a collapse, as a row below shows. For how long adaptive throttling remembers the reference does not say; here it is half a minute.\n", x.seeds(), ReferenceRuns)
	w.line("Where the reference recovers in some runs, chance decides which way a run goes, and the mean follows: the numbers are held against each other by Fisher's " +
		"exact test at 1 %%, and the difference is that of the means of both kinds of runs, weighted as in the reference.\n")
	w.line("| policy | outage | recovers | after | attempts a call | reference: recovers | attempts a call | difference |")
	w.line("|---|---|---|---|---|---|---|---|")
	for _, r := range x.Outages {
		w.line("| %s | %s | %s | %s | %.2f | %s |", findOutagePolicy(r.Want.Policy).Doc, r.Setting, r.Verdict(), r.took(), r.After, r.reference())
	}
	w.line("\nJitter moves attempts and takes none away: a server that spends its time on attempts whose clients have left stays down for as long as the clients go on. " +
		"This is a metastable failure (Bronson and others, HotOS 2021): the trigger is gone, the collapse stays.\n")
	w.line("## A thousand clients that fail together\n")
	w.line("A closed herd: all fail at once and go on until they get through, 40 attempts at most.\n")
	w.line("| waits | queue | gets through | nine of ten after | retries a call | most attempts a second |")
	w.line("|---|---|---|---|---|---|")
	for i, r := range x.Crowds {
		policies := CrowdPolicies()
		w.line("| %s | %d | %s | %s | %.1f | %.0f |", policies[i%len(policies)].Doc, x.Queues[i/len(policies)], r.Verdict(), r.took(), r.After-1, r.Peak)
	}
	w.line("\nThe right width is (clients that failed together) ÷ (server's rate), here 10 s. With the long queue, attempts whose clients have left keep the server busy, and short waits never end.\n")
	w.line("## Optimistic concurrency\n")
	w.line("N clients read the version of one row and write it back; a stale version fails, and its client waits and starts over. Every message takes |Normal(10, 2)| ms; "+
		"base 5 ms, cap 2 s. Completion time in ms / write requests, means of %d runs; in brackets those of "+
		"[aws-samples/aws-arch-backoff-simulator](https://github.com/aws-samples/aws-arch-backoff-simulator), means of 100.\n", x.Runs)
	header, rule := "| N |", "|---|"
	for _, p := range ContentionPolicies() {
		header, rule = header+" "+p.Doc+" |", rule+"---|"
	}
	w.line("%s", header)
	w.line("%s", rule)
	reference := ContentionReference()
	n := len(ContentionPolicies())
	for i := 0; i < len(x.Contention); i += n {
		line := fmt.Sprintf("| %d |", x.Contention[i].Clients)
		for j, c := range x.Contention[i : i+n] {
			want := reference[i+j]
			line += fmt.Sprintf(" %d / %.0f (%d / %.0f) |", c.Time.Round(time.Millisecond).Milliseconds(), c.Writes, want.Time.Milliseconds(), want.Writes)
		}
		w.line("%s", line)
	}
	return w.err
}

// Misses lists the figures that are not within their margins of the reference.
func (x Tables) Misses() []string {
	var out []string
	for _, r := range x.Outages {
		if m := r.Miss(); m != "" {
			out = append(out, m)
		}
	}
	reference := ContentionReference()
	for i, c := range x.Contention {
		want := reference[i]
		if off(c.Time.Seconds(), want.Time.Seconds()) > want.TimeMargin() {
			out = append(out, fmt.Sprintf("%d clients, %s: %v, want %v ± %.0f %%", c.Clients, c.Policy, c.Time, want.Time, 100*want.TimeMargin()))
		}
		if off(c.Writes, want.Writes) > want.WritesMargin() {
			out = append(out, fmt.Sprintf("%d clients, %s: %.0f writes, want %.0f ± %.0f %%", c.Clients, c.Policy, c.Writes, want.Writes, 100*want.WritesMargin()))
		}
	}
	return out
}

// off is how far got is from want, as a part of it.
func off(got, want float64) float64 {
	d := got/cmp.Or(want, 1) - 1
	return max(d, -d)
}
