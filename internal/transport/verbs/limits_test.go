package verbs

import (
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// TestBlockTakesSegment checks that a segment with its head fits into a block. The transport must
// not depend on frames, so only this test keeps the numbers together.
func TestBlockTakesSegment(t *testing.T) {
	if need := wire.HeaderLen + wire.DataLen + wire.SegmentSize; defaultBlockSize < need {
		t.Errorf("blocks of %d bytes, a segment needs %d", defaultBlockSize, need)
	}
}
