package peers

import (
	"os"
	"path/filepath"
	"runtime"
)

// DriverFolder is the folder with the drivers for clients of other languages: drivers in the current one, or in
// the source of this package where the program was built.
func DriverFolder() string {
	const name = "drivers"
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return name
	}
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), name)
}
