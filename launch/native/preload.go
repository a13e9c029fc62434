package native

import (
	"debug/elf"
	"path/filepath"
	"slices"
	"strings"
)

// preload returns the LD_PRELOAD of a program that is to run with the shim, given the user's own. A
// tool that wraps MPI calls by the profiling interface (it defines MPI_Send and calls PMPI_Send)
// comes before the shim, which defines both, so that the program calls the tool and the tool calls
// the shim. A sanitizer's library comes before all others, because it would end the process
// otherwise; those that the program names are the first. Everything else comes after the shim,
// because a preloaded MPI library would take its place.
func preload(shim, old string, first ...string) string {
	var before, after []string
	first = slices.Clone(first)
	for _, lib := range libraries(old) {
		switch {
		case mustBeFirst(lib):
			first = slices.DeleteFunc(first, func(l string) bool { return l == filepath.Base(lib) })
			first = append(first, lib)
		case filepath.Base(lib) == filepath.Base(shim): // of a zipper exec within another one's job
		case wrapsMPI(lib):
			before = append(before, lib)
		default:
			after = append(after, lib)
		}
	}
	return strings.Join(slices.Concat(first, before, []string{shim}, after), ":")
}

// mustBeFirst tells whether a library is a sanitizer's, whose malloc and system calls all others
// have to use.
func mustBeFirst(lib string) bool {
	name, _, _ := strings.Cut(filepath.Base(lib), ".so")
	return slices.Contains([]string{"libasan", "libtsan", "libhwasan", "liblsan", "libclang_rt.asan-x86_64",
		"libclang_rt.tsan-x86_64", "libclang_rt.asan-aarch64", "libclang_rt.tsan-aarch64"}, name)
}

// libraries splits the value of LD_PRELOAD.
func libraries(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ':' || r == ' ' })
}

// preloadFirst returns LD_PRELOAD with a library before all others but sanitizers, so that it sees
// all calls of these.
func preloadFirst(lib, old string) string {
	var first, rest []string
	for _, l := range libraries(old) {
		switch {
		case filepath.Base(l) == filepath.Base(lib):
		case mustBeFirst(l):
			first = append(first, l)
		default:
			rest = append(rest, l)
		}
	}
	return strings.Join(slices.Concat(first, []string{lib}, rest), ":")
}

// preloadLast returns LD_PRELOAD with a library after all others, whose definitions hide its own.
func preloadLast(lib, old string) string {
	rest := slices.DeleteFunc(libraries(old), func(l string) bool { return l == lib })
	return strings.Join(append(rest, lib), ":")
}

// leaveOut returns a list of libraries without those of a file name.
func leaveOut(name, list string) string {
	return strings.Join(slices.DeleteFunc(libraries(list), func(l string) bool { return filepath.Base(l) == name }), ":")
}

// wrapsMPI tells whether a shared object defines functions MPI_…, and none PMPI_…. It returns false
// for a name that the loader has to search for, because the file is not known here.
func wrapsMPI(lib string) bool {
	f, err := elf.Open(lib)
	if err != nil {
		return false
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		return false
	}
	wraps := false
	for _, s := range symbols {
		if s.Section == elf.SHN_UNDEF || elf.ST_TYPE(s.Info) != elf.STT_FUNC {
			continue
		}
		if strings.HasPrefix(s.Name, "PMPI_") {
			return false
		}
		wraps = wraps || strings.HasPrefix(s.Name, "MPI_") || strings.HasPrefix(s.Name, "mpi_")
	}
	return wraps
}
