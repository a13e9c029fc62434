package main

import (
	"fmt"
	"slices"
	"strings"
)

const notice = "/* Made by cgo/libmmpi/gen from mpi.h and the policy files: do not edit. */\n"

// header returns natives.h: the table of native functions, macros for those that exist, and
// prototypes of hand-written functions.
func header(functions []function, p map[string]string) string {
	var b strings.Builder
	b.WriteString(notice + "#ifndef ZIPPER_NATIVES_H\n#define ZIPPER_NATIVES_H\n#include <mpi.h>\n\nstruct z_real {\n")
	for _, f := range functions {
		checked := "__attribute__((warn_unused_result)) "
		if f.result == "void" || !mustCheck(f.name) {
			checked = ""
		}
		fmt.Fprintf(&b, "  %s__typeof__(&%s) %s;\n", checked, f.pmpi(), f.name)
	}
	b.WriteString("};\n\n")
	for _, f := range functions {
		fmt.Fprintf(&b, "#define Z_HAVE_%s 1\n", f.name)
	}
	b.WriteString("\n")
	for _, f := range functions {
		if p[f.name] == own || p[f.name] == inside || p[f.name] == always || p[f.name] == window {
			fmt.Fprintf(&b, "%s;\n", f.prototype("z_"+f.name))
		}
	}
	if all := slices.IndexFunc(functions, func(f function) bool { return f.name == "Request_get_status_all" }); all >= 0 {
		b.WriteString("\n/* The type of the requests that MPI_Request_get_status_all reads: MPICH 4.2 lacks a const. */\n")
		fmt.Fprintf(&b, "#define Z_READ_REQUEST %s\n", functions[all].params[1].typ)
	}
	b.WriteString("\n/* The names of the native functions, in the order of struct z_real. */\nextern const char *const z_real_names[];\nenum { Z_REAL_COUNT = ")
	fmt.Fprintf(&b, "%d };\n#endif\n", len(functions))
	return b.String()
}

// mustCheck reports whether the result of a native function must be used; the C compiler then
// rejects a call that discards it. Nothing depends on the result of freeing an object. The result
// of an error handler is the program's own, and MPI_Abort does not return.
func mustCheck(name string) bool {
	return !strings.Contains(name, "_free") && !strings.HasSuffix(name, "_call_errhandler") && name != "Abort"
}

// wrappers returns wrap.c: PMPI_X and its alias MPI_X for every function.
func wrappers(functions []function, p map[string]string) string {
	nonblocking := map[string]function{}
	for _, f := range functions {
		nonblocking[f.name] = f
	}
	var b strings.Builder
	b.WriteString(notice + "#include \"io/file.h\"\n#include \"rma/win.h\"\n#include \"p2p/buffer.h\"\n#include \"request/completion.h\"\n#include \"type/use.h\"\n#include \"wrap/collargs.h\"\n#include <limits.h>\n\nconst char *const z_real_names[] = {\n")
	for _, f := range functions {
		fmt.Fprintf(&b, "  %q,\n", f.pmpi())
	}
	b.WriteString("};\n\n#define WRAPPER __attribute__((visibility(\"default\")))\n#define ALIAS(R, P, X) extern __typeof__(P) X __attribute__((alias(#P), visibility(\"default\")));\n" +
		"#define BYPASS ((__builtin_expect(z_own_page.state != Z_ON, 1) && z_is_off()) || __builtin_expect(z_inside, 0) || z_interrupts())\n\n")
	for _, f := range functions { // before the wrappers, two of which may call each
		if start, ok := policies(p).starts(f, nonblocking); ok && p[f.name] == persist {
			b.WriteString(persistentBody(f, start))
		}
	}
	for _, f := range functions {
		if p[f.name] != skip {
			b.WriteString(wrapper(f, p[f.name], nonblocking))
		}
	}
	return b.String()
}

