package e2e

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// natives keeps what programs print natively: it is the same for every split of as many ranks.
type natives struct {
	mu sync.Mutex
	of map[string]Result
}

var oracle natives

func (n *natives) run(b *Bed, ranks int, argv ...string) Result {
	b.T.Helper()
	key := fmt.Sprint(ranks, argv)
	n.mu.Lock()
	r, ok := n.of[key]
	n.mu.Unlock()
	if ok {
		return r
	}
	r = b.OK(b.Native(OpenMPI, ranks, argv...))
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.of == nil {
		n.of = map[string]Result{}
	}
	n.of[key] = r
	return r
}

// compileFor builds a program for every MPI library of the split and gives its path with "{mpi}" in
// it.
func compileFor(b *Bed, clusters []Cluster, file string, flags ...string) string {
	b.T.Helper()
	var path string
	mpis := map[string]bool{OpenMPI: true}
	for _, c := range clusters {
		mpis[c.MPI] = true
	}
	for _, mpi := range slices.Sorted(maps.Keys(mpis)) {
		path = strings.Replace(b.Compile(mpi, filepath.Join("test/programs", file), flags...), "/"+mpi+"/", "/{mpi}/",
			1)
	}
	return path
}
