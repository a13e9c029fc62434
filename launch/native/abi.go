package native

import (
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leidenzipper/zipper/launch/spec"
)

// A program of MPI 5's standard ABI names libmpi_abi.so.1, and every MPI library has a file of that
// name. The loader takes the first in its directories, which in a cluster of another library is the
// wrong one: every process would be a world of its own. So each cluster preloads its own file,
// which the loader then takes for the one that the program names.

const abiName = "libmpi_abi.so.1"

// ABI stands for the standard ABI in the name of the library to preload, and where a compiler is
// chosen. It is not a library that a cluster could run.
const ABI spec.MPI = "abi"

// Shim returns the path of the library to preload for this program in a cluster of an MPI library.
func (p Program) Shim(m spec.MPI) (string, error) {
	if p.ABI {
		return ABIShimPath()
	}
	return ShimPath(m)
}

// ABIShimPath returns the path of the library to preload for programs of the standard ABI.
func ABIShimPath() (string, error) { return ShimPath(ABI) }

// FindABI returns the path of an MPI library's libmpi_abi.so.1. It is empty if the loader, which
// searches the directories of path (LD_LIBRARY_PATH) first, finds that file by itself.
func FindABI(m spec.MPI, path string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		lib := filepath.Join(dir, abiName)
		if _, err := os.Stat(lib); err == nil {
			if ofABI(lib) == m {
				return "", nil
			}
			break
		}
	}
	dirs := libraryDirs(m)
	for _, dir := range dirs {
		for _, name := range []string{abiName, "libmpi_abi_" + string(m) + ".so.1*"} { // Debian has both side by side
			found, _ := filepath.Glob(filepath.Join(dir, name)) // the pattern is valid
			for _, lib := range found {
				if ofABI(lib) == m && !strings.ContainsAny(lib, " :") {
					return lib, nil
				}
			}
		}
	}
	return "", fmt.Errorf("there is no %s of %s in %s: put the directory where it lies into LD_LIBRARY_PATH, or install a release of %s with MPI 5's standard ABI (Open MPI 6, MPICH 5)",
		abiName, m, strings.Join(dirs, ", "), m)
}

// libraryDirs returns the directories where the libraries of an MPI installation can be: beside its
// launcher, and the system's.
func libraryDirs(m spec.MPI) []string {
	var dirs []string
	add := func(prefix string) {
		multi, _ := filepath.Glob(filepath.Join(prefix, "lib", "*-linux-gnu*"))
		for _, dir := range append([]string{filepath.Join(prefix, "lib"), filepath.Join(prefix, "lib64")}, multi...) {
			if st, err := os.Stat(dir); err == nil && st.IsDir() && !slices.Contains(dirs, dir) {
				dirs = append(dirs, dir)
			}
		}
	}
	for _, name := range launchers[m] {
		if p, err := exec.LookPath(name); err == nil {
			add(filepath.Dir(filepath.Dir(p)))
			if p, err = filepath.EvalSymlinks(p); err == nil {
				add(filepath.Dir(filepath.Dir(p)))
			}
		}
	}
	add("/usr")
	return dirs
}

// ofABI returns the MPI library to which a libmpi_abi.so.1 belongs, or an empty name.
func ofABI(lib string) spec.MPI {
	f, err := elf.Open(lib)
	if err != nil {
		return ""
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return ""
	}
	for _, s := range symbols { // its own symbols, or those that it takes from the library below
		switch {
		case strings.HasPrefix(s.Name, "ompi_"):
			return spec.OpenMPI
		case strings.HasPrefix(s.Name, "MPIR_"):
			return spec.MPICH
		}
	}
	return ""
}
