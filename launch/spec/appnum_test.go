package spec

import (
	"slices"
	"testing"
)

// TestBuildsOfOneProgramShareANumber checks that programs are numbered in the order of the
// clusters, and that builds of one program for several MPI libraries, in any directories, have one
// number.
func TestBuildsOfOneProgramShareANumber(t *testing.T) {
	for _, c := range []struct {
		programs []string
		want     []string
	}{
		{[]string{"./ocean.{mpi}", "./ocean.{mpi}"}, []string{"0", "0"}},
		{[]string{"/a/ocean.openmpi", "/b/bin/ocean.mpich"}, []string{"0", "0"}},
		{[]string{"/a/ocean-mpich", "ocean"}, []string{"0", "0"}},
		{[]string{"./ocean.{arch}", "/a/ocean-aarch64", "ocean.x86_64.mpich"}, []string{"0", "0", "0"}},
		{[]string{"./ocean", "./atmosphere"}, []string{"0", "1"}},
		{[]string{"./ocean", "./atmosphere", "./ocean", "./ice"}, []string{"0", "1", "0", "2"}},
	} {
		j := &Job{}
		for i, p := range c.programs {
			j.Clusters = append(j.Clusters, Cluster{Name: string(rune('a' + i)), Ranks: 1, Program: []string{p, "x"}})
		}
		var got []string
		for _, k := range j.Clusters {
			got = append(got, j.Share(k.Name).Appnum)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%v: %v, want %v", c.programs, got, c.want)
		}
	}
}
