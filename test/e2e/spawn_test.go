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
			b.asNatively(Job{Clusters: s.clusters, Flags: run.flags}, path)
		})
	}
}

// TestSpawnPython has mpi4py spawn the workers of a pool.
func TestSpawnPython(t *testing.T) {
	overSplits(t, "", []split{twoOne, oneCluster[0]}, func(b *Bed, s split) {
		argv := []string{python3, filepath.Join(b.Root, "test/programs/python/pool.py")}
		b.asNatively(Job{Clusters: s.clusters, Flags: []string{"--zipper", b.StartForwarder().Addr}}, argv...)
	})
}
