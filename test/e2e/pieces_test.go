package e2e

import "testing"

// smallPieces are settings under which ordinary sizes are handled like large ones: many segments,
// rotating leaders, no combining.
const smallPieces = "segment=1K,chunk=300,window=64K,leaders=2,slice=64,combine=1,combineblock=1,few=1,pair=700,localdepth=1"

// TestCollectivesInSmallPieces runs the programs of collectives with smallPieces.
func TestCollectivesInSmallPieces(t *testing.T) {
	New(t)
	env := []string{"ZIPPER_COLLECTIVES=" + smallPieces}
	for _, file := range []string{"c/coll_basic.c", "c/coll_ops.c", "c/coll_shapes.c"} {
		short := []split{twoOne, oneOneOne}
		if file == "c/coll_basic.c" {
			short = append(short, mixed)
		}
		overSplits(t, file, byLength(short, every), func(b *Bed, s split) {
			path := compileFor(b, s.clusters, file)
			b.OK(b.Zipped(Job{Clusters: s.clusters, Env: env}, path)) // the programs check what they receive
		})
	}
}
