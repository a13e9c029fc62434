package main

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// sample has the peculiarities of real headers: attributes before and after a declaration, line
// marks, parameters without names, arrays, other prefixes.
const sample = `
# 12 "mpi.h" 3
typedef int (MPI_Copy_function)(MPI_Comm, int, void *);
__attribute__((visibility("default"))) int MPI_Send(const void *buf, int count, MPI_Comm comm);
__attribute__((visibility("default"))) int PMPI_Send(const void *buf, int count, MPI_Comm comm)
   __attribute__((__deprecated__("use (something) else")));
int PMPI_Send_c(const void *buf, MPI_Count count, MPI_Comm comm)
   __attribute__((pointer_with_type_tag(MPI,1,3)));
int PMPI_Isend(const void *buf, int count, MPI_Comm comm, MPI_Request *request) ;
int PMPI_Finalize(void);
double PMPI_Wtime(void);
int PMPI_Reduce_local(const void *, void *, int[], MPI_Op);
int PMPI_Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group *newgroup);
int PMPIX_Query(void);
int PMPI_Pcontrol(const int level, ...);
int QMPI_Send(QMPI_Context context, int tool_id, const void *buf);
int PMPI_Sendv(const void *buf, const int counts[], MPI_Comm comm);
int PMPI_Sendv_c(const void *buf, const MPI_Count counts[], MPI_Comm comm);
int PMPI_Scatterv(const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm);
int PMPI_Scatterv_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[], MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm);
int PMPI_Iscatterv(const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Request *request);
int PMPI_Scatterv_init(const void *sendbuf, const int sendcounts[], const int displs[], MPI_Datatype sendtype, void *recvbuf, int recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
int PMPI_Scatterv_init_c(const void *sendbuf, const MPI_Count sendcounts[], const MPI_Aint displs[], MPI_Datatype sendtype, void *recvbuf, MPI_Count recvcount, MPI_Datatype recvtype, int root, MPI_Comm comm, MPI_Info info, MPI_Request *request);
`

func sampleFunctions(t *testing.T) map[string]function {
	t.Helper()
	list, err := parse(sample)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]function{}
	for _, f := range list {
		out[f.name] = f
	}
	return out
}

func TestParse(t *testing.T) {
	all := sampleFunctions(t)
	for name, want := range map[string]string{
		"Send":             "int PMPI_Send(const void * buf, int count, MPI_Comm comm)",
		"Finalize":         "int PMPI_Finalize(void)",
		"Wtime":            "double PMPI_Wtime(void)",
		"Reduce_local":     "int PMPI_Reduce_local(const void * arg0, void * arg1, int arg2[], MPI_Op arg3)",
		"Group_range_incl": "int PMPI_Group_range_incl(MPI_Group group, int n, int ranges[][3], MPI_Group * newgroup)",
		"X_Query":          "int PMPIX_Query(void)",
		"Pcontrol":         "int PMPI_Pcontrol(const int level, ...)",
	} {
		f, ok := all[name]
		if got := f.prototype(f.pmpi()); !ok || got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if len(all) != 16 {
		t.Errorf("%d functions, want 16", len(all))
	}
	if got := all["X_Query"].mpi(); got != "MPIX_Query" {
		t.Error(got)
	}
}

func TestPolicies(t *testing.T) {
	all := sampleFunctions(t)
	p := policies{"Send": own, "Sendv": own, "Pcontrol": skip, "Scatterv": own, "Iscatterv": own}
	got := map[string]string{}
	for name, f := range all {
		var err error
		if got[name], err = p.of(f, all); err != nil {
			t.Error(err)
		}
	}
	want := map[string]string{"Send": own, "Send_c": narrow, "Isend": guarded, "Finalize": pass, "Wtime": pass, "Reduce_local": pass,
		"Group_range_incl": guarded, "X_Query": pass, "Pcontrol": skip, "Sendv": own, "Sendv_c": guarded,
		"Scatterv": own, "Iscatterv": own, "Scatterv_c": arrays, "Scatterv_init": persist, "Scatterv_init_c": arrays}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if _, err := (policies{}).of(all["Pcontrol"], all); err == nil {
		t.Error("a function with a variable number of arguments and no policy: no error")
	}
}

// TestRequestsNeedPolicy checks that a function that gets requests from the program is an error
// unless a policy file names it, and that a function that returns a request is none.
func TestRequestsNeedPolicy(t *testing.T) {
	list, err := parse(`
int PMPI_Wait(MPI_Request *request, MPI_Status *status);
int PMPI_Cancel(MPI_Request *request);
int PMPI_Request_c2f(MPI_Request request);
int PMPI_Pready_list(int length, const int partitions[], MPI_Request request);
int PMPI_Testall(int count, MPI_Request array_of_requests[], int *flag, MPI_Status array_of_statuses[]);
int PMPI_Request_get_status_all(int count, const MPI_Request array_of_requests[], int *flag, MPI_Status array_of_statuses[]);
int PMPIX_Continue(MPI_Request *op_request, void *data, int flags, MPI_Status *status, MPI_Request cont_request);
int PMPI_Isend(const void *buf, int count, MPI_Comm comm, MPI_Request* request);
int PMPI_Grequest_start(void *extra_state, MPI_Request *request);
MPI_Request PMPI_Request_fromint(int request);
`)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]function{}
	for _, f := range list {
		all[f.name] = f
	}
	for _, f := range list {
		returns := f.name == "Isend" || f.name == "Grequest_start" || f.name == "Request_fromint"
		if _, err := (policies{}).of(f, all); (err == nil) != returns {
			t.Errorf("%s without a policy: %v", f.name, err)
		}
		if _, err := (policies{f.name: pass}).of(f, all); err != nil {
			t.Error(err)
		}
	}
	for name, test := range map[string]string{"Wait": "zbatch_untouched(1, request)", "Request_c2f": "zbatch_untouched(1, &request)",
		"Request_get_status_all": "zbatch_untouched(count, array_of_requests)"} {
		w := wrapper(all[name], guarded, all)
		refuse, call := strings.Index(w, "if (!"+test+") return z_raise(NULL, MPI_ERR_UNSUPPORTED_OPERATION"), strings.LastIndex(w, "real."+name+"(")
		if refuse < 0 || call < refuse {
			t.Errorf("%s:\n%s", name, w)
		}
		if got := onSpanning(all[name], guarded); got != "unsupported" {
			t.Errorf("%s is listed as %s", name, got)
		}
	}
}

