package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// placeScript writes a script that prints the rank, the size and the cluster that zipper exec sets
// for it before it becomes the program, as a wrapper with a log for each rank does.
func placeScript(b *Bed) string {
	b.T.Helper()
	path := filepath.Join(b.T.TempDir(), "wrapper")
	script := "#!/bin/sh\necho \"script $ZIPPER_RANK of $ZIPPER_SIZE in $ZIPPER_CLUSTER, launcher" +
		" ${OMPI_COMM_WORLD_RANK:-$PMI_RANK} of ${OMPI_COMM_WORLD_SIZE:-$PMI_SIZE}\"\nexec \"$@\"\n"
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		b.T.Fatal(err)
	}
	return path
}

// scriptLines returns the output of placeScript in the order of ranks; clusters has the cluster of
// each rank.
func scriptLines(clusters ...string) (want []string) {
	for rank, c := range clusters {
		want = append(want, fmt.Sprintf("script %d of %d in %s, launcher %d of %d", rank, len(clusters), c, rank,
			len(clusters)))
	}
	return want
}

func printed(stdout string) (got []string) {
	for l := range strings.Lines(stdout) {
		if strings.HasPrefix(l, "script ") {
			got = append(got, strings.TrimSuffix(l, "\n"))
		}
	}
	slices.Sort(got)
	return got
}

// TestRankInEnvironmentBeforeInit checks that programs and scripts find the rank in MPI_COMM_WORLD
// before MPI_Init, in the launcher's variables, as they do natively, and in zipper's.
func TestRankInEnvironmentBeforeInit(t *testing.T) {
	twoMPICH := split{"2+2 MPICH", []Cluster{A(2, MPICH), B(2, MPICH)}}
	overSplits(t, "", []split{twoTwo, twoMPICH, mixedFour}, func(b *Bed, s split) {
		path := compileFor(b, s.clusters, "c/place.c")
		j := Job{Clusters: s.clusters}
		b.matchesNative(j, path)
		b.OK(b.Zipped(j, path, "named"))
		r := b.OK(b.Zipped(j, placeScript(b), path, "named"))
		if got, want := printed(r.Stdout), scriptLines("a", "a", "b", "b"); !slices.Equal(got, want) {
			b.T.Errorf("the script sees %q, want %q", got, want)
		}
		j.Flags = woven.flags
		r = b.OK(b.Zipped(j, placeScript(b), path, "named"))
		if got, want := printed(r.Stdout), scriptLines("b", "a", "b", "a"); !slices.Equal(got, want) {
			b.T.Errorf("with %v the script sees %q, want %q", j.Flags, got, want)
		}
	})
}

// TestRankInEnvironmentOfHalves checks that halves which mpirun starts separately find their ranks
// too, also through a second zipper exec. A half that was started with another number of processes
// than the layout has gets none.
func TestRankInEnvironmentOfHalves(t *testing.T) {
	b := New(t)
	f := b.StartForwarder("--status", "none")
	id := JobID(t)
	launch := func(mpi, cluster string, ranks int) *Proc {
		argv := []string{"mpirun." + mpi, "-n", fmt.Sprint(ranks)}
		if mpi == OpenMPI {
			argv = append(argv, "--oversubscribe", "--bind-to", "none")
			if os.Geteuid() == 0 {
				argv = append(argv, "--allow-run-as-root")
			}
		}
		prog := strings.Replace(compileFor(b, mixedFour.clusters, "c/place.c"), "{mpi}", mpi, 1)
		return b.Start(nil, []string{"ZIPPER_JOB=" + id, "ZIPPER_SECRET=" + SecretOf("s"), "ZIPPER_LAYOUT=a=2,b=2",
			"ZIPPER_FORWARDERS=" + f.Addr, "ZIPPER_CLUSTER=" + cluster},
			append(argv, b.Zipper, "exec", "--", placeScript(b), b.Zipper, "exec", "--", prog, "named")...)
	}
	procs := []*Proc{launch(OpenMPI, "a", 2), launch(MPICH, "b", 2)}
	all := ""
	for _, p := range procs {
		all += b.OK(p.Wait()).Stdout
	}
	if got, want := printed(all), scriptLines("a", "a", "b", "b"); !slices.Equal(got, want) {
		t.Errorf("scripts see %q, want %q", got, want)
	}
	b.NothingLeft(id)
	r := launch(MPICH, "b", 3).Wait()
	b.Fails(r, 1, "ZIPPER_LAYOUT says a=2,b=2")
	want := []string{"script  of  in b, launcher 0 of 3", "script  of  in b, launcher 1 of 3",
		"script  of  in b, launcher 2 of 3"}
	if got := printed(r.Stdout); !slices.Equal(got, want) {
		t.Errorf("with another number of processes scripts see %q, want %q", got, want)
	}
}

// TestNestedMpirun checks that a script with an mpirun of its own gets an error that says what to
// do, instead of a job of its own for each rank.
func TestNestedMpirun(t *testing.T) {
	for _, ranks := range []string{"2", "4"} { // of the cluster, and of the job
		t.Run(ranks, func(t *testing.T) {
			b := New(t)
			prog := strings.Replace(bad(b), "{mpi}", MPICH, 1)
			script := filepath.Join(t.TempDir(), "script")
			text := fmt.Sprintf("#!/bin/sh\nexec mpirun.mpich -n %s %s finish\n", ranks, prog)
			if err := os.WriteFile(script, []byte(text), 0o700); err != nil {
				t.Fatal(err)
			}
			r := b.Zipped(Job{Clusters: []Cluster{A(2, MPICH), B(2, MPICH)}}, script)
			b.Fails(r, 1, "an mpirun inside the script", "give zipper the program")
			if strings.Contains(r.Stderr, "new job id") || strings.Contains(r.Stderr, "as many ranks as the layout") {
				t.Errorf("it sends the user elsewhere:\n%v", r)
			}
		})
	}
	b := New(t) // Open MPI's mpirun refuses to be nested, and reports it
	script := filepath.Join(t.TempDir(), "script")
	if err := os.WriteFile(script, []byte("#!/bin/sh\nexit 1\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	b.Fails(b.Zipped(Job{Clusters: []Cluster{A(1, OpenMPI), B(1, OpenMPI)}}, script), 1,
		"ended with exit status 1 before all its ranks had joined", "mpirun of its own", "give zipper the program")
}
