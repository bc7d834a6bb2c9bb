package scenarios

import (
	"embed"
	"io/fs"
	"slices"
	"sync"
)

//go:embed library/*.yaml
var libraryFiles embed.FS

var library = sync.OnceValues(func() ([]Scenario, error) {
	sub, err := fs.Sub(libraryFiles, "library")
	if err != nil {
		return nil, err
	}
	return loadFS(sub, "scenarios/library")
})

// Library returns the scenarios that ship with retrychaos, sorted by name. The slice is the caller's own;
// the scenarios in it are shared and read-only.
func Library() ([]Scenario, error) {
	list, err := library()
	return slices.Clone(list), err
}

// LibraryFS returns the files of the library, one a family, for those who want to read them as they were
// written.
func LibraryFS() fs.FS {
	sub, err := fs.Sub(libraryFiles, "library")
	if err != nil {
		panic(err) // the folder is embedded above
	}
	return sub
}
