package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// meaning returns the wording of the conformance table for a policy and its effect on an argument
// that spans clusters.
func meaning(policy, spanning string) (string, error) {
	switch {
	case spanning == "supported":
		return "spanning", nil
	case spanning == "unsupported":
		return "error", nil
	case policy == pass || policy == skip:
		return "native", nil
	case (policy == guarded || policy == synced) && spanning == "local":
		return "native, inside", nil
	}
	return "", fmt.Errorf("policy %q, %q: no words for it in the conformance table", policy, spanning)
}

const tableHead = `# MPI functions on communicators that span clusters

This page is made by ` + "`go generate ./cgo/libmmpi/gen`" + ` (after ` + "`scripts/build`" + `): do not edit it. Its sources are the
functions of the ` + "`mpi.h`" + ` of Open MPI 4.1 and MPICH 4.0, those of MPI 5.0, and the policy files in ` + "`cgo/libmmpi/policy`" + `.
The column abi is for programs of MPI 5's standard ABI over Open MPI 6 and MPICH 5. The headers of these two libraries
have no further functions of MPI 4 and 5.

On a communicator inside one cluster every function is native, except those of
[windows](across-clusters.md#one-sided-communication).

| word | what the function does |
|---|---|
| spanning | works on communicators, groups and windows that span clusters |
| native | goes straight to the native library: it needs no communicator, or only its handle |
| native, inside | works natively on the part of a file that is in this cluster |
| error | returns MPI_ERR_UNSUPPORTED_OPERATION through the error handler where a communicator, group or window spans clusters |
| – | is not in this library (MPICH: c2f and f2c are macros; MPI 5: removed from the standard, or Fortran's) |

- The functions MPI_T_… go to the native library unwrapped, and so do ` + "`MPI_Session_c2f`" + ` and ` + "`MPI_Session_f2c`" + ` of the newest
  libraries' own headers.
- Buffers may be in [memory of devices](../howto/device-memory.md) in every function that spans, except those of files.
- Big-count functions (…_c) take any count, also in arrays of counts or displacements (such as those of MPI_Gatherv_c).
- MPI_File_open requires the user's [declaration that the path is shared](across-clusters.md#files), and
  MPI_File_set_atomicity refuses atomic mode.
- MPI_Win_shared_query returns MPI_ERR_RMA_FLAVOR, because no window that spans clusters is in shared memory.
- MPI_Comm_join is refused in every process. [Jobs that were started independently](../howto/connecting-jobs.md) can
  connect.
- In a job with ` + "`--on-loss continue`" + ` the word for MPI_Comm_idup and MPI_Comm_idup_with_info is error. MPI_Comm_revoke
  returns the same error for a communicator of several processes that are all in one cluster
  ([limits](fault-tolerance.md#limits)).
- Processes that MPI_Comm_spawn and MPI_Comm_spawn_multiple start from a communicator inside a cluster have
  [limits](across-clusters.md#processes-that-a-program-starts).

## Types in jobs of x86-64 and aarch64

All predefined types, and types made of them, can be used between clusters
[whose formats of long double differ](across-clusters.md#x86-64-and-aarch64), except in these calls.

| type | call | error |
|---|---|---|
| of MPI_Type_create_f90_real or MPI_Type_create_f90_complex with more than double precision, or made of one: it is REAL(10) on x86-64 and REAL(16) on aarch64. MPI_REAL16 and MPI_COMPLEX32 are the same on both | any on a communicator or window that spans clusters | MPI_ERR_TYPE |
| long double | MPI_File_set_view with the representation "native", of a file that spans clusters and is open for writing | MPI_ERR_UNSUPPORTED_DATAREP |
| long double | MPI_Allreduce on an intercommunicator: each process of a group would compute the result in its own format | MPI_ERR_UNSUPPORTED_OPERATION |
`

// table returns the conformance table of functions.tsv files, each in a directory named after its
// MPI library: first the functions that all libraries have, then the others (newer than MPI 3.1,
// removed, conversions, the library's own).
func table(files []string) (string, error) {
	var columns []string
	entries := map[string]map[string]string{}
	for _, file := range files {
		column := filepath.Base(filepath.Dir(file))
		columns = append(columns, column)
		if err := readEntries(file, column, entries); err != nil {
			return "", err
		}
	}
	var common, others []string
	for name, e := range entries {
		if len(e) == len(columns) {
			common = append(common, name)
		} else {
			others = append(others, name)
		}
	}
	var b strings.Builder
	b.WriteString(tableHead)
	for _, part := range []struct {
		title string
		names []string
	}{{"Functions of all (MPI 3.1)", common}, {"Functions of some only (MPI 4.0, 4.1 and 5.0, what was removed, conversions, extensions)", others}} {
		slices.Sort(part.names)
		fmt.Fprintf(&b, "\n## %s\n\n| function | %s |\n|---%s|\n", part.title, strings.Join(columns, " | "), strings.Repeat("|---", len(columns)))
		for _, name := range part.names {
			b.WriteString("| " + name + " |")
			for _, c := range columns {
				word := entries[name][c]
				if word == "" {
					word = "–"
				}
				b.WriteString(" " + word + " |")
			}
			b.WriteString("\n")
		}
	}
	return b.String(), nil
}

// readEntries adds the content of a functions.tsv as entries[function][column].
func readEntries(file, column string, entries map[string]map[string]string) error {
	f, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("%w: run scripts/build first", err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	for n := 1; in.Scan(); n++ {
		if n == 1 {
			continue // the head
		}
		words := strings.Split(in.Text(), "\t")
		if len(words) != 3 {
			return fmt.Errorf("%s:%d: %d columns, want 3", file, n, len(words))
		}
		word, err := meaning(words[1], words[2])
		if err != nil {
			return fmt.Errorf("%s:%d: %s: %w", file, n, words[0], err)
		}
		if entries[words[0]] == nil {
			entries[words[0]] = map[string]string{}
		}
		entries[words[0]][column] = word
	}
	return in.Err()
}
