package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/retrychaos/retrychaos/faults"
	"github.com/retrychaos/retrychaos/harness/check"
	"github.com/retrychaos/retrychaos/internal/nearest"
	"github.com/retrychaos/retrychaos/scenarios"
)

func newExplain() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain",
		Short: "Explain a fault, a check or a scenario",
		Example: `  retrychaos explain fault truncated_body
  retrychaos explain check effects.once
  retrychaos explain scenario duplicates/post-unkeyed-hang-fresh`,
		Args: onlyCommands,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	sub := func(use, short, example string, names func() ([]string, error), text func(name string) (string, error)) {
		cmd.AddCommand(&cobra.Command{
			Use: use, Short: short, Example: "  retrychaos explain " + example,
			Args: cobra.ExactArgs(1),
			RunE: func(cmd *cobra.Command, args []string) error {
				out, err := text(args[0])
				if err != nil {
					return err
				}
				_, err = fmt.Fprint(cmd.OutOrStdout(), out)
				return err
			},
			ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
				if len(args) > 0 {
					return nil, cobra.ShellCompDirectiveNoFileComp
				}
				list, err := names()
				if err != nil {
					return nil, cobra.ShellCompDirectiveError
				}
				return list, cobra.ShellCompDirectiveNoFileComp
			},
		})
	}
	sub("fault NAME", "What a fault does on the wire, what a client sees, and its parameters", "fault connection_reset",
		func() ([]string, error) { return faults.Names(), nil }, explainFault)
	sub("check ID", "When a rule holds, its level and its source", "check timing.retry-after",
		func() ([]string, error) { return checkIDs(), nil }, explainCheck)
	sub("scenario NAME", "What a scenario is about, and its YAML", "scenario recovery/one-hang",
		scenarioNames, explainScenario)
	return cmd
}

// unknown is the error for a name that there is none of.
func unknown(what, name string, list []string) error {
	return fmt.Errorf("unknown %s %q%s", what, name, nearest.Hint(name, list))
}

func explainFault(name string) (string, error) {
	e, ok := faults.Lookup(name)
	if !ok {
		return "", unknown("fault", name, faults.Names())
	}
	return e.Explain(), nil
}

func checkIDs() []string {
	var ids []string
	for _, c := range check.All() {
		ids = append(ids, c.ID)
	}
	return ids
}

func explainCheck(id string) (string, error) {
	c, ok := check.Lookup(id)
	if !ok {
		return "", unknown("check", id, checkIDs())
	}
	out := fmt.Sprintf("%s\n\n  holds when   %s\n  level        %s\n", c.ID, c.Holds, c.Level)
	if c.Source != "" {
		out += fmt.Sprintf("  source       %s\n", c.Source)
	}
	all, err := scenarios.Library()
	if err != nil {
		return "", err
	}
	n := 0
	for _, s := range all {
		if s.Rule == id {
			n++
		}
	}
	return out + fmt.Sprintf("  scenarios    %d of the library are about it\n", n), nil
}

func scenarioNames() ([]string, error) {
	all, err := scenarios.Library()
	var names []string
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names, err
}

func explainScenario(name string) (string, error) {
	all, err := scenarios.Library()
	if err != nil {
		return "", err
	}
	for _, s := range all {
		if s.Name != name {
			continue
		}
		text, err := scenarios.Format(s)
		if err != nil {
			return "", err
		}
		// Comments, so that the whole is a file to begin one's own with.
		return fmt.Sprintf("# %s\n#\n#   %s\n#\n#   rule         %s\n#   source       %s\n#   defined at   %s\n\n%s",
			s.Name, s.Summary, s.Rule, s.Source, s.Origin, text), nil
	}
	names, err := scenarioNames()
	if err != nil {
		return "", err
	}
	return "", unknown("scenario", name, names)
}
