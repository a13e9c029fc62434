package native

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/leidenzipper/zipper/launch/spec"
)

// Language is a language that the compiler wrappers know.
type Language string

// Languages.
const (
	LangC       Language = "C"
	LangCXX     Language = "C++"
	LangFortran Language = "Fortran"
)

var compilers = map[Language]map[spec.MPI][]string{
	LangC:       {spec.OpenMPI: {"mpicc.openmpi", "mpicc"}, spec.MPICH: {"mpicc.mpich", "mpicc"}},
	LangCXX:     {spec.OpenMPI: {"mpicxx.openmpi", "mpicxx"}, spec.MPICH: {"mpicxx.mpich", "mpicxx"}},
	LangFortran: {spec.OpenMPI: {"mpifort.openmpi", "mpifort"}, spec.MPICH: {"mpifort.mpich", "mpifort"}},
}

// CompilerCommand returns the command that compiles or links with the MPI's own compiler wrapper
// and, when it links, with MMPI, so that the program needs no preloading. If m is empty, it is the
// MPI that is installed, Open MPI first.
func CompilerCommand(lang Language, m spec.MPI, args []string) ([]string, error) {
	if m == "" {
		for _, try := range []spec.MPI{spec.OpenMPI, spec.MPICH} {
			if _, err := findCompiler(lang, try); err == nil {
				m = try
				break
			}
		}
	}
	if m == "" {
		return nil, errors.New("no MPI compiler is installed here (on Debian: apt-get install libopenmpi-dev, or libmpich-dev)")
	}
	if m == ABI {
		return abiCompiler(lang, args)
	}
	path, err := findCompiler(lang, m)
	if err != nil {
		return nil, err
	}
	cmd := append([]string{path}, args...)
	if !links(args) {
		return cmd, nil
	}
	shim, err := ShimPath(m)
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(shim)
	// A linker that drops libraries that seem unneeded must be told not to. A Fortran program names
	// no C function of MPI. In a C program MMPI has all of these, so that the MPI library below it,
	// which the wrapper names after this, looks unused.
	return append(cmd, "-L"+dir, "-Wl,-rpath,"+dir, "-Wl,--no-as-needed", "-lmmpi-"+string(m)), nil
}

// links tells whether a compiler with these arguments links.
func links(args []string) bool {
	inputs := false
	for _, a := range args {
		switch a {
		case "-c", "-S", "-E", "-M", "-MM", "-fsyntax-only", "--version", "-show", "-compile-info", "--showme":
			return false
		}
		inputs = inputs || !strings.HasPrefix(a, "-")
	}
	return inputs
}

func findCompiler(lang Language, m spec.MPI) (string, error) {
	for _, name := range compilers[lang][m] {
		p, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if strings.HasSuffix(name, "."+string(m)) {
			return p, nil
		}
		out, _ := exec.Command(p, "-show").CombinedOutput()
		mpich := strings.Contains(string(out), "mpich") ||
			strings.Contains(string(out), "-lmpi ") && !strings.Contains(string(out), "open-mpi") &&
				!strings.Contains(string(out), "openmpi")
		if mpich == (m == spec.MPICH) {
			return p, nil
		}
	}
	return "", fmt.Errorf("no %s compiler of %s on PATH (on Debian: apt-get install lib%s-dev)", lang, m, m)
}

// ParseTarget checks the name of a compiler's target: an MPI library, or ABI.
func ParseTarget(s string) (spec.MPI, error) {
	if s == string(ABI) {
		return ABI, nil
	}
	m, err := spec.ParseMPI(s)
	if err != nil {
		err = fmt.Errorf("%w, or abi", err)
	}
	return m, err
}

// SplitMPI takes --mpi VALUE or --mpi=VALUE out of a compiler's arguments.
func SplitMPI(args []string) (m spec.MPI, rest []string, err error) {
	rest = slices.Clone(args)
	for i, a := range rest {
		if v, ok := strings.CutPrefix(a, "--mpi="); ok {
			m, err = ParseTarget(v)
			return m, slices.Delete(rest, i, i+1), err
		}
		if a == "--mpi" {
			if i+1 == len(rest) {
				return "", nil, errors.New("--mpi: want openmpi, mpich or abi")
			}
			m, err = ParseTarget(rest[i+1])
			return m, slices.Delete(rest, i, i+2), err
		}
	}
	return "", rest, nil
}
