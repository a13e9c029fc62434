package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// losing is a job that loses its last cluster and goes on.
type losing struct {
	title    string
	clusters []Cluster
}

// victims returns the number of ranks of the cluster that is lost.
func (l losing) victims() string { return fmt.Sprint(l.clusters[len(l.clusters)-1].Ranks) }

// The jobs that lose a cluster.
var (
	losingOneOfTwo   = losing{"1+1", []Cluster{A(1, OpenMPI), B(1, OpenMPI)}}
	losingMPICH      = losing{"2+2 mpich", []Cluster{A(2, MPICH), B(2, MPICH)}}
	losingOpenMPI    = losing{"2+1 openmpi", []Cluster{A(2, OpenMPI), B(1, OpenMPI)}}
	losingMixed      = losing{"2+2+2 mixed", []Cluster{A(2, OpenMPI), B(2, MPICH), C(2, OpenMPI)}}
	losingOneOfFour  = losing{"1+1+1+1 mixed", []Cluster{A(1, OpenMPI), B(1, MPICH), C(1, OpenMPI), {Name: "d", Ranks: 1, MPI: MPICH}}}
	losingEverywhere = []losing{losingOneOfTwo, losingMPICH, losingOpenMPI, losingMixed, losingOneOfFour}
)

// losingAll returns all of these jobs with ZIPPER_LONG, and otherwise the given ones.
func losingAll(usual ...losing) []losing {
	if long() {
		return losingEverywhere
	}
	return usual
}

// lose runs a program of test/programs/c over a job that goes on when a cluster is lost, with the
// arguments of lost.h. Open MPI's launcher ends soon after its processes; by default, which the
// tests of other files use, it waits for a second.
func (b *Bed) lose(l losing, program string, args ...string) Result {
	b.T.Helper()
	for _, c := range l.clusters {
		b.Compile(c.MPI, "test/programs/c/"+program+".c")
	}
	return b.loseBuilt(l, "build/e2e/{mpi}/"+program, args...)
}

// loseBuilt is lose for a program that has been built.
func (b *Bed) loseBuilt(l losing, path string, args ...string) Result {
	b.T.Helper()
	j := Job{Clusters: l.clusters, Flags: []string{"--on-loss", "continue"}, Env: []string{"OMPI_MCA_odls_base_sigkill_timeout=0"}}
	return b.Zipped(j, append([]string{path}, args...)...)
}

// survives fails the test unless the survivors of a run have ended with status 0, and one of them
// has printed `want`. The lines of several processes may be mixed.
func (b *Bed) survives(r Result, want string) {
	b.T.Helper()
	b.OK(r)
	if !strings.Contains(r.Stdout, want) {
		b.T.Fatalf("no survivor has printed %q: %s", want, r)
	}
}

// TestLostCluster checks that the survivors of a lost cluster get MPI's errors, and go on by MPI's
// functions for failed processes.
func TestLostCluster(t *testing.T) {
	for _, program := range []string{"lost_shrink", "lost_shrinking", "lost_pending", "lost_peer", "lost_nonblocking"} {
		usual := []losing{losingMixed, losingOneOfFour}
		if program == "lost_shrink" {
			usual = losingEverywhere
		}
		for _, l := range losingAll(usual...) {
			t.Run(program+" "+l.title, func(t *testing.T) {
				b := New(t)
				b.survives(b.lose(l, program, l.victims()), "ok")
			})
		}
	}
}

// lostPhases has the calls of lost_phase.c in which a cluster is lost.
var lostPhases = []string{"barrier", "allreduce", "large", "alltoall", "gather", "iallreduce", "ring", "ring_large", "fence",
	"put", "dup", "create_group", "agree", "scatterv", "alltoallw", "igatherv", "neighbor_allgatherv", "neighbor_graph",
	"pscw", "rput"}

