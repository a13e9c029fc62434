package native

import (
	"debug/elf"
	"path/filepath"
	"slices"
	"strings"
)

// preload is the LD_PRELOAD of a program that is to run with the shim, given the user's own. A tool
// that wraps MPI calls by the profiling interface (it defines MPI_Send and calls PMPI_Send) comes
// before the shim, which defines both: so the program reaches the tool and the tool the shim.
// Everything else comes after it: a preloaded MPI library would take its place.
func preload(shim, old string) string {
	var before, after []string
	for _, lib := range libraries(old) {
		switch {
		case filepath.Base(lib) == filepath.Base(shim): // a zipper exec within another one's
		case wrapsMPI(lib):
			before = append(before, lib)
		default:
			after = append(after, lib)
		}
	}
	return strings.Join(slices.Concat(before, []string{shim}, after), ":")
}

// libraries takes the value of LD_PRELOAD apart.
func libraries(list string) []string {
	return strings.FieldsFunc(list, func(r rune) bool { return r == ':' || r == ' ' })
}

// preloadFirst is LD_PRELOAD with a library before all others: nothing that these do escapes it.
func preloadFirst(lib, old string) string {
	rest := slices.DeleteFunc(libraries(old), func(l string) bool { return filepath.Base(l) == filepath.Base(lib) })
	return strings.Join(append([]string{lib}, rest...), ":")
}

// preloadLast is LD_PRELOAD with a library after all others: what it defines they define for it.
func preloadLast(lib, old string) string {
	rest := slices.DeleteFunc(libraries(old), func(l string) bool { return l == lib })
	return strings.Join(append(rest, lib), ":")
}

// wrapsMPI tells whether a shared object defines functions MPI_…, and none PMPI_…. A name that the
// loader has to search for is none: it is not known here which file that will be.
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
