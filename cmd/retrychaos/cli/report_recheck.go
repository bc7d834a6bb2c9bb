package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/retrychaos/retrychaos/harness"
	"github.com/retrychaos/retrychaos/reports"
	"github.com/retrychaos/retrychaos/scenarios"
)

func newReportRecheck() *cobra.Command {
	var (
		look   look
		out    string
		level  string
		folder string
		failOn string
	)
	cmd := &cobra.Command{
		Use:                   "recheck REPORT [flags]",
		DisableFlagsInUseLine: true,
		Short:                 "Judge stored histories by today's checks",
		Long: `Judge the histories of a stored report by the checks of this program, write the new
report, and show which verdicts changed. Nothing is run. What a scenario's author expects
is judged where the scenario is known: it is in the library, or in --scenarios. Results
that were stored without a history keep their verdicts.

Exit status: as of report diff, from the old verdicts to the new.`,
		Example: `  retrychaos report recheck old-report --out rechecked
  retrychaos report recheck old-report --scenarios ./my-scenarios --fail-on never`,
		Args: exactly(1, "one report"),
		RunE: func(cmd *cobra.Command, args []string) error {
			lvl, err := levelFlag(level)
			if err := errors.Join(look.check(), err, oneOf("fail-on", failOn, "broken", "unknown", "changed", "never")); err != nil {
				return err
			}
			old, _, err := reports.ReadFile(args[0])
			if err != nil {
				return err
			}
			if lvl != "" {
				old.Level = lvl
			}
			known, err := scenarioIndex(folder)
			if err != nil {
				return err
			}
			new, without := rechecked(old, known)
			if err := keep(cmd, new, out); err != nil {
				return err
			}
			c := reports.Diff(old, new)
			if without > 0 {
				c.Notes = append(c.Notes, fmt.Sprintf("%s without a history keep their verdicts", plural(without, "result")))
			}
			return showDiff(cmd, c, look, "terminal", reports.FailOn(failOn), false)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&out, "out", "retrychaos-rechecked", "`FOLDER` for the new report")
	fl.StringVar(&level, "level", "", "least `LEVEL` whose findings count: must, should or may (default: the report's)")
	fl.StringVar(&folder, "scenarios", "", "`FOLDER` of scenario files, or one file, that the run was of, besides the library")
	fl.StringVar(&failOn, "fail-on", "broken", "`WHAT` is a regression: broken, unknown, changed or never")
	look.flags(cmd)
	complete(cmd, "level", "must", "should", "may")
	complete(cmd, "fail-on", "broken", "unknown", "changed", "never")
	_ = cmd.MarkFlagDirname("out")
	_ = cmd.MarkFlagFilename("scenarios", "yaml")
	return cmd
}

// scenarioIndex is the library, and what a folder has besides, by name.
func scenarioIndex(folder string) (map[string]*scenarios.Scenario, error) {
	list, err := scenarios.Library()
	if err != nil {
		return nil, err
	}
	if folder != "" {
		own, err := loadScenarios(folder)
		if err != nil {
			return nil, err
		}
		list = append(list, own...)
	}
	index := map[string]*scenarios.Scenario{}
	for i := range list {
		index[list[i].Name] = &list[i]
	}
	return index, nil
}

// rechecked judges every result again, and counts those without a history.
func rechecked(old *reports.Report, known map[string]*scenarios.Scenario) (*reports.Report, int) {
	without := 0
	run := reports.Run{Version: version(), Started: old.Started, Seed: old.Seed, World: old.World, Level: old.Level,
		Clients: old.Clients, Real: old.Real, Shard: old.Shard}
	var results []harness.Result
	for _, res := range old.Results {
		again, ok := harness.Recheck(res, known[res.Scenario], old.Level)
		if !ok {
			without++
		}
		results = append(results, again)
	}
	return reports.New(run, results), without
}