// rareLostPhases has the calls that are like one of lostPhases.
var rareLostPhases = []string{"bcast", "allgather", "scatter", "reduce", "reduce_scatter", "scan", "exscan", "ring_small",
	"get", "accumulate", "split", "gatherv", "allgatherv", "alltoallv", "reduce_scatter_v", "ialltoallw",
	"neighbor_allgather", "neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw", "neighbor_ialltoallw",
	"pscw_test", "flush", "split_type", "create", "cart", "cart_sub", "graph", "intercomm_create", "intercomm_merge",
	"win_create", "win_allocate", "file_open", "file_write_at", "file_read_at", "file_ordered", "file_seek_shared",
	"file_view", "file_size", "file_preallocate", "file_atomicity", "file_sync", "file_split"}

// TestLostClusterPhases checks that the call returns in which the survivors are when a cluster is
// lost, and that they can go on. Open MPI 4 does not have all of MPI 4.
func TestLostClusterPhases(t *testing.T) {
	test := func(phase string, l losing) {
		t.Run(phase+" "+l.title, func(t *testing.T) {
			b := New(t)
			b.survives(b.lose(l, "lost_phase", l.victims(), phase), "ok")
		})
	}
	phases, mpi4 := slices.Clone(lostPhases), []string{"persistent_allreduce", "persistent_init", "ring_partitioned", "from_groups"}
	if long() {
		phases = append(phases, rareLostPhases...)
		mpi4 = append(mpi4, "persistent_barrier", "persistent_gatherv", "persistent_alltoallw", "persistent_neighbor")
	}
	for _, phase := range phases {
		for _, l := range losingAll(losingMixed) {
			test(phase, l)
		}
	}
	for _, phase := range mpi4 {
		test(phase, losingMPICH)
	}
}

// TestLostClusterBeforeCall checks that a call returns at the survivors that are in it when a
// cluster is lost, although another survivor makes the call only when it knows of the loss. That
// one is in the first cluster or in another one. A job that accepts itself needs survivors on both
// sides.
func TestLostClusterBeforeCall(t *testing.T) {
	phases := []string{"allreduce", "dup", "create_group", "agree", "fence", "pscw", "intercomm_create"}
	if long() {
		phases = slices.Concat(lostPhases, rareLostPhases)
	}
	for _, phase := range append(phases, "connect") {
		for _, late := range []string{"0", "1", "2"} {
			t.Run(phase+" "+late, func(t *testing.T) {
				b := New(t)
				b.survives(b.lose(losingMixed, "lost_phase", losingMixed.victims(), phase, late), "ok")
			})
		}
	}
}

// TestLostClusterAtTheEnd checks that MPI_Finalize returns at the survivors when a cluster is lost
// before it or during it.
func TestLostClusterAtTheEnd(t *testing.T) {
	for _, phase := range []string{"exit", "finalize"} {
		for _, l := range losingAll(losingMixed, losingOneOfFour) {
			t.Run(phase+" "+l.title, func(t *testing.T) {
				b := New(t)
				b.survives(b.lose(l, "lost_phase", l.victims(), phase), "survived")
			})
		}
	}
}

// TestClusterLostDuringRecovery checks that the survivors can recover when a second cluster is lost
// while they shrink.
func TestClusterLostDuringRecovery(t *testing.T) {
	jobs := []losing{losingOneOfFour, {"2+2+1+1 mixed", []Cluster{A(2, OpenMPI), B(2, MPICH), C(1, OpenMPI), {Name: "d", Ranks: 1, MPI: OpenMPI}}}}
	for _, milliseconds := range []string{"0", "5", "50"} {
		for _, l := range jobs {
			t.Run(milliseconds+" ms "+l.title, func(t *testing.T) {
				b := New(t)
				b.survives(b.lose(l, "lost_twice", l.victims(), milliseconds), "ok")
			})
		}
	}
}

// TestLostClusterFiles checks that calls on a file that a lost cluster has opened fail, and that
// the file can be closed.
func TestLostClusterFiles(t *testing.T) {
	for _, l := range losingAll(losingMixed, losingOneOfFour) {
		t.Run(l.title, func(t *testing.T) {
			b := New(t)
			b.survives(b.lose(l, "lost_files", l.victims(), "", t.TempDir()+"/file"), "ok")
		})
	}
}

