//go:build unix

// Package procgroup gives a process a group of its own, so that killing it takes its children along.
package procgroup

import (
	"os/exec"
	"syscall"
)

// Isolate prepares cmd, which must have a context: when that ends the whole group is killed.
func Isolate(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
}
