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
// SA_ONSTACK, at a rate at which a lock that a handler waits for is met at once.
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
