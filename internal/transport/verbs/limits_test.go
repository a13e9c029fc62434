package verbs

import (
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// A block takes a segment with its head: the transport may not know frames, so nothing but this
// keeps the numbers together.
func TestBlockTakesSegment(t *testing.T) {
	if need := wire.HeaderLen + wire.DataLen + wire.SegmentSize; defaultBlockSize < need {
		t.Errorf("blocks of %d bytes, a segment needs %d", defaultBlockSize, need)
	}
}
