package reports

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Names of the files that WriteAll writes.
const (
	FileJSON     = "report.json"
	FileJUnit    = "junit.xml"
	FileMarkdown = "report.md"
	FileHTML     = "report.html"
)

// formats are the files of a report. A new format is a line here and a file of its own.
var formats = []struct {
	name  string
	write func(io.Writer, *Report) error
}{
	{FileJSON, func(w io.Writer, r *Report) error { return r.WriteJSON(w) }},
	{FileJUnit, WriteJUnit},
	{FileMarkdown, func(w io.Writer, r *Report) error { return WriteMarkdown(w, r, MarkdownOptions{}) }},
	{FileHTML, func(w io.Writer, r *Report) error { return WriteHTML(w, r, HTMLOptions{}) }},
	{FileTAP, WriteTAP},
}

// formatWords are the files that are not called report.FORMAT.
var formatWords = map[string]string{FileJUnit: "junit", FileMarkdown: "markdown"}

// Formats names the formats of a report, in their order: json, junit, markdown and so on.
func Formats() []string {
	var names []string
	for _, f := range formats {
		names = append(names, formatName(f.name))
	}
	return names
}

func formatName(file string) string {
	if word, ok := formatWords[file]; ok {
		return word
	}
	return strings.TrimPrefix(filepath.Ext(file), ".")
}

// Write writes the report in one of Formats.
func Write(w io.Writer, r *Report, format string) error {
	for _, f := range formats {
		if formatName(f.name) == format {
			return f.write(w, r)
		}
	}
	return fmt.Errorf("no format %q: it is one of %s", format, strings.Join(Formats(), ", "))
}

// WriteAll writes the report in every format into a folder, which it makes if need be, and returns the paths of
// what was written. Each file appears whole or not at all: a reader never sees half of one, and an earlier one
// stays until the new one is complete. One format that fails does not keep the others from being written.
func WriteAll(dir string, r *Report) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("report folder: %w", err)
	}
	var paths []string
	var errs []error
	for _, f := range formats {
		path := filepath.Join(dir, f.name)
		if err := writeFile(path, func(w io.Writer) error { return f.write(w, r) }); err != nil {
			errs = append(errs, fmt.Errorf("write %s: %w", path, err))
			continue
		}
		paths = append(paths, path)
	}
	return paths, errors.Join(errs...)
}

// Prepare makes the folder that WriteAll will write into, and returns an error if nothing can be written there.
func Prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("report folder: %w", err)
	}
	probe, err := os.CreateTemp(dir, ".probe.*")
	if err != nil {
		return fmt.Errorf("report folder: %w", err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

// writeFile writes to a temporary file beside path and renames it when it is complete.
func writeFile(path string, write func(io.Writer) error) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			tmp.Close() // a second close after a failed rename is an error of no interest
			os.Remove(tmp.Name())
		}
	}()
	b := bufio.NewWriterSize(tmp, 64<<10)
	if err := write(b); err != nil {
		return err
	}
	if err := b.Flush(); err != nil {
		return err
	}
	if err := tmp.Chmod(0o644); err != nil {
		return err
	}
	if err := tmp.Close(); err != nil {
		return err
	}
	return os.Rename(tmp.Name(), path)
}

// inDir names a file of a report's folder for people.
func inDir(dir, name string) string { return filepath.Join(dir, name) }