func wrapper(f function, policy string, all map[string]function) string {
	var b strings.Builder
	real := fmt.Sprintf("real.%s(%s)", f.name, f.arguments(nil))
	// The name is in parentheses because some names are macros too (MPICH 5).
	fmt.Fprintf(&b, "WRAPPER %s {\n", f.prototype("("+f.pmpi()+")"))
	ret := "return "
	if f.result == "void" {
		ret = ""
	}
	called := fmt.Sprintf("  z_called(%q);\n", f.mpi())
	switch policy {
	case pass:
		fmt.Fprintf(&b, "  %s%s;\n", ret, real)
	case always:
		fmt.Fprintf(&b, "%s  %sz_%s(%s);\n", called, ret, f.name, f.arguments(nil))
	case own:
		if from, made := f.handle("MPI_Comm"), f.makesComm(); from != "" && made != "" {
			fmt.Fprintf(&b, "%s%s%s  int rc = z_%s(%s);\n  if (!rc) zbuffer_inherit(%s, *%s);\n  return rc;\n", bypass(f), called, nulls(f), f.name, f.arguments(nil), from, made)
			break
		}
		fallthrough
	case inside, persist:
		fmt.Fprintf(&b, "%s%s%s  %sz_%s(%s);\n", bypass(f), called, nulls(f), ret, f.name, f.arguments(nil))
	case window:
		fmt.Fprintf(&b, "%s%s%s  if (zwin_find(%s)) return z_%s(%s);\n  z_poll_if_busy(); /* a program may call nothing else and wait */\n", bypass(f), called, nulls(f), f.handle("MPI_Win"), f.name, f.arguments(nil))
		b.WriteString(checks(f, policy, all))
	case guarded, synced:
		b.WriteString(bypass(f) + called)
		b.WriteString(checks(f, policy, all))
	case narrow:
		b.WriteString(bypass(f) + called + nulls(f))
		b.WriteString(narrowed(f, all))
	case arrays:
		b.WriteString(bypass(f) + called + nulls(f))
		b.WriteString(narrowedArrays(f, all))
	}
	fmt.Fprintf(&b, "}\nALIAS(%s, %s, %s)\n\n", f.result, f.pmpi(), f.mpi())
	return b.String()
}

// checks returns the body, after the bypass, of a guarded wrapper.
func checks(f function, policy string, all map[string]function) string {
	var b strings.Builder
	groups := map[string]string{}
	comm := ""
	for _, a := range f.requests() {
		n, at := "1", "&"+a.name
		switch {
		case a.suffix != "": // the argument before an array is its length
			n, at = f.params[slices.Index(f.params, a)-1].name, a.name
		case strings.HasSuffix(a.typ, "*"):
			at = a.name
		}
		fmt.Fprintf(&b, "  if (!zbatch_untouched(%s, %s)) return z_raise(NULL, MPI_ERR_UNSUPPORTED_OPERATION, %q, \"a request is of an operation that spans clusters\");\n", n, at, f.mpi())
	}
	for _, a := range f.params {
		if a.suffix != "" {
			continue
		}
		switch a.typ {
		case "MPI_Comm":
			fmt.Fprintf(&b, "  if (zcomm_find(%s)) return z_unsupported(%s, %q);\n", a.name, a.name, f.mpi())
			if comm == "" {
				comm = a.name
			}
		case "MPI_Win":
			if policy != window {
				fmt.Fprintf(&b, "  if (zwin_find(%s)) return zwin_unsupported(%s, %q);\n", a.name, a.name, f.mpi())
			}
		case "MPI_Group":
			groups[a.name] = "native_" + a.name
		}
	}
	raise := "z_no_object()"
	if comm != "" {
		raise = comm
	}
	b.WriteString("  int rc;\n")
	for _, a := range f.params {
		if g, ok := groups[a.name]; ok {
			fmt.Fprintf(&b, "  MPI_Group %s;\n  if ((rc = zgroup_native(%s, &%s))) return z_raise_on(%s, rc, %q, \"the group has members in other clusters\");\n",
				g, a.name, g, raise, f.mpi())
		}
	}
	// These are collectives, so all ranks use the same form, whether their engine is idle or not.
	switch {
	case policy == synced && comm != "":
		fmt.Fprintf(&b, "  if ((rc = z_native_barrier(%s))) return rc;\n", comm)
	case policy == synced:
		fmt.Fprintf(&b, "  if ((rc = zfile_meet(%s))) return rc;\n", f.handle("MPI_File"))
	case nonblockingForm(f, all):
		fmt.Fprintf(&b, "  MPI_Request request;\n  rc = real.%s(%s, &request);\n  return rc ? rc : z_wait_native(&request, MPI_STATUS_IGNORE);\n",
			iForm(f.name), f.arguments(groups))
		return b.String()
	}
	fmt.Fprintf(&b, "  z_enter();\n  rc = real.%s(%s);\n  z_leave();\n", f.name, f.arguments(groups))
	for _, a := range f.params {
		if g, ok := groups[a.name]; ok {
			fmt.Fprintf(&b, "  if (%s != MPI_GROUP_EMPTY) real.Group_free(&%s);\n", g, g)
		}
	}
	b.WriteString("  return rc;\n")
	return b.String()
}

