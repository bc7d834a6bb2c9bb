package reports

import (
	"fmt"
	"io"
	"time"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/harness/check"
)

// DiffSchema names the JSON form of a Comparison, by the rules of Schema.
const DiffSchema = "retrychaos.diff/v1"

type (
	diffDoc struct {
		Schema  string         `json:"schema"`
		Old     diffSide       `json:"old"`
		New     diffSide       `json:"new"`
		Level   check.Level    `json:"level"`
		Clients []diffClients  `json:"clients"`
		OldOnly []string       `json:"old_only,omitempty"`
		NewOnly []string       `json:"new_only,omitempty"`
		Notes   []string       `json:"notes,omitempty"`
		Counts  map[string]int `json:"counts"`
		Groups  []diffGroup    `json:"groups"`
		Trends  []diffTrend    `json:"trends,omitempty"`
	}
	diffSide struct {
		Tool    Tool      `json:"tool"`
		Started time.Time `json:"started"`
		Seed    uint64    `json:"seed"`
		World   string    `json:"world"`
	}
	diffClients struct {
		Old        string `json:"old"`
		New        string `json:"new"`
		OldVersion string `json:"old_version,omitempty"`
		NewVersion string `json:"new_version,omitempty"`
	}
	diffGroup struct {
		Name    string       `json:"name"`
		Changes []diffChange `json:"changes"`
	}
	diffChange struct {
		Client      string      `json:"client"`
		OldClient   string      `json:"old_client,omitempty"`
		Scenario    string      `json:"scenario"`
		World       string      `json:"world"`
		Level       check.Level `json:"level,omitempty"`
		Differences []string    `json:"differences"`
		Why         string      `json:"why,omitempty"`
		Call        string      `json:"call,omitempty"`
		Old         *diffResult `json:"old,omitempty"`
		New         *diffResult `json:"new,omitempty"`
	}
	diffResult struct {
		Status check.Status `json:"status"`
		Seed   uint64       `json:"seed"`
		Reason string       `json:"reason,omitempty"`
	}
	diffTrend struct {
		Client      string  `json:"client"`
		World       string  `json:"world"`
		What        string  `json:"what"`
		Scenarios   int     `json:"scenarios"`
		Old         string  `json:"old"`
		New         string  `json:"new"`
		P           float64 `json:"p"`
		Significant bool    `json:"significant"`
	}
)

// WriteJSON writes the comparison as JSON. The results themselves stay in the reports.
func (c *Comparison) WriteJSON(w io.Writer) error {
	side := func(r *Report) diffSide { return diffSide{r.Tool, r.Started, r.Seed, r.World} }
	doc := diffDoc{Schema: DiffSchema, Old: side(c.Old), New: side(c.New), Level: c.Level, Clients: []diffClients{},
		OldOnly: c.OldOnly, NewOnly: c.NewOnly, Notes: c.Notes, Counts: map[string]int{"same": c.Same}}
	for _, p := range c.Clients {
		doc.Clients = append(doc.Clients, diffClients{p.Old, p.New, c.Old.client(p.Old).Version, c.New.client(p.New).Version})
	}
	for _, g := range c.Groups() {
		doc.Counts[g.Name] = len(g.Changes)
		out := diffGroup{Name: g.Name, Changes: []diffChange{}}
		for _, ch := range g.Changes {
			x := diffChange{Client: ch.Client.New, Scenario: ch.Scenario, World: ch.World, Level: ch.Level,
				Differences: ch.Differences, Why: ch.Why, Call: ch.Call, Old: c.short(ch.Old), New: c.short(ch.New)}
			if ch.Client.Old != ch.Client.New {
				x.OldClient = ch.Client.Old
			}
			out.Changes = append(out.Changes, x)
		}
		doc.Groups = append(doc.Groups, out)
	}
	for _, t := range c.Trends {
		doc.Trends = append(doc.Trends, diffTrend{t.Client.String(), t.World, t.What, t.Scenarios, t.Old, t.New, t.P, t.Significant})
	}
	text, err := marshal(doc, "  ")
	if err != nil {
		return fmt.Errorf("diff: %w", err)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

func (c *Comparison) short(r *harness.Result) *diffResult {
	if r == nil {
		return nil
	}
	return &diffResult{StatusAt(r, c.Level), r.Seed, r.Reason}
}
