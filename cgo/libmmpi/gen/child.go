package main

import (
	"fmt"
	"slices"
	"strings"
)

// Two kinds of callers take no part in the job. A child process of a rank (fork, _Fork, clone) has
// a copy of the library's state: with the rank's counters and keys its frames would be taken for
// the rank's. A signal handler that has interrupted the engine finds it in an inconsistent state.
// The effect of their calls depends on the function.

// local lists the own functions that only read or make objects in this process's memory. A child
// and a handler get the same answer from them as the rank.
var local = strings.Fields(`Error_string Get_processor_name
	Group_size Group_rank Group_translate_ranks Group_compare Group_union Group_intersection Group_difference
	Group_incl Group_excl Group_range_incl Group_range_excl Group_free
	Comm_size Comm_rank Comm_compare Comm_test_inter Comm_remote_size Comm_group Comm_remote_group
	Comm_get_attr Attr_get Topo_test Cart_get Cartdim_get Cart_rank Cart_coords Cart_shift
	Graphdims_get Graph_get Graph_neighbors Graph_neighbors_count Dist_graph_neighbors Dist_graph_neighbors_count`)

// freeing lists the functions that a child often calls when it exits. They are passed to native
// MPI, which has the same effect in a child as without MMPI.
var freeing = strings.Fields("Comm_free Request_free Op_free Comm_create_keyval Keyval_create Buffer_detach Buffer_detach_c")

// bypass returns the beginning of a wrapper: in a process that takes no part in a job (z_is_off in
// core/job.h), and inside native MPI, the call is native. Calls of a child are refused
// unless they are local or free an object, those of a handler unless they are local.
func bypass(f function) string {
	real := fmt.Sprintf("real.%s(%s)", f.name, f.arguments(nil))
	refuses := "z_is_apart()"
	switch {
	case slices.Contains(local, f.name):
		return fmt.Sprintf("  if (BYPASS && !z_is_apart()) return %s;\n", real)
	case f.result == "void":
		return fmt.Sprintf("  if (BYPASS) return %s;\n", real)
	case slices.Contains(freeing, f.name):
		refuses = "z_interrupts()"
	}
	return fmt.Sprintf("  if (BYPASS) return %s ? z_refuse(%q) : %s;\n", refuses, f.mpi(), real)
}
