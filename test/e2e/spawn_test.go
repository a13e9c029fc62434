package e2e

import (
	"path/filepath"
	"testing"
)

// TestSpawn has programs start processes by themselves, from communicators inside a cluster: in
// jobs of several clusters, in one of one cluster that may be connected to others, and in one that
// is its library's alone.
func TestSpawn(t *testing.T) {
	for _, run := range []struct {
		title  string
		splits []split
		flags  []string
	}{
		{"", []split{twoOne, mixed, mpichPair, {"1+2 mixed", []Cluster{A(1, MPICH), B(2, OpenMPI)}}}, nil},
		// Nobody is there at the address: it takes a forwarder only to connect
		{"connectable", oneCluster, []string{"--zipper", "127.0.0.1:9"}},
		{"alone", oneCluster, nil},
	} {
		overSplits(t, run.title, asked(run.splits), func(b *Bed, s split) {
			path := compileFor(b, s.clusters, "c/spawn.c")
			b.spawns(Job{Clusters: s.clusters, Flags: run.flags}, path)
		})
	}
}

// TestSpawnPython has mpi4py spawn the workers of a pool.
func TestSpawnPython(t *testing.T) {
	overSplits(t, "", []split{twoOne, oneCluster[0]}, func(b *Bed, s split) {
		argv := []string{python3, filepath.Join(b.Root, "test/programs/python/pool.py")}
		b.spawns(Job{Clusters: s.clusters, Flags: []string{"--zipper", b.StartForwarder().Addr}}, argv...)
	})
}

// spawns is asNatively for a program that starts processes.
func (b *Bed) spawns(j Job, argv ...string) {
	b.T.Helper()
	if !allRightNatively() {
		b.asNatively(j, argv...)
		return
	}
	words := []string{"timeout", "-k", "20", nativeLimit}
	native := b.unlessStill(func() Result {
		return b.nativeBy(words, OpenMPI, split{clusters: j.Clusters}.ranks(), forMPI(OpenMPI, argv)...)
	})
	zipped := b.unlessStill(func() Result { return b.zippedBy(words, j, argv...) })
	b.Same(b.OK(native), b.OK(zipped), nil)
}

// unlessStill runs something again that stood still. Open MPI 4.1 does so natively, one time in 30
// on an idle machine and more often on a busy one: a process that is spawned waits in PMIx_Init for
// an answer of its daemon.
func (b *Bed) unlessStill(run func() Result) (r Result) {
	b.T.Helper()
	const tries, stoodStill = 4, 124 // exit status by timeout(1)
	for i := range tries {
		if r = run(); r.Status != stoodStill {
			break
		}
		b.T.Logf("stood still, %d of at most %d times: %v", i+1, tries, r)
	}
	return r
}
