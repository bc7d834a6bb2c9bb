package cli

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/retrychaos/retrychaos/harness/herd"
	"github.com/retrychaos/retrychaos/harness/herd/plots"
)

func newHerdTables() *cobra.Command {
	var seeds, runs int
	var out string
	var quiet bool
	cmd := &cobra.Command{
		Use:   "tables",
		Short: "Reproduce the outage table and the published table of back-off and jitter",
		Long: `Reproduce the outage table and the published table of back-off and jitter, with real clients
in virtual time, side by side with their reference figures. Exit status 1 where a figure is
outside of its margin, 3 where it was interrupted. With --out the page herd.md and its plots are written to that folder.`,
		Example: `  retrychaos herd tables --seeds 3 --runs 20
  retrychaos herd tables --out docs`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if seeds < 1 || runs < 1 {
				return fmt.Errorf("--seeds %d --runs %d: both must be positive", seeds, runs)
			}
			progress := newSteps(cmd, quiet)
			defer oneProcessor()()
			tables, err := herd.Reproduce(bubbles(), seeds, runs, progress.unlessOver(cmd.Context()))
			progress.close()
			if err != nil {
				return err
			}
			if out == "" {
				err = tables.WriteMarkdown(cmd.OutOrStdout())
			} else {
				err = writePage(out, tables, fmt.Sprintf("retrychaos herd tables --seeds %d --runs %d --out %s", seeds, runs, out))
			}
			if err != nil {
				return err
			}
			misses := tables.Misses()
			for _, m := range misses {
				fmt.Fprintln(cmd.ErrOrStderr(), "outside of its margin:", m)
			}
			if len(misses) > 0 {
				return exitError(1)
			}
			return nil
		},
	}
	fl := cmd.Flags()
	fl.IntVar(&seeds, "seeds", 20, "runs of each outage")
	fl.IntVar(&runs, "runs", 100, "runs of each cell of the published table")
	fl.StringVar(&out, "out", "", "folder for the page herd.md and its plots")
	fl.BoolVarP(&quiet, "quiet", "q", false, "no progress")
	_ = cmd.MarkFlagDirname("out")
	return cmd
}

// writePage writes the page and its plots, which lie in a folder of their own beside it.
func writePage(dir string, tables herd.Tables, command string) error {
	folder := filepath.Join(dir, "herd")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	var shown string
	for _, s := range herd.Outages(false) {
		var runs []herd.Run
		for _, r := range tables.Shown {
			if r.Setting.Name == s.Name {
				runs = append(runs, r)
			}
		}
		arrivals, err := plots.Arrivals(runs)
		if err != nil {
			return err
		}
		goodput, err := plots.Goodput(runs)
		if err != nil {
			return err
		}
		for name, svg := range map[string][]byte{"arrivals-": arrivals, "goodput-": goodput} {
			if err := os.WriteFile(filepath.Join(folder, name+s.Name+".svg"), svg, 0o644); err != nil {
				return err
			}
		}
		shown += fmt.Sprintf("\n![attempts a second, %[1]s](herd/arrivals-%[1]s.svg)\n\n![calls that succeed a second, %[1]s](herd/goodput-%[1]s.svg)\n", s.Name)
	}
	return writeFile(filepath.Join(dir, "herd.md"), func(w *os.File) error {
		fmt.Fprintf(w, "# What many clients do to one server\n\nMeasured by `%s`, with the bundled client over `net/http` and the virtual network. "+
			"`retrychaos herd --help` tells how to put other clients and servers to the same test; [herd-peers.md](herd-peers.md) has what came of it for "+
			"clients of others, and [spread.md](spread.md) how sure the verdict is that tells whether a herd is spread.\n\n", command)
		if err := tables.WriteMarkdown(w); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "\n## The course of the outages\n\nThe first seed.\n%s", shown)
		return err
	})
}