// TestMadeCommInherits checks that a communicator that a function makes of another one is derived
// from the same session.
func TestMadeCommInherits(t *testing.T) {
	list, err := parse(`
int PMPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm *newcomm);
int PMPI_Comm_free(MPI_Comm *comm);
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		inherits := strings.Contains(wrapper(f, own, nil), "if (!rc) zbuffer_inherit(comm, *newcomm);")
		if inherits != (f.name == "Comm_split") {
			t.Errorf("%s: %t", f.name, inherits)
		}
	}
}

// TestInsideIsListed checks that a function of the shim that refuses its call is an error in the
// conformance table, and its big-count form too.
func TestInsideIsListed(t *testing.T) {
	all := sampleFunctions(t)
	p := policies{"Send": inside}
	chosen := map[string]string{}
	for _, name := range []string{"Send", "Send_c"} {
		var err error
		if chosen[name], err = p.of(all[name], all); err != nil {
			t.Fatal(err)
		}
	}
	got := list([]function{all["Send"], all["Send_c"]}, chosen)
	want := "function\tpolicy\ton_spanning\nMPI_Send\tinside\tunsupported\nMPI_Send_c\tnarrow\tunsupported\n"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestGuardedRefusesSpanning checks that a spanning communicator never reaches a native function
// that the shim does not implement.
func TestGuardedRefusesSpanning(t *testing.T) {
	all := sampleFunctions(t)
	for _, name := range []string{"Isend", "Sendv_c"} {
		w := wrapper(all[name], guarded, all)
		refuse := strings.Index(w, `if (zcomm_find(comm)) return z_unsupported(comm, "`+all[name].mpi()+`");`)
		call := strings.LastIndex(w, "real."+name+"(")
		if refuse < 0 || call < refuse {
			t.Errorf("%s:\n%s", name, w)
		}
		if got := onSpanning(all[name], guarded); got != "unsupported" {
			t.Errorf("%s is listed as %s", name, got)
		}
	}
}

// TestResultsMustBeUsed checks that the table of native functions makes the compiler reject a call
// whose result is discarded, unless nothing depends on the result.
func TestResultsMustBeUsed(t *testing.T) {
	named := func(names ...string) (list []function) {
		for _, n := range names {
			list = append(list, function{name: n})
		}
		return list
	}
	for _, line := range strings.Split(header(named("Recv_init", "Comm_set_errhandler", "Comm_free", "Abort",
		"Comm_call_errhandler"), map[string]string{}), "\n") {
		if !strings.Contains(line, "__typeof__") {
			continue
		}
		must := strings.Contains(line, "Recv_init;") || strings.Contains(line, "Comm_set_errhandler;")
		if strings.Contains(line, "warn_unused_result") != must {
			t.Error(line)
		}
	}
}

// TestChildrenAndHandlersAreRefused checks that a wrapper refuses to send or wait for a child
// process, or for a handler that has interrupted the engine, and that local functions answer both.
func TestChildrenAndHandlersAreRefused(t *testing.T) {
	all := sampleFunctions(t)
	for policy, name := range map[string]string{own: "Isend", guarded: "Isend", inside: "Group_range_incl",
		narrow: "Send_c", arrays: "Scatterv_c", persist: "Scatterv_init"} {
		f := all[name]
		refuses := strings.Contains(wrapper(f, policy, all), fmt.Sprintf("z_is_apart() ? z_refuse(%q)", f.mpi()))
		if refuses == slices.Contains(local, f.name) {
			t.Errorf("%s, %s: refuses %t", f.name, policy, refuses)
		}
	}
	for _, name := range local {
		if w := bypass(function{name: name}); strings.Contains(w, "z_refuse") {
			t.Errorf("a child or a handler is refused: %s", w)
		}
	}
	for _, name := range freeing {
		if w := bypass(function{name: name}); !strings.Contains(w, "z_interrupts() ? z_refuse") {
			t.Errorf("a child is refused, or a handler is not: %s", w)
		}
	}
}

// TestCollectives checks in which processes arguments have a meaning, how long arrays are, and how
// long they live.
func TestCollectives(t *testing.T) {
	all := sampleFunctions(t)
	for what, lines := range map[string][]string{
		wrapper(all["Scatterv_c"], arrays, all): {
			"const int *int_displs = zargs_ints(&k, displs, zargs_root(c, root), Z_PEERS);", "if (zargs_leaf(c, root) && recvbuf != MPI_IN_PLACE) many_recvtype = zargs_many(&k, recvcount, recvtype, &int_recvcount);",
			"z_Scatterv(sendbuf, int_sendcounts, int_displs, sendtype, recvbuf, int_recvcount, many_recvtype, root, comm);\n    zargs_free(&k);"},
		wrapper(all["Scatterv_init_c"], arrays, all): {"if (!rc) zpersist_keep(*request, &k);"},
		persistentBody(all["Scatterv_init"], all["Iscatterv"]): {
			"a.sendtype = zargs_type(&k, sendtype, zargs_root(c, root));", "a.recvtype = zargs_type(&k, recvtype, zargs_leaf(c, root) && recvbuf != MPI_IN_PLACE);",
			"return z_Iscatterv(a->sendbuf, a->sendcounts, a->displs, a->sendtype, a->recvbuf, a->recvcount, a->recvtype, a->root, comm, request);"},
	} {
		for _, line := range lines {
			if !strings.Contains(what, line) {
				t.Errorf("no %q in\n%s", line, what)
			}
		}
	}
}

// TestNulls checks that functions of the shim report a NULL result and a NULL name on the object of
// the call. Buffers, statuses, arrays and strings without room may be NULL.
func TestNulls(t *testing.T) {
	all := sampleFunctions(t)
	text := `
int PMPI_Testall(int count, MPI_Request array_of_requests[], int *flag, MPI_Status array_of_statuses[]);
int PMPI_Recv(void *buf, int count, MPI_Comm comm, MPI_Status *status);
int PMPI_Win_test(MPI_Win win, int *flag);
int PMPI_File_iread_shared(MPI_File, void *, int, MPI_Datatype, MPI_Request *);
int PMPI_File_open(MPI_Comm comm, const char *filename, int amode, MPI_Info info, MPI_File *fh);
int PMPI_Spawn(char ***argv, const int *counts);
int PMPI_Comm_accept(const char *port_name, MPI_Info info, int root, MPI_Comm comm);
int PMPI_Session_get_nth_pset(MPI_Session session, MPI_Info info, int n, int *pset_len, char *pset_name);
int PMPI_Comm_create_from_group(MPI_Group group, const char *stringtag, MPI_Info info, MPI_Errhandler errhandler, MPI_Comm *newcomm);
`
	more, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range more {
		all[f.name] = f
	}
	for name, want := range map[string]string{
		"Send":        "",
		"Recv":        "",
		"Spawn":       "",
		"Comm_accept": "", // the name has a meaning at the root only
		"Session_get_nth_pset": `  if (__builtin_expect(!pset_len, 0)) return zsession_raise(session, MPI_ERR_ARG, "MPI_Session_get_nth_pset", "pset_len is NULL");` + "\n" +
			`  if (__builtin_expect(*pset_len > 0 && !pset_name, 0)) return zsession_raise(session, MPI_ERR_ARG, "MPI_Session_get_nth_pset", "pset_name is NULL");` + "\n",
		"Comm_create_from_group": `  if (__builtin_expect(!stringtag, 0)) return zcomm_unmade(errhandler, MPI_ERR_ARG, "MPI_Comm_create_from_group", "stringtag is NULL");` + "\n" +
			`  if (__builtin_expect(!newcomm, 0)) return zcomm_unmade(errhandler, MPI_ERR_ARG, "MPI_Comm_create_from_group", "newcomm is NULL");` + "\n",
		"Isend": `  if (__builtin_expect(!request, 0)) return z_raise_on(comm, MPI_ERR_ARG, "MPI_Isend", "request is NULL");` + "\n",
		"Testall": `  if (__builtin_expect(count > 0 && !array_of_requests, 0)) return z_raise_on(z_no_object(), MPI_ERR_ARG, "MPI_Testall", "array_of_requests is NULL");` + "\n" +
			`  if (__builtin_expect(!flag, 0)) return z_raise_on(z_no_object(), MPI_ERR_ARG, "MPI_Testall", "flag is NULL");` + "\n",
		"Win_test":          `  if (__builtin_expect(!flag && zwin_find(win), 0)) return zwin_raise(zwin_find(win), MPI_ERR_ARG, "MPI_Win_test", "flag is NULL");` + "\n",
		"File_iread_shared": `  if (__builtin_expect(!arg4, 0)) return z_raise_file(arg0, MPI_ERR_ARG, "MPI_File_iread_shared", "argument 5 is NULL");` + "\n",
		"File_open": `  if (__builtin_expect(!filename, 0)) return z_raise_file(MPI_FILE_NULL, MPI_ERR_ARG, "MPI_File_open", "filename is NULL");` + "\n" +
			`  if (__builtin_expect(!fh, 0)) return z_raise_file(MPI_FILE_NULL, MPI_ERR_ARG, "MPI_File_open", "fh is NULL");` + "\n",
	} {
		if got := nulls(all[name]); got != want {
			t.Errorf("%s:\n%swant\n%s", name, got, want)
		}
	}
	// The checks come after the bypass and before the shim's function; native functions check for
	// themselves.
	for name, policy := range map[string]string{"Isend": own, "Group_range_incl": inside, "Scatterv_init": persist, "Win_test": window, "Iscatterv": own, "Scatterv_init_c": arrays} {
		w := wrapper(all[name], policy, all)
		bypass, check, ours := strings.Index(w, "BYPASS"), strings.Index(w, nulls(all[name])), strings.Index(w, "z_"+strings.TrimSuffix(name, "_c")+"(")
		if nulls(all[name]) == "" || bypass < 0 || bypass > check || check > ours {
			t.Errorf("%s, %s:\n%s", name, policy, w)
		}
	}
	if w := wrapper(all["Isend"], guarded, all); strings.Contains(w, "is NULL") {
		t.Errorf("Isend, guarded:\n%s", w)
	}
}

func TestTable(t *testing.T) {
	var files []string
	for column, text := range map[string]string{
		"one": "function\tpolicy\ton_spanning\nMPI_Send\town\tsupported\nMPI_Win_create\tsynced\tunsupported\nMPI_Put\tguarded\tlocal\n",
		"two": "function\tpolicy\ton_spanning\nMPI_Send\town\tsupported\nMPI_Win_create\tsynced\tunsupported\nMPI_Put\tguarded\tlocal\nMPI_Pcontrol\tskip\tlocal\n",
	} {
		dir := filepath.Join(t.TempDir(), column)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "functions.tsv")
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	slices.SortFunc(files, func(a, b string) int {
		return strings.Compare(filepath.Base(filepath.Dir(a)), filepath.Base(filepath.Dir(b)))
	})
	got, err := table(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"| function | one | two |", "| MPI_Send | spanning | spanning |", "| MPI_Win_create | error | error |",
		"| MPI_Put | native, inside | native, inside |", "| MPI_Pcontrol | – | native |"} {
		if !strings.Contains(got, want+"\n") {
			t.Errorf("no line %q in\n%s", want, got)
		}
	}
	if err := os.WriteFile(files[0], []byte("head\nMPI_X\tnew\tperhaps\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := table(files); err == nil {
		t.Error("a policy without words: no error")
	}
}
