package reports

import (
	"fmt"
	"os"
	"path/filepath"
)

// ReadFile reads a report from a file, or from the report.json of a folder. Errors name the file. The path that
// was read is returned, so that it can be told whether two are one.
func ReadFile(path string) (*Report, string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, "", err
	}
	if info.IsDir() {
		inside := filepath.Join(path, FileJSON)
		if _, err := os.Stat(inside); err != nil {
			return nil, "", fmt.Errorf("%s is a folder without a %s: give the folder that a run has written, or the file", path, FileJSON)
		}
		path = inside
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, "", err
	}
	defer f.Close()
	r, err := ReadJSON(f)
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", path, err)
	}
	return r, path, nil
}
