package native

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// abiCompiler returns the command for programs of the standard ABI: this machine's own compiler
// with the flags that scripts/build found, because not every installation has a wrapper for that
// ABI.
func abiCompiler(lang Language, args []string) ([]string, error) {
	var variable, name string
	switch lang {
	case LangC:
		variable, name = "CC", "cc"
	case LangCXX:
		variable, name = "CXX", "c++"
	case LangFortran:
		return nil, errors.New("MPI 5's standard ABI is for C only: neither Open MPI 6 nor MPICH 5 has a Fortran library for it, so build Fortran programs for each library (--mpi openmpi, --mpi mpich)")
	}
	compiler := strings.Fields(os.Getenv(variable)) // such as "ccache gcc"
	if len(compiler) == 0 {
		compiler = []string{name}
	}
	path, err := exec.LookPath(compiler[0])
	if err != nil {
		return nil, fmt.Errorf("no %s compiler: %w (%s names another)", lang, err, variable)
	}
	shim, err := ABIShimPath()
	if err != nil {
		return nil, err
	}
	compile, link, err := flags(filepath.Dir(shim))
	if err != nil {
		return nil, err
	}
	cmd := append([]string{path}, compiler[1:]...)
	cmd = append(append(cmd, compile...), args...)
	if links(args) {
		cmd = append(cmd, link...)
	}
	return cmd, nil
}

// flags reads the file that scripts/build wrote for pkg-config, which is beside the libraries where
// they were built, and beside their directory where they are installed.
func flags(libraries string) (compile, link []string, err error) {
	const file = "pkgconfig/mmpi-abi.pc"
	include := filepath.Join(filepath.Dir(libraries), "include")
	text, err := os.ReadFile(filepath.Join(libraries, file))
	if errors.Is(err, fs.ErrNotExist) {
		text, err = os.ReadFile(filepath.Join(filepath.Dir(libraries), file))
		include = filepath.Join(filepath.Dir(filepath.Dir(libraries)), "include")
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, fmt.Errorf("%s is not there: run scripts/build, or copy pkgconfig/ with the libraries", filepath.Join(libraries, file))
	}
	if err != nil {
		return nil, nil, err
	}
	here := strings.NewReplacer("${libdir}", libraries, "${includedir}", include)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Cflags:"); ok {
			compile = strings.Fields(here.Replace(rest))
		}
		if rest, ok := strings.CutPrefix(line, "Libs:"); ok {
			link = strings.Fields(here.Replace(rest))
		}
	}
	return compile, link, nil
}
