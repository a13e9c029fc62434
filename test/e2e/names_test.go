package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestHostNames has clusters with hosts of the same name: each process finds those of its own
// cluster by MPI_Get_processor_name, and no others.
func TestHostNames(t *testing.T) {
	overSplits(t, "", byLength([]split{twoOne, mixed}, every), func(b *Bed, s split) {
		host, err := os.Hostname()
		if err != nil {
			b.T.Fatal(err)
		}
		j, path := Job{Clusters: s.clusters}, compileFor(b, s.clusters, "c/names.c")
		r := b.Zipped(j, path)
		for _, c := range s.clusters {
			if n := strings.Count(r.Stdout, ": "+host+"."+c.Name+"\n"); n != c.Ranks {
				b.T.Errorf("%d ranks are on %s.%s, want %d: %v", n, host, c.Name, c.Ranks, r)
			}
		}
		b.okOrFailsNatively(r, j, path)
	})
}

// TestDifferingConstantsAreNamed checks that a program that takes counts from constants of mpi.h in
// which two libraries differ ends with an error that names the constant.
func TestDifferingConstantsAreNamed(t *testing.T) {
	for what, want := range map[string]string{
		"processor": "MPI_MAX_PROCESSOR_NAME (256, 128)",
		"error":     "MPI_MAX_ERROR_STRING (256, 512)",
	} {
		overSplits(t, what, []split{mixedPair, mixed}, func(b *Bed, s split) {
			r := b.Zipped(Job{Clusters: s.clusters}, compileFor(b, s.clusters, "c/names.c"), what)
			if r.Status == 0 || !strings.Contains(r.Stderr, want) {
				b.T.Errorf("want it to fail with %q: %v", want, r)
			}
		})
		overSplits(t, what, []split{oneOne}, func(b *Bed, s split) {
			b.OK(b.Zipped(Job{Clusters: s.clusters}, compileFor(b, s.clusters, "c/names.c"), what))
		})
	}
}
