package main

import (
	"fmt"
	"strings"
)

// Functions of MPI 4 are expressed by those of MPI 3: a persistent collective starts the
// nonblocking one (persistcoll.c), and a big-count function with arrays narrows them (collargs.c).
// Both need to know in which processes an argument has a meaning, and how long it is.

// starts returns the nonblocking function that a persistent collective starts. The latter has the
// same arguments, then an info object and the request.
func (p policies) starts(f function, all map[string]function) (function, bool) {
	base, ok := strings.CutSuffix(f.name, "_init")
	i, found := all[iForm(base)]
	if !ok || !found || p[i.name] != own || !f.hasComm() || len(f.params) != len(i.params)+1 {
		return function{}, false
	}
	for k, a := range i.params[:len(i.params)-1] {
		if b := f.params[k]; a.typ != b.typ || a.suffix != b.suffix || a.suffix != "" && !known(b.name) {
			return function{}, false
		}
	}
	return i, f.params[len(f.params)-2].typ == "MPI_Info"
}

// narrowsArrays reports whether a big-count collective differs from its short form in counts and
// displacements only, arrays of them included.
func narrowsArrays(big, short function) bool {
	if len(big.params) != len(short.params) || !big.hasComm() {
		return false
	}
	for i, a := range big.params {
		b := short.params[i]
		if a.suffix != b.suffix || a.typ != b.typ && (a.suffix != "" && !known(a.name) || wide(a) == "" || strings.TrimPrefix(b.typ, "const ") != "int") {
			return false
		}
	}
	return true
}

// wide returns how a 64-bit type is narrowed where the short form has int: "one", "array" or "".
func wide(a param) string {
	switch {
	case a.suffix == "" && a.typ == "MPI_Count":
		return "one"
	case a.suffix == "[]" && (a.typ == "const MPI_Count" || a.typ == "const MPI_Aint"):
		return "array"
	}
	return ""
}

func (f function) hasComm() bool { return f.has("MPI_Comm", "comm") }

func (f function) has(typ, name string) bool {
	for _, a := range f.params {
		if a.typ == typ && a.name == name && a.suffix == "" {
			return true
		}
	}
	return false
}

func (f function) hasName(name string) bool {
	for _, a := range f.params {
		if a.name == name {
			return true
		}
	}
	return false
}

// known reports whether each can tell the dimension of an array with this name.
func known(name string) bool {
	switch name {
	case "sendcounts", "sdispls", "sendtypes", "recvcounts", "rdispls", "recvtypes", "displs":
		return true
	}
	return false
}

// sends reports whether an argument describes the data that are sent.
func (f function) sends(a param) bool {
	return strings.HasPrefix(a.name, "send") || a.name == "sdispls" || a.name == "displs" && f.hasName("sendcounts")
}

// counts returns the condition in C under which an argument has a meaning, with c as the
// communicator.
func (f function) counts(a param) string {
	scatters := strings.Contains(f.name, "scatter") || strings.Contains(f.name, "Scatter")
	rooted := f.has("int", "root")
	switch {
	case rooted && !f.hasName("sendtype"): // broadcast and reduce
		return "zargs_root(c, root) || zargs_leaf(c, root)"
	// at each process: the send arguments of a gather, the receive arguments of a scatter
	case rooted && f.sends(a) != scatters:
		return fmt.Sprintf("zargs_leaf(c, root) && %s != MPI_IN_PLACE", map[bool]string{true: "recvbuf", false: "sendbuf"}[scatters])
	case rooted:
		return "zargs_root(c, root)"
	case f.sends(a):
		return "sendbuf != MPI_IN_PLACE"
	}
	return "1"
}

// each returns the dimension of an array (enum zeach).
func (f function) each(a param) string {
	neighbor := strings.Contains(strings.ToLower(f.name), "neighbor")
	switch {
	case neighbor && f.sends(a):
		return "Z_DESTINATIONS"
	case neighbor:
		return "Z_SOURCES"
	case f.hasName("recvcounts") && !f.hasName("recvtype") && !f.hasName("recvtypes"):
		return "Z_MEMBERS" // reduce_scatter
	}
	return "Z_PEERS"
}

