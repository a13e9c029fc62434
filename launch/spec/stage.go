package spec

import (
	"fmt"
	"path/filepath"
)

// Stage names the files that are copied to the clusters and back, by paths that are relative to the
// current directory here and to the working directory of the cluster's processes there.
type Stage struct {
	// Files and directories that are copied from the current directory to each cluster's dir:
	// before the halves are submitted.
	In []string `yaml:"in"`
	// Files and directories that are copied from each cluster's dir after the job, into a directory
	// with the cluster's name.
	Out []string `yaml:"out"`
}

// check requires paths that stay below the directory.
func (s Stage) check() error {
	for _, f := range append(append([]string(nil), s.In...), s.Out...) {
		if !filepath.IsLocal(f) {
			return fmt.Errorf("stage: %q: want a path that is relative and has no .., because it is copied to the same place below the cluster's directory", f)
		}
	}
	return nil
}
