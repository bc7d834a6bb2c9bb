//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package outbox

import (
	"os"
	"syscall"
)

// release gives up the lock of a file whose opening has panicked. Closing is not
// enough: bbolt's mapping of the file is still there, cannot be reached, and
// keeps the lock.
func release(f *os.File) {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
	_ = f.Close()
}
