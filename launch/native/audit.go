package native

import (
	"debug/elf"
	"errors"
	"io/fs"
	"strings"
)

// A program that is not linked to MPI itself, an interpreter for one, may load an MPI library
// later, and reach it past all that is preloaded. Where the loader can be told (LD_AUDIT) it gets
// our library in place of the MPI library (cgo/audit).

const (
	auditLibrary = "libmmpi-audit.so"
	// signalsLibrary is preloaded with it, because what is loaded later comes behind the C library.
	signalsLibrary = "libmmpi-signals.so"
	// VarABILibrary tells libmmpi-audit.so which file is the cluster's libmpi_abi.so.1.
	VarABILibrary = "ZIPPER_ABI_LIBRARY"
)

// audited tells whether the loader is to be told, and with which library. Before glibc 2.35 every
// call of a program's that is audited would be slow, and others than glibc have no LD_AUDIT.
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

// auditable tells whether the loader that a program names is glibc's of 2.35 or newer.
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
