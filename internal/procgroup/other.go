//go:build !unix

// Package procgroup gives a process a group of its own, so that killing it takes its children along.
package procgroup

import "os/exec"

// Isolate does nothing where there are no process groups: the process is killed alone.
func Isolate(*exec.Cmd) {}
