package main

import (
	"fmt"
	"slices"
	"strings"
)

// nulls returns the checks of a wrapper for NULL results and NULL names: native libraries report
// these, so the functions that are called instead of them must. The standard allows NULL for a
// buffer or an array without elements, for an ignored status, and for a string whose room is 0, by
// which a program asks for its length. Errors are raised on the object of the call: window, file,
// session, communicator, or the error handler passed for a new communicator.
func nulls(f function) string {
	var b strings.Builder
	rooted := slices.ContainsFunc(f.params, func(a param) bool { return a.name == "root" })
	for i, a := range f.params {
		absent := "!" + a.name
		switch {
		// the argument before it is the length
		case strings.TrimPrefix(a.typ, "const ") == "MPI_Request" && a.suffix == "[]" && i > 0:
			absent = fmt.Sprintf("%s > 0 && !%s", f.params[i-1].name, a.name)
		case a.is("char*") && i > 0 && f.params[i-1].is("int*"): // the argument before it is the room
			absent = fmt.Sprintf("*%s > 0 && !%s", f.params[i-1].name, a.name)
		case a.is("constchar*") && !rooted: // names have no meaning outside of the root
		case !isResult(a):
			continue
		}
		name := a.name
		if name == nameless(i) {
			name = fmt.Sprintf("argument %d", i+1)
		}
		text := fmt.Sprintf("%q, \"%s is NULL\"", f.mpi(), name)
		fault := fmt.Sprintf("z_raise_on(z_no_object(), MPI_ERR_ARG, %s)", text)
		comm, win, file := f.handle("MPI_Comm"), f.handle("MPI_Win"), f.handle("MPI_File")
		session, handler := f.handle("MPI_Session"), f.handle("MPI_Errhandler")
		switch {
		case win != "":
			absent += fmt.Sprintf(" && zwin_find(%s)", win)
			fault = fmt.Sprintf("zwin_raise(zwin_find(%s), MPI_ERR_ARG, %s)", win, text)
		case strings.HasPrefix(f.name, "File_"):
			if file == "" {
				file = "MPI_FILE_NULL"
			}
			fault = fmt.Sprintf("z_raise_file(%s, MPI_ERR_ARG, %s)", file, text)
		case session != "":
			fault = fmt.Sprintf("zsession_raise(%s, MPI_ERR_ARG, %s)", session, text)
		case handler != "":
			fault = fmt.Sprintf("zcomm_unmade(%s, MPI_ERR_ARG, %s)", handler, text)
		case comm != "":
			fault = fmt.Sprintf("z_raise_on(%s, MPI_ERR_ARG, %s)", comm, text)
		}
		fmt.Fprintf(&b, "  if (__builtin_expect(%s, 0)) return %s;\n", absent, fault)
	}
	return b.String()
}

// is reports whether the argument has a type, written without spaces, and is not an array.
func (a param) is(typ string) bool {
	return a.suffix == "" && strings.ReplaceAll(a.typ, " ", "") == typ
}

// isResult reports whether the function writes one value, or a handle, to the place to which the
// argument points.
func isResult(a param) bool {
	pointed, ok := strings.CutSuffix(a.typ, "*")
	if !ok || a.suffix != "" {
		return false
	}
	pointed = strings.TrimSpace(pointed)
	return !strings.HasSuffix(pointed, "*") && !strings.HasPrefix(pointed, "const ") && pointed != "void" && pointed != "MPI_Status" &&
		!strings.HasSuffix(pointed, "_function") // MPI's own callbacks may be NULL: MPI_NULL_COPY_FN
}
