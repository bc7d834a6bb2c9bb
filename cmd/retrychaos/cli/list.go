package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/scenarios"
)

func newList(clients []NamedClient) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List scenarios, faults, checks or clients",
		Example: `  retrychaos list scenarios
  retrychaos list faults --json`,
		Args: onlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	asJSON := cmd.PersistentFlags().Bool("json", false, "print JSON")
	sub := func(use, short string, rows func() (list, error)) {
		cmd.AddCommand(&cobra.Command{
			Use: use, Short: short, Args: noArgs,
			Example: "  retrychaos list " + use,
			RunE: func(cmd *cobra.Command, _ []string) error {
				l, err := rows()
				if err != nil {
					return err
				}
				if err := l.write(cmd.OutOrStdout(), *asJSON); err != nil {
					return failure{err}
				}
				return nil
			},
		})
	}
	sub("scenarios", "List the scenarios of the library", listScenarios)
	sub("faults", "List the faults that a scenario can name", listFaults)
	sub("checks", "List the rules that a run is judged by", listChecks)
	sub("clients", "List the clients that run --client knows", func() (list, error) { return listClients(clients), nil })
	return cmd
}

// list is one listing: rows for people, a value for machines.
type list struct {
	rows  [][]string
	value any
}

func (l list) write(w io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(l.value)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range l.rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(tw, "\t")
			}
			fmt.Fprint(tw, cell)
		}
		fmt.Fprintln(tw)
	}
	return tw.Flush()
}

func listScenarios() (list, error) {
	all, err := scenarios.Library()
	if err != nil {
		return list{}, err
	}
	type item struct {
		Name    string            `json:"name"`
		Rule    string            `json:"rule"`
		Source  string            `json:"source"`
		Summary string            `json:"summary"`
		Worlds  []scenarios.World `json:"worlds,omitempty"`
	}
	l := list{}
	items := make([]item, 0, len(all))
	for _, s := range all {
		items = append(items, item{s.Name, s.Rule, s.Source, s.Summary, s.Worlds})
		l.rows = append(l.rows, []string{s.Name, s.Rule, s.Summary})
	}
	l.value = items
	return l, nil
}

func listFaults() (list, error) {
	type param struct {
		Name    string   `json:"name"`
		Doc     string   `json:"doc"`
		Values  []string `json:"values,omitempty"`
		Default string   `json:"default,omitempty"`
	}
	type item struct {
		Name      string          `json:"name"`
		Doc       string          `json:"doc"`
		Phases    []faults.Phase  `json:"phases"`
		Protocols []string        `json:"protocols"`
		Category  faults.Category `json:"category"`
		Sees      string          `json:"sees"`
		Where     string          `json:"where"`
		Level     faults.Level    `json:"level,omitempty"`
		TLS       bool            `json:"tls,omitempty"`
		Params    []param         `json:"params,omitempty"`
		Example   string          `json:"example"`
		// Combinations are all phases, ends and variants, as faults that a scenario can name. Each has its
		// proof on the wire.
		Combinations []string `json:"combinations"`
	}
	l := list{}
	items := []item{}
	for _, e := range faults.Catalogue() {
		it := item{Name: e.Name, Doc: e.Doc, Phases: e.Phases, Protocols: e.Protocols, Category: e.Category,
			Sees: e.Sees, Where: e.Where, Example: e.Example, Level: e.Level, TLS: e.TLS}
		for _, p := range e.Params {
			it.Params = append(it.Params, param{p.Name, p.Doc, p.Values, p.Default})
		}
		for _, f := range e.Combinations() {
			it.Combinations = append(it.Combinations, f.String())
		}
		items = append(items, it)
		l.rows = append(l.rows, []string{e.Name, e.Example, e.Doc})
	}
	l.value = items
	return l, nil
}

func listChecks() (list, error) {
	type item struct {
		ID     string      `json:"id"`
		Level  check.Level `json:"level"`
		Holds  string      `json:"holds"`
		Source string      `json:"source,omitempty"`
	}
	l := list{}
	items := []item{}
	for _, c := range check.All() {
		items = append(items, item{c.ID, c.Level, c.Holds, c.Source})
		l.rows = append(l.rows, []string{c.ID, string(c.Level), c.Holds})
	}
	l.value = items
	return l, nil
}

func listClients(clients []NamedClient) list {
	type item struct {
		Name string `json:"name"`
		Doc  string `json:"doc"`
	}
	l := list{}
	items := []item{}
	for _, k := range clients {
		items = append(items, item{k.Name, k.Doc})
		l.rows = append(l.rows, []string{k.Name, k.Doc})
	}
	l.value = items
	return l
}
