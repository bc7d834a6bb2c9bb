package cli

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/retrychaos/retrychaos/scenarios"
)

func newLint() *cobra.Command {
	return &cobra.Command{
		Use:                   "lint FILE|FOLDER...",
		DisableFlagsInUseLine: true,
		Short:                 "Check scenario files without running them",
		Long: `Check scenario files without running them: syntax, words, faults that cannot apply, and
scenarios that could never finish. Every problem is told with file, line and column. Of a
folder, all *.yaml files are checked.`,
		Example: `  retrychaos lint my-scenarios
  retrychaos lint my-scenarios/payments.yaml`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return helpful(cmd, errors.New("name a scenario file or a folder of them to check"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, files []string) error {
			var errs []error
			total := 0
			seen := map[string]string{}
			for _, file := range files {
				list, err := loadScenarios(file)
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
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: no problem\n", plural(total, "scenario")); err != nil {
				return failure{err}
			}
			return nil
		},
	}
}

// loadScenarios reads a file, or all files of a folder.
func loadScenarios(path string) ([]scenarios.Scenario, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return scenarios.LoadDir(path)
	}
	return scenarios.LoadFile(path)
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
