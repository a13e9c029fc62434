package main

import (
	"fmt"
	"strings"
)

// nulls is what a wrapper does about results that have no place to go: native libraries find that
// out, so what is called instead of them must. Buffers may be NULL where nothing is in them,
// statuses and arrays where they are ignored.
func nulls(f function) string {
	var b strings.Builder
	for i, a := range f.params {
		absent := "!" + a.name
		switch {
		case a.typ == "MPI_Request" && a.suffix == "[]" && i > 0: // as many as the argument before it says
			absent = fmt.Sprintf("%s > 0 && !%s", f.params[i-1].name, a.name)
		case !isResult(a):
			continue
		}
		name := a.name
		if name == nameless(i) {
			name = fmt.Sprintf("argument %d", i+1)
		}
		text := fmt.Sprintf("%q, \"%s is NULL\"", f.mpi(), name)
		fault := fmt.Sprintf("z_raise_on(MPI_COMM_WORLD, MPI_ERR_ARG, %s)", text)
		comm, win, file := f.handle("MPI_Comm"), f.handle("MPI_Win"), f.handle("MPI_File")
		switch {
		case win != "":
			absent += fmt.Sprintf(" && zwin_find(%s)", win)
			fault = fmt.Sprintf("zwin_raise(zwin_find(%s), MPI_ERR_ARG, %s)", win, text)
		case strings.HasPrefix(f.name, "File_"):
			if file == "" {
				file = "MPI_FILE_NULL"
			}
			fault = fmt.Sprintf("z_raise_file(%s, MPI_ERR_ARG, %s)", file, text)
		case comm != "":
			fault = fmt.Sprintf("z_raise_on(%s, MPI_ERR_ARG, %s)", comm, text)
		}
		fmt.Fprintf(&b, "  if (__builtin_expect(%s, 0)) return %s;\n", absent, fault)
	}
	return b.String()
}

// isResult reports whether the function writes one value, or a handle, where the argument points.
func isResult(a param) bool {
	pointed, ok := strings.CutSuffix(a.typ, "*")
	if !ok || a.suffix != "" {
		return false
	}
	pointed = strings.TrimSpace(pointed)
	return !strings.HasSuffix(pointed, "*") && !strings.HasPrefix(pointed, "const ") && pointed != "void" && pointed != "MPI_Status" &&
		!strings.HasSuffix(pointed, "_function") // no callback is one of MPI's own: MPI_NULL_COPY_FN
}