// narrowed returns the body, after the bypass, of a big-count function. Its counts nearly always
// fit an int. Larger counts become one element of a type that is made for the call.
func narrowed(f function, all map[string]function) string {
	var fit []string
	casts := map[string]string{}
	comm := ""
	short := all[strings.TrimSuffix(f.name, "_c")]
	for i, a := range f.params {
		switch {
		case a.typ != short.params[i].typ:
			fit = append(fit, fmt.Sprintf("%s <= INT_MAX", a.name))
			casts[a.name] = "(int)" + a.name
		case a.typ == "MPI_Comm":
			comm = a.name
		}
	}
	out := fmt.Sprintf("  if (%s) return z_%s(%s);\n", strings.Join(fit, " && "), short.name, f.arguments(casts))
	many := bigCountCall(f, short)
	if many == "" {
		many = "return " + strings.Replace(tooMany(f), "%s", "\"more than 2147483647 at once are not supported by MMPI\"", 1) + ";"
	}
	if w := f.handle("MPI_Win"); w != "" && comm == "" {
		return fmt.Sprintf("  if (zwin_find(%s)) {\n  %s%s\n  }\n", w, out, many) + checks(f, guarded, all)
	}
	if file := f.handle("MPI_File"); file != "" {
		return out + fmt.Sprintf("  if (zfile_find(%s)) {\n    %s\n  }\n", file, many) + checks(f, guarded, all)
	}
	if comm == "" {
		return out + "  " + many + "\n"
	}
	if bigCountCall(f, short) == "" {
		return out + checks(f, guarded, all)
	}
	return out + fmt.Sprintf("  if (zcomm_find(%s)) {\n    %s\n  }\n", comm, many) + checks(f, guarded, all)
}

// tooMany returns code that raises an error about counts, whose text is %s.
func tooMany(f function) string {
	win, file, comm := f.handle("MPI_Win"), f.handle("MPI_File"), f.handle("MPI_Comm")
	switch {
	case win != "":
		return fmt.Sprintf("zwin_raise(zwin_find(%s), MPI_ERR_COUNT, %q, %%s)", win, f.mpi())
	case file != "":
		return fmt.Sprintf("z_raise_file(%s, MPI_ERR_COUNT, %q, %%s)", file, f.mpi())
	case comm != "":
		return fmt.Sprintf("z_raise_on(%s, MPI_ERR_COUNT, %q, %%s)", comm, f.mpi())
	}
	return fmt.Sprintf("z_raise(NULL, MPI_ERR_COUNT, %q, %%s)", f.mpi())
}

// bigCountCall returns code that calls the short form with types of many elements instead of large
// counts. It returns "" if a count is not one of elements of a type, or an operator has to know the
// type.
func bigCountCall(f, short function) string {
	var begin, end strings.Builder
	names := map[string]string{}
	n := 0
	for i, a := range f.params {
		if a.typ == "MPI_Op" && f.handle("MPI_Win") == "" {
			return ""
		}
		if a.typ == short.params[i].typ {
			continue
		}
		typ := strings.TrimSuffix(a.name, "count") + "type"
		if !f.has("MPI_Datatype", typ) {
			typ = strings.TrimSuffix(a.name, "count") + "datatype"
		}
		if a.typ != "MPI_Count" || !f.has("MPI_Datatype", typ) {
			return ""
		}
		fmt.Fprintf(&begin, "if (!rc) rc = zmany_begin(&many[%d], %s, %s);\n", n, a.name, typ)
		names[a.name] = fmt.Sprintf("many[%d].count", n)
		names[typ] = fmt.Sprintf("many[%d].type", n)
		n++
	}
	fmt.Fprintf(&end, "for (int i = 0; i < %d; i++) ztype_end(&many[i]);\nreturn rc;", n)
	return fmt.Sprintf("zmany many[%d] = {{.made = 0}};\nint rc = MPI_SUCCESS;\n%sif (rc) rc = %s;\nelse rc = z_%s(%s);\n%s",
		n, begin.String(), strings.Replace(tooMany(f), "%s", "\"a datatype of so many elements cannot be created\"", 1), short.name, f.arguments(names), end.String())
}

// iForm returns the name of a function's nonblocking form: Bcast, Ibcast; Neighbor_alltoallv_c,
// Ineighbor_alltoallv_c.
func iForm(name string) string { return "I" + strings.ToLower(name[:1]) + name[1:] }

// nonblockingForm reports whether the function has a form with the same arguments and a request.
func nonblockingForm(f function, all map[string]function) bool {
	i, ok := all[iForm(f.name)]
	if !ok || len(i.params) != len(f.params)+1 {
		return false
	}
	for k, a := range f.params {
		if i.params[k].typ != a.typ {
			return false
		}
	}
	last := i.params[len(f.params)]
	return strings.ReplaceAll(last.typ+last.suffix, " ", "") == "MPI_Request*"
}

// list returns functions.tsv, with one line for each function, for the conformance table.
func list(functions []function, p map[string]string) string {
	var b strings.Builder
	b.WriteString("function\tpolicy\ton_spanning\n")
	for _, f := range functions {
		spanning := onSpanning(f, p[f.name])
		if p[f.name] == narrow && p[strings.TrimSuffix(f.name, "_c")] == inside {
			spanning = onSpanning(f, inside)
		}
		fmt.Fprintf(&b, "%s\t%s\t%s\n", f.mpi(), p[f.name], spanning)
	}
	return b.String()
}
