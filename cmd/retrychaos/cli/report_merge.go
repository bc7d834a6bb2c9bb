package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/retrychaos/retrychaos/reports"
)

func newReportMerge() *cobra.Command {
	var (
		look     look
		out      string
		annotate bool
	)
	cmd := &cobra.Command{
		Use:                   "merge SHARD... [flags]",
		DisableFlagsInUseLine: true,
		Short:                 "One report of the shards of a run",
		Long: `One report of the shards of a run (retrychaos run --shard). It equals the report of the
whole run but for the times. A shard is a report.json, the folder that holds it, or a
folder of such folders.

Shards that are missing, given twice, not whole, or of another run (other scenarios,
clients, versions, seed, world or level) are refused, each by its name.

Exit status: as of run.`,
		Example: `  retrychaos run --shard 1/3 --seed 7 --out shards/1    # and 2/3, 3/3, on other machines
  retrychaos report merge shards --out retrychaos-report`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return helpful(cmd, errors.New("name the reports of all shards"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := look.check(); err != nil {
				return err
			}
			files, err := shardFiles(args, out)
			if err != nil {
				return err
			}
			list, err := readReports(files)
			if err != nil {
				return err
			}
			var parts []reports.Part
			for i, r := range list {
				parts = append(parts, reports.Part{Name: files[i], Report: r})
			}
			merged, err := reports.Merge(parts)
			if err != nil {
				return err
			}
			if err := keep(cmd, merged, out); err != nil {
				return err
			}
			o := reports.TerminalOptions{Color: look.colored(cmd), Width: look.columns(cmd), Verbose: look.verbose, Dir: out}
			if err := tell(cmd, merged, o, annotate); err != nil {
				return failure{err}
			}
			return exit(merged.ExitCode(merged.Level))
		},
	}
	cmd.Flags().StringVar(&out, "out", reportDir, "`FOLDER` for the reports")
	cmd.Flags().BoolVar(&annotate, "annotations", false, "write GitHub annotations to stdout (default: where GITHUB_ACTIONS is true)")
	look.flags(cmd)
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

// shardFiles finds the reports of folders of folders. What an earlier merge has left in the folder out, among
// them, is passed over: it is about to be replaced, and a job that runs again must not fail for it.
func shardFiles(args []string, out string) ([]string, error) {
	into, _ := os.Stat(out)
	var files []string
	var errs []error
	for _, arg := range args {
		info, err := os.Stat(arg)
		if err != nil || !info.IsDir() {
			files = append(files, arg) // what is not there is told by who reads it
			continue
		}
		if _, err := os.Stat(filepath.Join(arg, reports.FileJSON)); err == nil {
			files = append(files, arg)
			continue
		}
		entries, err := os.ReadDir(arg)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found := 0
		for _, e := range entries {
			if folder, err := os.Stat(filepath.Join(arg, e.Name())); err == nil && into != nil && os.SameFile(folder, into) {
				continue
			}
			file := filepath.Join(arg, e.Name(), reports.FileJSON)
			if _, err := os.Stat(file); err == nil {
				files = append(files, file)
				found++
			}
		}
		if found == 0 {
			errs = append(errs, fmt.Errorf("%s is a folder without a %s, and so is every folder in it", arg, reports.FileJSON))
		}
	}
	return files, errors.Join(errs...)
}

// keep writes all formats of a report into a folder.
func keep(cmd *cobra.Command, r *reports.Report, dir string) error {
	if dir == "" {
		return errors.New("--out: the folder has no name")
	}
	if err := reports.Prepare(dir); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	paths, err := reports.WriteAll(dir, r)
	if err != nil {
		return failure{fmt.Errorf("writing the reports: %w", err)}
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "reports: %s\n", strings.Join(paths, " "))
	return nil
}
