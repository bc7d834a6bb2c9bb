package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  retrychaos version",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "retrychaos %s %s %s/%s\n", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			if err != nil {
				return failure{err}
			}
			return nil
		},
	}
}

// version is what the Go tool recorded of the main module; "devel" for a build from a checkout.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version
}

// invocation is how the user can start this program again: under `go run` there is no installed program to
// name, so the package is named.
func invocation() string {
	program := os.Args[0]
	if info, ok := debug.ReadBuildInfo(); ok && strings.Contains(program, "go-build") && info.Path != "" {
		return "go run " + info.Path
	}
	return strings.TrimSuffix(filepath.Base(program), ".exe")
}
