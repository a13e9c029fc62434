package tcp

import (
	"testing"

	"github.com/leidenzipper/zipper/internal/wire"
)

// A socket holds a segment that it cannot send yet: the transport may not know frames, so nothing
// but this keeps the two numbers together.
func TestUnsentIsSegment(t *testing.T) {
	if Unsent != wire.SegmentSize {
		t.Errorf("%d bytes unsent, segments of %d", Unsent, wire.SegmentSize)
	}
}