// persistentBody returns z_X of a persistent collective and the function that starts it.
func persistentBody(f, start function) string {
	var b, fields, give, kept strings.Builder
	for _, a := range f.params[:len(f.params)-2] {
		if a.typ == "MPI_Comm" {
			give.WriteString("comm, ")
			continue
		}
		typ, value := a.typ, a.name
		switch {
		case a.suffix == "[]":
			typ += " *"
			if strings.HasSuffix(a.typ, "MPI_Datatype") {
				value = fmt.Sprintf("zargs_types(&k, %s, %s, %s)", a.name, f.counts(a), f.each(a))
			}
		case a.typ == "MPI_Datatype":
			value = fmt.Sprintf("zargs_type(&k, %s, %s)", a.name, f.counts(a))
		case a.typ == "MPI_Op":
			value = fmt.Sprintf("zargs_op(&k, %s)", a.name)
		}
		fmt.Fprintf(&fields, "  %s %s;\n", typ, a.name)
		fmt.Fprintf(&kept, "  a.%s = %s;\n", a.name, value)
		fmt.Fprintf(&give, "a->%s, ", a.name)
	}
	fmt.Fprintf(&b, "struct args_%s {\n%s};\n", f.name, fields.String())
	fmt.Fprintf(&b, "static int start_%s(const void *args, MPI_Comm comm, MPI_Request *request) {\n  const struct args_%s *a = args;\n  (void)a;\n  return z_%s(%srequest);\n}\n",
		f.name, f.name, start.name, give.String())
	fmt.Fprintf(&b, "static %s {\n  zcomm *c = zcomm_find(comm);\n", f.prototype("z_"+f.name))
	fmt.Fprintf(&b, "  if (!c) {\n    int rc;\n    z_enter();\n    rc = real.%s(%s);\n    z_leave();\n    return rc;\n  }\n", f.name, f.arguments(nil))
	fmt.Fprintf(&b, "  zargs k = ZARGS(c);\n  struct args_%s a;\n%s  return zpersist_new(&k, %q, start_%s, &a, sizeof a, request);\n}\n\n", f.name, kept.String(), f.mpi(), f.name)
	return b.String()
}

// narrowedArrays returns the body, after the bypass, of a big-count collective with arrays.
func narrowedArrays(f function, all map[string]function) string {
	var b strings.Builder
	short := all[strings.TrimSuffix(f.name, "_c")]
	names := map[string]string{}
	b.WriteString("  zcomm *c = zcomm_find(comm);\n  if (c) {\n    zargs k = ZARGS(c);\n")
	for i, a := range f.params {
		if a.typ == short.params[i].typ {
			continue
		}
		names[a.name] = "int_" + a.name
		switch wide(a) {
		case "one": // sendcount goes with sendtype
			of := strings.TrimSuffix(a.name, "count") + "type"
			names[of] = "many_" + of
			fmt.Fprintf(&b, "    int int_%s = 0;\n    MPI_Datatype many_%s = %s;\n", a.name, of, of)
			fmt.Fprintf(&b, "    if (%s) many_%s = zargs_many(&k, %s, %s, &int_%s);\n", f.counts(a), of, a.name, of, a.name)
		case "array":
			fmt.Fprintf(&b, "    const int *int_%s = zargs_ints(&k, %s, %s, %s);\n", a.name, a.name, f.counts(a), f.each(a))
		}
	}
	fmt.Fprintf(&b, "    if (k.rc) return zargs_refuse(&k, %q);\n    int rc = z_%s(%s);\n", f.mpi(), short.name, f.arguments(names))
	if strings.HasSuffix(short.name, "_init") { // the arrays are used each time the collective is started
		b.WriteString("    if (!rc) zpersist_keep(*request, &k);\n    else zargs_free(&k);\n")
	} else {
		b.WriteString("    zargs_free(&k);\n")
	}
	b.WriteString("    return rc;\n  }\n")
	return b.String() + checks(f, guarded, all)
}
