package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// split is a division of a job's ranks over clusters.
type split struct {
	name     string
	clusters []Cluster
}

func (s split) ranks() int {
	n := 0
	for _, c := range s.clusters {
		n += c.Ranks
	}
	return n
}

// The splits. Clusters of more than two ranks use Open MPI, because MPICH's ranks never yield. For
// the same reason the usual mixed job has three ranks: with four, two processors spend most of
// their time on ranks that wait.
var (
	oneOne      = split{"1+1", []Cluster{A(1, OpenMPI), B(1, OpenMPI)}}
	twoOne      = split{"2+1", []Cluster{A(2, OpenMPI), B(1, OpenMPI)}}
	oneThree    = split{"1+3", []Cluster{A(1, OpenMPI), B(3, OpenMPI)}}
	twoTwo      = split{"2+2", []Cluster{A(2, OpenMPI), B(2, OpenMPI)}}
	threeFour   = split{"3+4", []Cluster{A(3, OpenMPI), B(4, OpenMPI)}}
	oneOneOne   = split{"1+1+1", []Cluster{A(1, OpenMPI), B(1, OpenMPI), C(1, OpenMPI)}}
	mixedPair   = split{"1+1 mixed", []Cluster{A(1, OpenMPI), B(1, MPICH)}}
	mixed       = split{"1+2 mixed", []Cluster{A(1, OpenMPI), B(2, MPICH)}}
	mixedFour   = split{"2+2 mixed", []Cluster{A(2, OpenMPI), B(2, MPICH)}}
	mpichPair   = split{"1+1 MPICH", []Cluster{A(1, MPICH), B(1, MPICH)}}
	mixedThree  = split{"1+2+1 mixed", []Cluster{A(1, MPICH), B(2, OpenMPI), C(1, OpenMPI)}}
	oneCluster  = []split{{"2", []Cluster{A(2, OpenMPI)}}, {"2 MPICH", []Cluster{A(2, MPICH)}}}
	some        = []split{twoOne, mixed}
	more        = []split{twoOne, oneOneOne, mixed}
	every       = []split{oneOne, twoOne, oneThree, threeFour, oneOneOne, mixedPair, mixed, mixedFour, mpichPair, mixedThree}
	openMPIOnly = []split{oneOne, twoOne, oneThree, threeFour, oneOneOne}
)

// overSplits runs a test over each of the splits, as a subtest with the split's name after the
// title.
func overSplits(t *testing.T, title string, splits []split, test func(b *Bed, s split)) {
	for _, s := range splits {
		t.Run(strings.TrimSpace(title+" "+s.name), func(t *testing.T) { test(New(t), s) })
	}
}

// byLength returns the splits of the short run or of the long one.
func byLength(short, longer []split) []split {
	if long() {
		return longer
	}
	return short
}

// asked returns the split that ZIPPER_SPLIT names, if it is set, or all splits.
func asked(splits []split) []split {
	want := os.Getenv("ZIPPER_SPLIT")
	if want == "" {
		return splits
	}
	return slices.DeleteFunc(slices.Clone(splits), func(s split) bool { return s.name != want })
}
