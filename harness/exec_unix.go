//go:build unix

package harness

import (
	"os/exec"
	"syscall"
)

// isolate gives the process a group of its own, so that a cancelled call takes its children along.
func isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
