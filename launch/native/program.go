package native

import (
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/leidenzipper/zipper/internal/wire"
	"github.com/leidenzipper/zipper/launch/spec"
)

// Program has the properties of an executable file that can be found without running it.
type Program struct {
	// Path is absolute.
	Path string
	// ELF is false for a script, or another file that the kernel knows how to run.
	ELF bool
	// Arch is the architecture for which an ELF file is built, as `uname -m` prints it; it is empty
	// for others than x86_64 and aarch64.
	Arch string
	// Static tells that there is no dynamic loader, so nothing can be preloaded.
	Static bool
	// SetUID tells that the loader ignores LD_PRELOAD.
	SetUID bool
	// Needs is the file that the program names for MPI, such as libmpi.so.12; MPI or ABI tells
	// whose that is.
	Needs string
	// MPI is the library that the program is linked to. It is empty for none (a script, Python,
	// dlopen).
	MPI spec.MPI
	// ABI tells that the program is linked to MPI 5's standard ABI, so to any library that has it;
	// MPI is then empty.
	ABI bool
	// First are sanitizers' libraries that the program names, which must come before all others.
	First []string
	// MMPI tells that the program is linked with libmmpi itself, so that it needs no preloading.
	MMPI bool
}

// missing is the error for a file that does not exist; errors.Is recognizes it as fs.ErrNotExist.
type missing string

func (m missing) Error() string { return string(m) }

// Is implements that.
func (missing) Is(target error) bool { return target == fs.ErrNotExist }

// InspectProgram finds name as execvp would (relative to dir when it has a slash) and inspects the
// file. The error says what is wrong with the file; it satisfies errors.Is(err, fs.ErrNotExist)
// when there is no such file.
func InspectProgram(name, dir string) (Program, error) {
	path := name
	if strings.Contains(name, "/") {
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
	} else {
		found, err := exec.LookPath(name)
		if err != nil {
			return Program{}, missing(fmt.Sprintf("program %q is not on PATH (write ./%s for one in the current directory)",
				name, name))
		}
		path = found
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return Program{}, err
	}
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return Program{}, missing(fmt.Sprintf("program %s does not exist", path))
	case err != nil:
		return Program{}, fmt.Errorf("program: %w", err)
	case st.IsDir():
		return Program{}, fmt.Errorf("program %s is a directory", path)
	case st.Mode()&0o111 == 0:
		return Program{}, fmt.Errorf("program %s is not executable (chmod +x %s)", path, path)
	}
	p := Program{Path: path, SetUID: st.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0}
	f, err := elf.Open(path)
	if err != nil {
		return p, nil // a script, whose interpreter decides
	}
	defer f.Close()
	p.ELF, p.Static = true, true
	p.Arch = map[elf.Machine]string{elf.EM_X86_64: "x86_64", elf.EM_AARCH64: "aarch64"}[f.Machine]
	for _, s := range f.Progs {
		if s.Type == elf.PT_INTERP {
			p.Static = false
		}
	}
	libs, err := f.ImportedLibraries()
	if err != nil {
		return p, nil // without a dynamic section
	}
	for _, l := range libs {
		known := p.MPI != "" || p.ABI
		switch {
		case strings.HasPrefix(l, "libmmpi-openmpi.so"):
			p.MMPI, p.MPI = true, spec.OpenMPI
		case strings.HasPrefix(l, "libmmpi-mpich.so"):
			p.MMPI, p.MPI = true, spec.MPICH
		case strings.HasPrefix(l, "libmmpi-abi.so"):
			p.MMPI, p.ABI = true, true
		case p.MPI != "":
		case strings.HasPrefix(l, "libmpi_abi.so."):
			p.ABI = true
		case strings.HasPrefix(l, "libmpi.so.40"), strings.HasPrefix(l, "libmpi.so.20"),
			strings.HasPrefix(l, "libmpi_mpifh.so"), strings.HasPrefix(l, "libmpi_usempif08.so"),
			strings.HasPrefix(l, "libmpi_cxx.so"):
			p.MPI = spec.OpenMPI
		case strings.HasPrefix(l, "libmpich"), strings.HasPrefix(l, "libmpi.so.12"),
			strings.HasPrefix(l, "libmpifort.so.12"):
			p.MPI = spec.MPICH
		}
		if mustBeFirst(l) {
			p.First = append(p.First, l)
		}
		if !known && (p.MPI != "" || p.ABI) {
			p.Needs = l
		}
	}
	return p, nil
}

// Fits refuses a program that is built for another architecture than this host's.
func (p Program) Fits() error {
	if here := wire.Architecture(); p.Arch != "" && p.Arch != here {
		return fmt.Errorf("program %s is built for %s, and this host is %s: give the cluster its own build (program=PATH, or {arch} in the program's name)",
			p.Path, p.Arch, here)
	}
	return nil
}

// Preloadable returns nil if the shim can be preloaded into the program. Otherwise the error says
// why not and what to do.
func (p Program) Preloadable() error {
	switch {
	case p.MMPI:
		return nil
	case p.Static:
		return fmt.Errorf("program %s is statically linked, so MMPI cannot be preloaded into it: link it dynamically, or with MMPI itself (zipper cc, zipper fc)",
			p.Path)
	case p.SetUID && os.Getuid() != 0:
		return fmt.Errorf("program %s is set-uid or set-gid, for which the loader ignores LD_PRELOAD: take that bit off, or link it with MMPI (zipper cc, zipper fc)",
			p.Path)
	}
	return nil
}

// Match refuses a program that is linked to another MPI than its cluster starts.
func (p Program) Match(m spec.MPI, cluster string) error {
	if p.MPI == "" || p.MPI == m {
		return nil
	}
	of := p.MPI.String()
	if p.MPI == spec.MPICH && !p.MMPI { // so are programs of libraries with MPICH's binary interface
		of = "MPICH, Intel MPI, MVAPICH or Cray MPICH"
	}
	return fmt.Errorf("program %s is linked to %s (%s) but cluster %s runs %s: give the cluster its own build (program=PATH) or the other library (mpi=%s)",
		p.Path, of, p.Needs, cluster, m, string(p.MPI))
}
