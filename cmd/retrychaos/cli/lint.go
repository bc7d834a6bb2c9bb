package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/retrychaos/retrychaos/scenarios"
)

func newLint() *cobra.Command {
	return &cobra.Command{
		Use:   "lint FILE...",
		Short: "Check scenario files without running them",
		Long: `Check scenario files without running them: syntax, words, faults that cannot apply, and
scenarios that could never finish. Every problem is told with file, line and column.`,
		Example: "  retrychaos lint my-scenarios/*.yaml",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, files []string) error {
			var errs []error
			total := 0
			seen := map[string]string{}
			for _, file := range files {
				list, err := scenarios.LoadFile(file)
				if err != nil {
					errs = append(errs, err)
					continue
				}
				for _, s := range list {
					if first, twice := seen[s.Name]; twice {
						errs = append(errs, fmt.Errorf("%s: the scenario %q is defined at %s already", s.Origin, s.Name, first))
					}
					seen[s.Name] = s.Origin
				}
				total += len(list)
			}
			if err := errors.Join(errs...); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%d scenarios in %d files: no problem\n", total, len(files))
			return nil
		},
	}
}
