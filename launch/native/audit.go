package native

import (
	"debug/elf"
	"errors"
	"io/fs"
	"strings"
)

// A program that is not linked to MPI itself, such as an interpreter, may load an MPI library
// later, and then calls it directly, because preloaded libraries do not come first there. Where the
// loader supports audit libraries (LD_AUDIT) it gets our library in place of the MPI library
// (cgo/audit).

const (
	auditLibrary = "libmmpi-audit.so"
	// signalsLibrary is preloaded with it, because libraries that are loaded later come after the C
	// library.
	signalsLibrary = "libmmpi-signals.so"
	// VarABILibrary names the file of the cluster's libmpi_abi.so.1 for libmmpi-audit.so.
	VarABILibrary = "ZIPPER_ABI_LIBRARY"
)

// audited tells whether the loader needs an audit library, and which. Before glibc 2.35 every call
// of an audited program would be slow, and other C libraries have no LD_AUDIT.
func (p Program) audited() (lib string, err error) {
	if p.MMPI || p.ABI || p.MPI != "" || !auditable("/bin/sh") {
		return "", nil
	}
	lib, err = libraryPath(auditLibrary)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	return lib, err
}

// auditable tells whether the loader that a program names is that of glibc 2.35 or newer.
func auditable(program string) bool {
	f, err := elf.Open(program)
	if err != nil {
		return false
	}
	defer f.Close()
	for _, s := range f.Progs {
		if s.Type != elf.PT_INTERP {
			continue
		}
		path := make([]byte, s.Filesz)
		if _, err := s.ReadAt(path, 0); err != nil {
			return false
		}
		return defines(strings.TrimRight(string(path), "\x00"), "GLIBC_2.35")
	}
	return false
}

// defines tells whether a shared object has symbols of a version.
func defines(lib, version string) bool {
	f, err := elf.Open(lib)
	if err != nil {
		return false
	}
	defer f.Close()
	versions, err := f.DynamicVersions()
	if err != nil {
		return false
	}
	for _, v := range versions {
		if v.Name == version {
			return true
		}
	}
	return false
}
