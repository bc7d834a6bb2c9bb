//go:build !unix

package harness

import "os/exec"

// isolate does nothing where there are no process groups: a cancelled call kills its process alone.
func isolate(*exec.Cmd) {}
