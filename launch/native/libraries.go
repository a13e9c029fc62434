package native

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/leidenzipper/zipper/internal/jobenv"
	"github.com/leidenzipper/zipper/launch/spec"
)

// ShimPath returns the path of the library to preload, libmmpi-MPI.so: from the zipper command it
// is in ../lib/zipper, where it is installed, or ../lib, where it is built.
func ShimPath(m spec.MPI) (string, error) {
	p, err := libraryPath("libmmpi-" + string(m) + ".so")
	if errors.Is(err, fs.ErrNotExist) && m == ABI {
		return "", fmt.Errorf("the library for programs of MPI 5's standard ABI is not there (%s): run scripts/build where Open MPI 6 or MPICH 5 is installed with its development files",
			p)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("the library for %s is not there (%s): install %s and run scripts/build, or copy lib/ with bin/",
			m, p, packages[m])
	}
	return p, err
}

// unmapsPath returns the path of the library that watches the program's memory.
func unmapsPath() (string, error) {
	p, err := libraryPath(unmaps)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("%s=1 needs %s, which is not there: run scripts/build", jobenv.VarCache, p)
	}
	return p, err
}

const unmaps = "libmmpi-unmaps.so"

// libraryPath returns the path of a library of ours. It is an error if the file does not exist.
func libraryPath(name string) (string, error) {
	self, err := os.Executable()
	if err == nil {
		self, err = filepath.EvalSymlinks(self)
	}
	if err != nil {
		// The error is text, because a missing library is another error.
		return "", fmt.Errorf("cannot find out where zipper is installed (%s): is /proc mounted here?", err) //nolint:errorlint // see above
	}
	lib := filepath.Join(filepath.Dir(filepath.Dir(self)), "lib")
	p := filepath.Join(lib, name)
	if installed := filepath.Join(lib, "zipper", name); exists(installed) {
		p = installed
	}
	if strings.ContainsAny(p, " :") {
		return p, fmt.Errorf("%s cannot be preloaded, because of the space or colon in its path: install zipper elsewhere",
			p)
	}
	_, err = os.Stat(p)
	return p, err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