// TestRevokedCommunicator checks that every call on a communicator returns when another process
// revokes the communicator.
func TestRevokedCommunicator(t *testing.T) {
	phases := []string{"recv", "any", "send", "ssend", "probe", "barrier", "allreduce", "dup", "waitany"}
	jobs := []losing{{"2+2 mixed", []Cluster{A(2, OpenMPI), B(2, MPICH)}}, losingOneOfFour}
	for _, phase := range phases {
		for _, l := range jobs {
			t.Run(phase+" "+l.title, func(t *testing.T) {
				b := New(t)
				b.survives(b.lose(l, "lost_revoke", "0", phase), "ok")
			})
		}
	}
}

// TestRevokedContexts checks that a program can revoke and free more communicators than MPICH has
// at a time, 2048, where the clusters have one process each.
func TestRevokedContexts(t *testing.T) {
	b := New(t)
	l := losing{clusters: []Cluster{A(1, OpenMPI), B(1, MPICH)}}
	b.survives(b.lose(l, "lost_contexts", "0", "2500"), "ok")
}

// TestRevokedPersistent checks that started persistent and partitioned requests end when another
// process revokes their communicator, that no more can be started, and that the errors are raised
// on that communicator. Open MPI 4 does not have all of MPI 4.
func TestRevokedPersistent(t *testing.T) {
	phases := []string{"barrier", "bcast", "barrier_inter", "waitall", "create", "create_inter", "recv", "precv", "precv_alone", "psend"}
	for _, phase := range phases {
		t.Run(phase, func(t *testing.T) {
			b := New(t)
			b.survives(b.lose(losingMPICH, "lost_persistent", "0", phase), "ok")
		})
	}
}

// TestLostClusterWithFatalErrors checks that MPI_ERRORS_ARE_FATAL ends a job that would go on.
func TestLostClusterWithFatalErrors(t *testing.T) {
	b := New(t)
	r := b.lose(losingMixed, "lost_fatal", losingMixed.victims())
	if r.Status == 0 || strings.Contains(r.Stdout, "has returned") || !strings.Contains(r.Stderr, "MPI_Barrier: MPI_ERR_PROC_FAILED") {
		t.Fatalf("the job does not end with the error: %s", r)
	}
}

// TestLostClusterInFortran checks the Fortran functions.
func TestLostClusterInFortran(t *testing.T) {
	for _, l := range []losing{losingOpenMPI, {"2+2+1 mixed", []Cluster{A(2, OpenMPI), B(2, MPICH), C(1, OpenMPI)}}} {
		t.Run(l.title, func(t *testing.T) {
			b := New(t)
			survivors, program := -1, ""
			for _, c := range l.clusters {
				survivors += c.Ranks
				program = strings.ReplaceAll(b.Compile(c.MPI, "test/programs/fortran/lost.f90", "-L"+b.Root+"/lib",
					"-lmmpi-"+c.MPI, "-Wl,-rpath,"+b.Root+"/lib"), c.MPI, "{mpi}")
			}
			r := b.Zipped(Job{Clusters: l.clusters, Flags: []string{"--on-loss", "continue"}}, program)
			b.survives(r, fmt.Sprint(survivors, " ranks go on"))
			if strings.Contains(r.Stdout, "wrong") {
				t.Errorf("a function has a wrong result: %v", r)
			}
		})
	}
}

// TestSurviveExample checks the example of a solver that loses a cluster.
func TestSurviveExample(t *testing.T) {
	b := New(t)
	l := losingOneOfFour
	var program string
	for _, c := range l.clusters {
		program = b.Compile(c.MPI, "examples/survive/survive.c", "-ffp-contract=off")
	}
	program = strings.Replace(program, "/"+MPICH+"/", "/{mpi}/", 1)
	j := Job{Clusters: l.clusters, Flags: []string{"--on-loss", "continue"}}
	r := b.Zipped(j, program, "550", "1")
	b.survives(r, "after 2000 steps 3 processes have the right result")
	if !strings.Contains(r.Stdout, "3 processes go on from step 500\n") {
		t.Fatalf("it does not go on from the last copy: %s", r)
	}
}
