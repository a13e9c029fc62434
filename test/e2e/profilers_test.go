package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// profiler compiles a program of test/programs/profilers for the MPI libraries of the clusters.
func (b *Bed) profiler(s split, file string, flags ...string) string {
	b.T.Helper()
	return compileFor(b, s.clusters, filepath.Join("profilers", file), append(flags, "-pthread", "-ldl")...)
}

// TestGperftools profiles a job by gperftools, which unwinds in a signal handler without
// SA_ONSTACK, at a rate at which a lock that a handler waits for is hit at once.
func TestGperftools(t *testing.T) {
	rounds := "2000"
	if long() {
		rounds = "50000"
	}
	overSplits(t, "", byLength([]split{oneOne, mixedPair}, every), func(b *Bed, s split) {
		path := b.profiler(s, "gperftools.c", "-lprofiler")
		profile := filepath.Join(b.T.TempDir(), "profile")
		r := b.OK(b.Zipped(Job{Clusters: s.clusters, Env: []string{"CPUPROFILE_REALTIME=1", "CPUPROFILE_FREQUENCY=4000"}},
			path, profile, rounds))
		for rank := range s.ranks() {
			if file, err := os.Stat(fmt.Sprint(profile, ".", rank)); err != nil || file.Size() == 0 {
				b.T.Errorf("rank %d has written no profile: %v\n%v", rank, err, r)
			}
		}
	})
}

// TestRprof profiles a job of R programs by R's own profiler.
func TestRprof(t *testing.T) {
	New(t)
	if !long() {
		t.Skip("long test: scripts/test --long")
	}
	overSplits(t, "", openMPIOnly, func(b *Bed, s split) {
		script := filepath.Join(b.Root, "test/programs/profilers/rprof.R")
		b.matchesNative(Job{Clusters: s.clusters}, "Rscript", script, "5000")
	})
}

// TestJVM has a Java virtual machine in each process, which is profiled by signals, and whose own
// signals continue to work.
func TestJVM(t *testing.T) {
	New(t)
	if !long() {
		t.Skip("long test: scripts/test --long")
	}
	const java = "/usr/lib/jvm/default-java"
	overSplits(t, "", []split{oneOne, mixedPair, mpichPair}, func(b *Bed, s split) {
		path := b.profiler(s, "jvm.c", "-I"+java+"/include", "-I"+java+"/include/linux", "-L"+java+"/lib/server",
			"-ljvm", "-Wl,-rpath,"+java+"/lib/server")
		b.matchesNative(Job{Clusters: s.clusters}, path, "5000", "200")
	})
}
