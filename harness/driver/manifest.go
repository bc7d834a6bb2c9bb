package driver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// ManifestFile is the name of the file that describes the driver of a folder.
const ManifestFile = "driver.json"

// A Manifest describes the driver in a folder of its own.
type Manifest struct {
	Name    string   `json:"name"`    // of the client; its driver must say the same
	Doc     string   `json:"doc"`     // one line: what it is, and what was switched on
	Command []string `json:"command"` // run in the folder of the manifest
	Check   []string `json:"check"`   // exits with 0 if what the driver needs is there; run in the same place
	Install string   `json:"install"` // the script that installs it, in the folder

	dir string
}

// checkTime bounds a manifest's check.
const checkTime = 30 * time.Second

// Load reads the manifests of all folders in dir, by name. A folder without one is no driver.
func Load(dir string) ([]Manifest, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*", ManifestFile))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s holds no driver: no folder in it has a %s", dir, ManifestFile)
	}
	var list []Manifest
	var errs []error
	for _, file := range files {
		m, err := read(file)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
			continue
		}
		if slices.ContainsFunc(list, func(o Manifest) bool { return o.Name == m.Name }) {
			errs = append(errs, fmt.Errorf("%s: there are two drivers called %q", file, m.Name))
		}
		list = append(list, m)
	}
	return list, errors.Join(errs...)
}

func read(file string) (Manifest, error) {
	var m Manifest
	data, err := os.ReadFile(file)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return m, err
	}
	if m.dir, err = filepath.Abs(filepath.Dir(file)); err != nil {
		return m, err
	}
	var missing []string
	for field, empty := range map[string]bool{"name": m.Name == "", "doc": m.Doc == "", "command": len(m.Command) == 0, "check": len(m.Check) == 0, "install": m.Install == ""} {
		if empty {
			missing = append(missing, field)
		}
	}
	if slices.Sort(missing); len(missing) > 0 {
		return m, fmt.Errorf("missing: %s", strings.Join(missing, ", "))
	}
	return m, nil
}

// Driver returns the driver; nothing is started.
func (m Manifest) Driver() *Driver { return New(m.Name, m.Name, m.dir, m.Command...) }

// Dir is the folder of the manifest.
func (m Manifest) Dir() string { return m.dir }

// Installed runs the manifest's check and returns "" if it succeeds, else what is missing and what to do.
func (m Manifest) Installed() string {
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, m.Check[0], m.Check[1:]...)
	cmd.Dir = m.dir
	cmd.WaitDelay = killDelay
	err := cmd.Run()
	if err == nil {
		return ""
	}
	why := ""
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		why = fmt.Sprintf(" (there is no %s)", m.Check[0])
	}
	script := filepath.Join(m.dir, m.Install)
	if wd, err := os.Getwd(); err == nil {
		if rel, err := filepath.Rel(wd, script); err == nil && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			script = rel
		}
	}
	return fmt.Sprintf("%s is not installed%s: run %s", m.Name, why, script)
}
